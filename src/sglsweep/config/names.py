"""Which names may stand as axes, flags and keys of conditions, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sglsweep.config.document import Document, Loc
from sglsweep.config.mistakes import Mistake

_FLAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_ENV: Final = re.compile(r"env\.[A-Za-z_][A-Za-z0-9_]*")
_FORETOLD: Final = frozenset({"verdict", "cause", "phase"})
_OF_THE_SWEEP: Final[Mapping[str, str]] = {
    "port": "Set `port:` at the top of the file or in hosts.yaml.",
    "model-path": "Write `model` instead.",
}


def flag_names(document: Document, names: Iterable[str], at: Loc) -> Iterator[Mistake]:
    """Check the keys of `launch.flags`."""
    for name in names:
        if name.startswith("env."):
            found: str | None = f"Write `{name.removeprefix('env.')}` below `launch.env`."
        elif name in {"model", "model-path", "build"}:
            found = "Set it at the top of the file, or as an axis of the matrix."
        else:
            found = _OF_THE_SWEEP.get(name) or _misspelt(name)
        yield from _mistake(document, name, found, at)


def axis_names(document: Document, names: Iterable[str], at: Loc) -> Iterator[Mistake]:
    """Check the keys of `matrix` or of one `include`."""
    for name in names:
        if name == "host":
            found: str | None = "Set it in `launch.flags`; it is no axis."
        else:
            found = _OF_THE_SWEEP.get(name) or _misspelt(name)
        yield from _mistake(document, name, found, at)


def condition_names(
    document: Document, names: Iterable[str], at: Loc, *, foretells: bool = False
) -> Iterator[Mistake]:
    """Check the keys of a `when`, or of a `predicts`, which may name a verdict too."""
    for name in names:
        if foretells and name in _FORETOLD:
            continue
        found = _misspelt(name.removeprefix("effective."))
        yield from _mistake(document, name, found, at)


def _mistake(document: Document, name: str, instead: str | None, at: Loc) -> Iterator[Mistake]:
    if instead is not None:
        where = document.where((*at, name))
        yield Mistake(where=where, what=f"'{name}' cannot stand here", instead=instead)


def _misspelt(name: str) -> str | None:
    """Say how to spell a name that is none of a flag, an axis or `env.NAME`; None if it is one."""
    if name.startswith("env.") or _FLAG.fullmatch(name) is None:
        return None if _ENV.fullmatch(name) else _respelt(name)
    return None


def _respelt(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name.lstrip("-")).strip("-")
    if name.startswith("env."):
        return "Write `env.` and the name of an environment variable."
    return (
        f"Write '{plain}'; flags stand without dashes in front, as SGLang spells them."
        if (plain)
        else "Write the name of a flag."
    )
