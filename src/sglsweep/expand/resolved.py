"""What SGLang's own resolution of the cells does to a matrix: refused, equal, known to fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.catalogue import incompatible, inert
from sglsweep.config.mistakes import Note
from sglsweep.expand.scope import EFFECTIVE, Scope, agrees
from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
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
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sglsweep.catalogue.incompatible import Incompatible
    from sglsweep.config.sweep import Exclude, Sweep
    from sglsweep.expand.expand import Expanded
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Cell, Value

_NOT_FORESEEN = INCIDENTAL | {"model_path", "tokenizer_path", "served_model_name"}
"""What differs between a question and a launch by nature: addresses, chance, names of files."""


class State(StrEnum):
    """What came of asking SGLang about a cell."""

    RESOLVED = "resolved"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """One cell's answer.

    Attributes:
        effective: SGLang's field -> value; empty unless resolved.
        error: SGLang's own exception and message, or why nothing is known.
        verdict: of a refused cell, by the catalogue: bad-config or kernel-unsupported.
        cause: of a refused cell, by the catalogue. next_step: what helps, where that is known.
        lines: what it logs meanwhile, `LEVEL: text`.
        unknown: what the answer was guessed for: the host could not be asked.
    """

    state: State
    effective: Mapping[str, object] = field(default_factory=dict, repr=False)
    error: str = ""
    verdict: Verdict | None = None
    cause: str = ""
    next_step: str = ""
    lines: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """What an answer depends on beside the cell.

    Attributes:
        arch: `sm120` and the like; "" = no GPU, or not known.
        architectures: model -> the class that its config.json names.
        assumed: packages that are not installed where the question was asked.
        is_described: the GPU is one that the user described.
    """

    version: str = ""
    gpu: str = ""
    arch: str = ""
    architectures: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    is_described: bool = False
    import_s: float = 0.0
    resolve_s: float = 0.0

    def after(self, earlier: BuildFacts | None) -> BuildFacts:
        """Return the same with the time and the models of an earlier question to the build."""
        if earlier is None:
            return self
        return replace(
            self,
            architectures={**earlier.architectures, **self.architectures},
            import_s=self.import_s + earlier.import_s,
            resolve_s=self.resolve_s + earlier.resolve_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A cell that SGLang would not start with, in its own words: an outcome in phase args."""

    cell: Cell
    because: str
    verdict: Verdict = Verdict.BAD_CONFIG
    cause: str = ""
    next_step: str = ""

    @classmethod
    def by(cls, cell: Cell, answer: Resolved) -> Refused:
        """Return what an answer that refuses comes to."""
        return cls(
            cell=cell,
            because=answer.error,
            verdict=answer.verdict or Verdict.BAD_CONFIG,
            cause=answer.cause,
            next_step=answer.next_step,
        )

    @property
    def told(self) -> str:
        """SGLang's words, and what the catalogue makes of them."""
        named = f" {self.cause}" if self.cause and ":" not in self.cause else ""
        return f"{self.because} [{self.verdict}{named}]"

    def to_json(self) -> dict[str, object]:
        """Return it as `--json` and run.json have it."""
        return {
            "cell": dict(self.cell.values),
            "because": self.because,
            "verdict": str(self.verdict),
            "phase": str(Phase.ARGS),
            "cause": self.cause or None,
            "next_step": self.next_step or None,
        }


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything the settling of a matrix depends on.

    Attributes:
        answers: key of a cell -> what its build made of it; a missing one is not known.
        builds: name of a build -> what it is.
        setting: what no argument of a cell shows: its build, environment and model.
        env: the environment of a cell.
    """

    sweep: Sweep
    tables: Mapping[str, FlagTable]
    answers: Mapping[str, Resolved]
    builds: Mapping[str, BuildFacts]
    setting: Callable[[Cell], str]
    env: Callable[[Cell], Mapping[str, str]]


def settle(expanded: Expanded, asked: Asked) -> Settled:
    """Take refused, excluded and equal cells out of a matrix, and put suspect ones last.

    `expanded` is the expansion without excludes on effective values: they are judged here.
    """
    excludes = _EffectiveExcludes(asked)
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


class _EffectiveExcludes:
    """The excludes that speak of effective values; remembers which of them met a cell."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._scope = Scope(asked.sweep, asked.tables)
        self._rules = [e for e in asked.sweep.excludes if speaks_of_effective(e)]
        self._met: set[str] = set()
        self._seen: dict[str, set[str]] = {}

    def reason(self, cell: Cell) -> str:
        """Return why an exclude takes the cell out; "" where none does."""
        for rule in self._rules:
            if all(self._holds(cell, key, wanted) for key, wanted in rule.when.items()):
                self._met.add(rule.where)
                return rule.because
        return ""

    def notes(self) -> tuple[Note, ...]:
        """Say which excludes met no cell, and what SGLang made of the flags they speak of."""
        return tuple(
            Note(rule.where, f"this exclude meets no cell: {self._told(rule)}")
            for rule in self._rules
            if rule.where not in self._met
        )

    def _told(self, rule: Exclude) -> str:
        keys = [key for key in rule.when if key.startswith(EFFECTIVE)]
        seen = {key: ", ".join(sorted(self._seen.get(key, ()))) or "nothing known" for key in keys}
        return "; ".join(
            f"SGLang makes of {k.removeprefix(EFFECTIVE)}: {v}" for k, v in seen.items()
        )

    def _holds(self, cell: Cell, key: str, wanted: tuple[Value, ...]) -> bool:
        name = key.removeprefix(EFFECTIVE)
        position = self._scope.axis(name)
        requested = (
            self._scope.constant(name)
            if position is None
            else cell.get(self._asked.sweep.axes[position].name)
        )
        if key == name:
            return agrees(requested, wanted)
        answer = self._asked.answers.get(cell.key)
        if answer is None or answer.state is not State.RESOLVED:
            # As before SGLang was asked: what a cell requests is all that is known of it.
            return requested is not None and agrees(requested, wanted)
        value = effective_of(answer.effective, name)
        self._seen.setdefault(key, set()).add(str(value))
        return agrees(value, (*wanted, *_alike(name, wanted)))


def _alike(name: str, wanted: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(
        other for value in wanted if isinstance(value, str) for other in same_values(name, value)
    )


def effective_of(effective: Mapping[str, object], flag: str) -> Value:
    """Return what a flag resolved to, by any spelling of it; None where it is no plain value."""
    value = effective.get(flag.replace("-", "_"))
    if value is None:
        value = by_flag(effective).get(canonical(flag))
    return value if value is None or isinstance(value, bool | int | float | str) else None


def speaks_of_effective(exclude: Exclude) -> bool:
    """True for an exclude with an `effective.FLAG` among its keys."""
    return any(key.startswith(EFFECTIVE) for key in exclude.when)
