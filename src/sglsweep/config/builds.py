"""Builds: the installed SGLangs that cells may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sglsweep.config.document import Document
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.config.schema import BuildEntry, SweepEntry
from sglsweep.config.script import Script
from sglsweep.flags import nearest
from sglsweep.matrix import Axis

DEFAULT_BUILD = "default"
_KINDS = ("python", "venv", "base", "image", "rehearsal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One installed SGLang.

    Attributes:
        python: its interpreter on the host; None = what hosts.yaml or the PATH gives.
        base: the build that `pip` is laid over.
        engine: what runs `image`.
        rehearsal: the world file of a stand-in server; then nothing else is set.
    """

    name: str
    python: str | None = None
    base: str | None = None
    pip: tuple[str, ...] = ()
    image: str | None = None
    engine: str | None = None
    rehearsal: Path | None = None


def read_builds(
    document: Document, entry: SweepEntry, axes: tuple[Axis, ...], script: Script
) -> Mapping[str, Build]:
    """Return the builds by name, in the order of the file; one without a name if it lists none.

    Raises:
        ConfigError: one says nothing or too much, or a cell names one that is not listed.
    """
    refuse(_mistakes(document, entry))
    refuse(_unknown(document, entry, axes))
    if not entry.builds:
        return {DEFAULT_BUILD: Build(name=DEFAULT_BUILD, python=script.python)}
    return {name: _build(name, build, document) for name, build in entry.builds.items()}


def _build(name: str, build: BuildEntry, document: Document) -> Build:
    world = document.path.parent / build.rehearsal if build.rehearsal else None
    return Build(
        name=name,
        python=f"{build.venv.rstrip('/')}/bin/python" if build.venv else build.python,
        base=build.base,
        pip=build.pip,
        image=build.image,
        engine=build.engine,
        rehearsal=world.resolve() if world else None,
    )


def _mistakes(document: Document, entry: SweepEntry) -> Iterator[Mistake]:
    for name, build in entry.builds.items():
        where = document.where(("builds", name))
        kinds = [kind for kind in _KINDS if getattr(build, kind)]
        if len(kinds) != 1:
            what = f"build '{name}' names {' and '.join(kinds) or 'no SGLang'}"
            instead = "Give it one of python, venv, base, image or rehearsal."
            yield Mistake(where=where, what=what, instead=instead)
        if build.base and build.base not in set(entry.builds) - {name}:
            yield _no_build(build.base, document.where(("builds", name, "base")), entry)
        if build.rehearsal and not (document.path.parent / build.rehearsal).is_file():
            yield Mistake(
                where=document.where(("builds", name, "rehearsal")),
                what=f"no world file {build.rehearsal}",
                instead="Write a path relative to this file.",
            )


def _unknown(document: Document, entry: SweepEntry, axes: tuple[Axis, ...]) -> Iterator[Mistake]:
    values = next((axis.values for axis in axes if axis.name == "build"), ())
    for index, value in enumerate(values):
        if value not in entry.builds:
            yield _no_build(str(value), document.where(("matrix", "build", index)), entry)
    for index, cell in enumerate(entry.include):
        if "build" in cell and cell["build"] not in entry.builds:
            where = document.where(("include", index, "build"))
            yield _no_build(str(cell["build"]), where, entry)


def _no_build(name: str, where: str, entry: SweepEntry) -> Mistake:
    near = nearest(name, entry.builds, count=1)
    listed = ", ".join(entry.builds) or "none is listed below `builds:`"
    instead = f"Write '{near[0]}'." if near else f"Write one of: {listed}."
    return Mistake(where=where, what=f"no build '{name}'", instead=instead)
