"""What SGLang's own resolution of the cells does to a matrix: refused, equal, known to fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglsweep.catalogue import incompatible, inert
from sglsweep.expand.asked import Asked, BuildFacts, Refused, Resolved, State
from sglsweep.expand.effective_excludes import EffectiveExcludes
from sglsweep.matrix import Cells
from sglsweep.plan.effective import EffectiveCells, project
from sglsweep.plan.equal_cells import (
    INCIDENTAL,
    Candidate,
    Merged,
    agree,
    by_flag,
    functional_key,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglsweep.catalogue.incompatible import Incompatible
    from sglsweep.config.mistakes import Note
    from sglsweep.expand.expand import Expanded
    from sglsweep.matrix import Cell

_NOT_FORESEEN = INCIDENTAL | {
    "model_path",
    "tokenizer_path",
    "served_model_name",
    "disable_shared_experts_fusion",
}
"""What differs between a question and a launch by nature: addresses, chance, names of files, and
what the model sets while it is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A cell that meets the condition of something known not to work."""

    cell: Cell
    issue: Incompatible


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A matrix after SGLang was asked.

    Attributes:
        expanded: without what is refused, excluded or equal; what is known to fail stands last.
        excluded: how many cells each `exclude` with an `effective.FLAG` takes out.
        unknown: cells that nothing is known about; they are launched as they are.
        answers: key of a cell -> what its build made of it.
        configurations: different configurations among the cells that SGLang accepts, by its own
            resolution alone.
        asked: cells of the product that the matrix was made of before it was settled.
        effective: the cells that are left by what acts in them, for strategies and reports.
    """

    expanded: Expanded
    refused: tuple[Refused, ...]
    merged: tuple[Merged, ...]
    suspects: tuple[Suspect, ...]
    excluded: Mapping[str, int]
    unknown: int
    notes: tuple[Note, ...]
    builds: Mapping[str, BuildFacts] = field(default_factory=dict)
    answers: Mapping[str, Resolved] = field(default_factory=dict, repr=False)
    configurations: int
    asked: int
    effective: EffectiveCells = field(repr=False)


def settle(expanded: Expanded, asked: Asked) -> Settled:
    """Take refused, excluded and equal cells out of a matrix, and put suspect ones last.

    `expanded` is the expansion without excludes on effective values: they are judged here.
    """
    excludes = EffectiveExcludes(asked)
    cells = list(expanded.cells)
    includes = [cell for cell in expanded.includes if not _is_refused(asked, cell)]
    refused = [
        cell for cell in _distinct([*expanded.includes, *cells]) if _is_refused(asked, cell)
    ]
    excluded = {c.key: b for c in cells if (b := excludes.reason(c)) and not _is_refused(asked, c)}
    out = {cell.key for cell in refused} | set(excluded)
    candidates = list(_candidates(asked, includes, [c for c in cells if c.key not in out]))
    merged = merge(candidates)
    out |= {item.cell.key for item in merged}
    suspects = _suspects(asked, [c for c in _distinct([*includes, *cells]) if c.key not in out])
    last = {item.cell.key for item in suspects}
    kept = [index for index, cell in enumerate(cells) if cell.key not in out]
    kept.sort(key=lambda index: cells[index].key in last)
    counts = Counter(excluded.values())
    left = replace(
        expanded,
        cells=Cells(expanded.cells.axes, [expanded.cells.rows[index] for index in kept]),
        includes=tuple(includes),
        excluded_counts={**expanded.excluded_counts, **counts},
        notes=(*expanded.notes, *excludes.notes()),
    )
    return Settled(
        expanded=left,
        refused=tuple(Refused.by(cell, asked.answers[cell.key]) for cell in refused),
        merged=merged,
        suspects=suspects,
        excluded=dict(counts),
        unknown=sum(not _is_resolved(asked, c) for c in cells if not _is_refused(asked, c)),
        notes=excludes.notes(),
        builds=asked.builds,
        answers=asked.answers,
        configurations=len({functional_key(c, is_ruled=False)[0] for c in candidates}),
        asked=len(cells),
        effective=project(
            left.cells,
            {c.cell.key: c for c in candidates},
            {item.cell.key: item.speaker for item in merged},
        ),
    )


def equal_to(asked: Asked, cell: Cell, others: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return which of other cells SGLang resolves to the configuration of one."""
    candidates = {c.cell.key: c for c in _candidates(asked, [cell, *others], [])}
    if cell.key not in candidates:
        return ()
    key, _ = functional_key(candidates[cell.key])
    return tuple(
        c.cell
        for c in candidates.values()
        if c.cell.key != cell.key and functional_key(c)[0] == key
    )


def launched_otherwise(
    answer: Resolved | None, launched: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Return where a launch's own `server_args` differ from what was foreseen: flag -> both.

    `launched` is by names of flags, as a diagnosis has it. Empty where either is not known. Any
    difference is a mistake of this tool, or of a described GPU that is not the real one.
    """
    if answer is None or answer.state is not State.RESOLVED or not launched:
        return {}
    foreseen = {n.replace("_", "-"): v for n, v in answer.effective.items()}
    skipped = {name.replace("_", "-") for name in _NOT_FORESEEN}
    return {
        name: (value, launched[name])
        for name, value in foreseen.items()
        if name in launched and name not in skipped and not agree(name, value, launched[name])
    }


def _distinct(cells: Iterable[Cell]) -> list[Cell]:
    return list({cell.key: cell for cell in cells}.values())


def _is_refused(asked: Asked, cell: Cell) -> bool:
    answer = asked.answers.get(cell.key)
    return answer is not None and answer.state is State.REFUSED


def _is_resolved(asked: Asked, cell: Cell) -> bool:
    answer = asked.answers.get(cell.key)
    return answer is not None and answer.state is State.RESOLVED


def _facts(asked: Asked, cell: Cell) -> BuildFacts:
    return asked.builds.get(asked.sweep.build_of(cell).name) or BuildFacts()


def _architecture(asked: Asked, cell: Cell) -> str:
    return _facts(asked, cell).architectures.get(asked.sweep.model_of(cell).target, "")


def _candidates(
    asked: Asked, includes: Sequence[Cell], cells: Sequence[Cell]
) -> Iterator[Candidate]:
    fixed = {cell.key for cell in includes}
    for cell in (*includes, *cells):
        if not _is_resolved(asked, cell):
            continue
        yield Candidate(
            cell=cell,
            setting=asked.setting(cell),
            effective=asked.answers[cell.key].effective,
            rules=inert.rules_for(
                version=_facts(asked, cell).version,
                model=_architecture(asked, cell),
                env=asked.env(cell),
            ),
            is_fixed=cell.key in fixed,
        )


def _suspects(asked: Asked, cells: Sequence[Cell]) -> tuple[Suspect, ...]:
    return tuple(
        Suspect(cell=cell, issue=issue)
        for cell in cells
        if _is_resolved(asked, cell) and (issue := _known_issue(asked, cell)) is not None
    )


def _known_issue(asked: Asked, cell: Cell) -> Incompatible | None:
    facts, model = _facts(asked, cell), _architecture(asked, cell)
    if not (facts.version and facts.arch and model):
        return None
    known = incompatible.load().for_launch(version=facts.version, arch=facts.arch, model=model)
    own = asked.answers[cell.key].effective
    named: dict[str, object] = {
        **{f"env.{name}": value for name, value in asked.env(cell).items()},
        **{name.replace("_", "-"): value for name, value in own.items()},
        **by_flag(own),
    }
    plain = {name: value for name, value in named.items() if _is_value(value)}
    return next((entry for entry in known.incompatible if entry.holds(plain)), None)  # type: ignore[arg-type]  # _is_value above


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
