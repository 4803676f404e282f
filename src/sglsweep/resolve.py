"""Asks each build's own SGLang what it makes of every cell, before any is launched."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from sglsweep.answered import answer_of, answers_of
from sglsweep.config.mistakes import Note
from sglsweep.errors import HostError, HostUnreachable
from sglsweep.expand import expand
from sglsweep.expand.asked import Asked, BuildFacts, Resolved, State
from sglsweep.expand.resolved import settle
from sglsweep.matrix import Cells
from sglsweep.rehearsal.foretell import ARCH, GPU, Foreteller, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sglsweep.catalogue.gpus import Gpu
    from sglsweep.expand import Expanded
    from sglsweep.flags import Command
    from sglsweep.hosts.base import Host
    from sglsweep.matrix import Cell
    from sglsweep.prepare import Ground

MOST_CELLS = 5000
"""Cells that are asked about at once: some minutes of the host's time."""

_START_S = 240.0
_EACH_S = 0.3
_BOOT = (
    "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv.pop(1))), 'resolve.py', 'exec'))"
)
"""Reads the program from the head of standard input; the question is the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How SGLang is asked.

    Attributes:
        command: the launch of a cell.
        gpu: described; None = the host's own.
        configs: model, as launches name it -> its config.json, for hosts that do not have it.
        cache: folder for answers; None = none is kept.
        portions: how many times `MOST_CELLS` cells of a larger matrix are asked about.
    """

    command: Callable[[Cell], Command]
    gpu: Gpu | None = None
    configs: Mapping[str, object] = field(default_factory=dict)
    cache: Path | None = None
    portions: int = 1


def can_ask(ground: Ground) -> bool:
    """True if a build of the matrix can say what it makes of a cell."""
    return bool(ground.tables) or any(
        (world := ground.sweep.builds[name].rehearsal) is not None and Foreteller(world).answers
        for name in ground.pythons
    )


def resolve_cells(ground: Ground, asking: Asking) -> Ground:
    """Return the ground with its matrix settled by what SGLang itself makes of the cells.

    A build that cannot be asked costs nothing: its cells stay as they are, and a note says why.
    """
    expanded, portions = _portions(
        expand(ground.sweep, ground.tables, is_resolved_later=True), asking.portions
    )
    answers: dict[str, Resolved] = {}
    builds: dict[str, BuildFacts] = {}
    notes: list[Note] = list(_left_for_later(ground, expanded))
    for cells in portions:
        for build, own in _by_build(ground, cells).items():
            try:
                found, facts, said = _answered(ground, asking, build, own)
            except HostUnreachable:
                raise
            except HostError as error:
                what = f"build '{build}': SGLang could not be asked what it makes of the cells"
                notes.append(Note(_where(ground), f"{what}: {error.message}"))
                continue
            answers.update(found)
            builds[build] = facts.after(builds.get(build))
            notes += [n for n in said if n not in notes]
    if not builds:
        return _noted(ground, *notes)
    settled = settle(expanded, _asked(ground, asking, answers, builds))
    told = replace(settled.expanded, notes=(*settled.expanded.notes, *notes))
    return replace(ground, expanded=told, settled=replace(settled, expanded=told))


def answers_about(
    ground: Ground, asking: Asking, build: str, cells: Sequence[Cell]
) -> tuple[Asked | None, str]:
    """Return what one build makes of a few cells; None, and why, where it cannot be asked."""
    if not _by_build(ground, cells[:1]):
        return None, ""
    try:
        found, facts, _ = _answered(ground, asking, build, cells)
    except HostUnreachable:
        raise
    except HostError as error:
        return None, error.message
    return _asked(ground, asking, found, {build: facts}), ""


def _answered(
    ground: Ground, asking: Asking, build: str, cells: Sequence[Cell]
) -> tuple[dict[str, Resolved], BuildFacts, list[Note]]:
    """Return what one build makes of its cells, what it is, and what it read in vain."""
    world = ground.sweep.builds[build].rehearsal
    if world is not None:
        return *_foretold(ground, asking, Foreteller(world), cells), []
    said = _ask(ground, asking, build, cells)
    return (
        answers_of(said, cells),
        _facts_of(ground, said, asking, cells),
        _unread(ground, build, said),
    )


def _portions(expanded: Expanded, count: int) -> tuple[Expanded, list[list[Cell]]]:
    """Return the matrix as far as it is asked about, and its cells, a question at a time.

    A matrix that is too large is asked about in portions drawn from all of it, the same ones
    every time; what no portion holds yet is left out of it.
    """
    rows = expanded.cells.rows
    if len(rows) <= MOST_CELLS:
        return expanded, [_distinct(expanded)]
    order = np.random.default_rng(0).permutation(len(rows))
    drawn = [
        sorted(int(place) for place in order[start : start + MOST_CELLS])
        for start in range(0, min(count * MOST_CELLS, len(rows)), MOST_CELLS)
    ]
    taken = sorted(place for places in drawn for place in places)
    axes = expanded.cells.axes
    part = replace(expanded, cells=Cells(axes, [rows[place] for place in taken]))
    questions = [list(Cells(axes, [rows[place] for place in places])) for places in drawn]
    first = {cell.key: cell for cell in (*expanded.includes, *questions[0])}
    return part, [list(first.values()), *questions[1:]]


def unasked(ground: Ground) -> int:
    """Return how many cells of the matrix are too many to be asked about yet."""
    if ground.settled is None:
        return 0
    whole = expand(ground.sweep, ground.tables, is_resolved_later=True)
    return max(0, len(whole.cells) - ground.settled.asked)


def _left_for_later(ground: Ground, expanded: Expanded) -> Iterator[Note]:
    whole = len(expand(ground.sweep, ground.tables, is_resolved_later=True).cells)
    if len(expanded.cells) < whole:
        yield Note(
            _where(ground),
            f"{whole:,} cells are too many to ask SGLang about each: {len(expanded.cells):,} of "
            "them, drawn from the whole matrix, are asked about and swept; the others follow "
            "when nothing is left of those",
        )


def _unread(ground: Ground, build: str, said: Mapping[str, Any]) -> list[Note]:
    """Say which environment variables are set in vain."""
    version = said.get("sglang_version") or "this SGLang"
    notes = []
    for name, near in (said.get("unread_env") or {}).items():
        where = ground.sweep.where.get(f"matrix.env.{name}") or ground.sweep.where.get(
            f"launch.env.{name}", _where(ground)
        )
        hint = f"; is {near[0]} meant?" if near else ""
        notes.append(
            Note(where, f"build '{build}': no file of SGLang {version} reads {name}{hint}")
        )
    return notes


def _distinct(expanded: Expanded) -> list[Cell]:
    return list({cell.key: cell for cell in (*expanded.includes, *expanded.cells)}.values())


def _where(ground: Ground) -> str:
    return ground.sweep.where.get("matrix", str(ground.sweep.source))


def _noted(ground: Ground, *notes: Note) -> Ground:
    expanded = ground.expanded
    return replace(ground, expanded=replace(expanded, notes=(*expanded.notes, *notes)))


def _by_build(ground: Ground, cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Put cells of one build together; a world that rewrites nothing has nothing to say."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(ground.sweep.build_of(cell).name, []).append(cell)
    return {
        name: own
        for name, own in found.items()
        if (world := ground.sweep.builds[name].rehearsal) is None or Foreteller(world).answers
    }


def _foretold(
    ground: Ground, asking: Asking, world: Foreteller, cells: Sequence[Cell]
) -> tuple[dict[str, Resolved], BuildFacts]:
    """Return what a stand-in makes of its cells; no host is needed for it."""
    found = {}
    for cell in cells:
        command = asking.command(cell)
        try:
            args = world.server_args(command.argv[4:], command.env)
        except RefusedError as said:
            found[cell.key] = answer_of({}, {"state": "refused", "error": str(said)})
        else:
            found[cell.key] = Resolved(state=State.RESOLVED, effective=args)
    models = {ground.sweep.model_of(cell).target: world.architecture for cell in cells}
    facts = BuildFacts(
        version=world.version, gpu=GPU, arch=ARCH, architectures=models, is_described=True
    )
    return found, facts


def _asked(
    ground: Ground,
    asking: Asking,
    answers: Mapping[str, Resolved],
    builds: Mapping[str, BuildFacts],
) -> Asked:
    def setting(cell: Cell) -> str:
        command = asking.command(cell)
        sweep = ground.sweep
        env = sorted(command.env.items())
        return json.dumps([sweep.build_of(cell).name, sweep.model_of(cell).name, env])

    return Asked(
        sweep=ground.sweep,
        tables=ground.tables,
        answers=answers,
        builds=builds,
        setting=setting,
        env=lambda cell: asking.command(cell).env,
    )


def _ask(ground: Ground, asking: Asking, build: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """Ask one build about its cells, or find what it answered before.

    Raises:
        HostError: it cannot say, in its own words.
    """
    question = json.dumps(_question(ground, asking, cells), sort_keys=True).encode("ascii")
    program = (resources.files("sglsweep.onhost") / "resolve.py").read_bytes()
    kept = (
        asking.cache / f"{_key(ground, build, program + question)}.json" if asking.cache else None
    )
    if kept is not None and (known := _kept(kept)) is not None:
        return known
    said = ask_build(ground.host, ground.pythons[build], program, question, count=len(cells))
    if kept is not None:
        _keep(kept, said)
    return said


def _kept(path: Path) -> dict[str, Any] | None:
    """Return an answer of before; None where there is none, or half of one."""
    try:
        said = json.loads(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _keep(path: Path, said: Mapping[str, Any]) -> None:
    """Keep an answer. Without it the question is only asked again: a full disk stops nothing."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said), encoding="ascii")


def _question(ground: Ground, asking: Asking, cells: Sequence[Cell]) -> dict[str, object]:
    commands = [asking.command(cell) for cell in cells]
    return {
        "cwd": ground.cwd,
        "gpu": asking.gpu.to_json() if asking.gpu else None,
        "configs": dict(asking.configs),
        # What stands in `${NAME}` is a secret: it stays here, and decides no flag.
        "cells": [
            {"argv": list(c.argv[2:]), "env": {n: v for n, v in c.env.items() if "${" not in v}}
            for c in commands
        ],
    }


def _key(ground: Ground, build: str, asked: bytes) -> str:
    """Name an answer by all that it depends on: the question, the build, the host."""
    host = f"{ground.pythons[build]} {ground.facts.get('fingerprint')} {ground.host.name}"
    return hashlib.sha256(asked + host.encode()).hexdigest()[:16]


def ask_build(
    host: Host, python: str, program: bytes, question: bytes, *, count: int
) -> dict[str, Any]:
    """Run the question on the host, by the build's own Python; nothing is left there.

    Raises:
        HostError: no answer, or that SGLang cannot be used for it.
    """
    answer = host.run(
        [python, "-c", _BOOT, str(len(program)), "cells"],
        stdin=program + question,
        timeout_s=_START_S + _EACH_S * count,
    )
    try:
        said = json.loads(answer.stdout)
    except ValueError:
        said = None
    if isinstance(said, dict) and said.get("ok"):
        return said
    error = (said or {}).get("error") or answer.stderr.decode("utf-8", "replace")
    lines = str(error).strip().splitlines() or [f"exit status {answer.exit_status}"]
    raise HostError(lines[-1], next_step="Set `resolve: false` to sweep without asking.")


def _facts_of(
    ground: Ground, said: Mapping[str, Any], asking: Asking, cells: Sequence[Cell]
) -> BuildFacts:
    gpu = said.get("gpu") or {}
    capability = gpu.get("capability") or []
    found: Mapping[str, str] = said.get("architectures") or {}
    words = {
        ground.sweep.model_of(cell).target: _model_word(asking.command(cell)) for cell in cells
    }
    return BuildFacts(
        version=str(said.get("sglang_version") or ""),
        gpu=str(gpu.get("name") or ""),
        arch=f"sm{capability[0]}{capability[1]}" if capability else "",
        architectures={target: found.get(word, "") for target, word in words.items()},
        assumed=tuple(said.get("assumed") or ()),
        is_described=bool(gpu.get("is_described")),
        import_s=float(said.get("import_s") or 0),
        resolve_s=float(said.get("resolve_s") or 0),
    )


def _model_word(command: Command) -> str:
    words = command.argv
    return words[words.index("--model-path") + 1] if "--model-path" in words else ""
