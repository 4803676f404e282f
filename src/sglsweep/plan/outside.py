"""What would help outside the matrix: catalogue remedies, and builds that have a fix.

A remedy is worth a launch where the cell that failed would otherwise be better than any cell of
the matrix. It is launched as the failing cell with the remedy's values, once, and its outcome
counts like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.matrix import Cell, spell
from sglsweep.plan.belief import believe
from sglsweep.plan.outlook import outlook
from sglsweep.plan.split import whole
from sglsweep.plan.strategy import Launch
from sglsweep.plan.table import table_of, telling
from sglsweep.plan.why import in_short, joined, percent
from sglsweep.plan.wider import with_values_of
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Cells, Value
    from sglsweep.plan.forecast import Forecast
    from sglsweep.plan.strategy import Evidence

HELPS = 0.5
"""Chance that a remedy of the catalogue does what it is said to do."""
MOST_HELPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """One thing that would help, likeliest first in a list.

    Attributes:
        kind: "remedy" or "build".
        blocks: share of the cells left that probably fail of the cause; None: none is left.
        values: the remedy's; None = not passed.
        fixed_in: what has the fix, for a build.
        source: where it is known from.
    """

    kind: str
    cause: str
    attempts: tuple[int, ...]
    blocks: float | None
    values: Mapping[str, Value] = field(default_factory=dict)
    fixed_in: str | None = None
    title: str = ""
    url: str = ""
    source: str = ""

    @property
    def what(self) -> str:
        """What to do, in a few words."""
        if self.kind == "build":
            return f"a build with {self.fixed_in} ({self.title}: {self.url})"
        return f"{settings(self.values)} (the catalogue's remedy; source: {in_short(self.source)})"

    @property
    def why(self) -> str:
        """One sentence."""
        numbers = joined([str(number) for number in self.attempts])
        attempts = "attempt" if len(self.attempts) == 1 else "attempts"
        told = f"{self.what} against {self.cause}, which ended {attempts} {numbers}"
        if self.blocks is None:
            return told
        return f"{told}, and probably ends {percent(self.blocks)} of what is left"


def to_json(expected: Forecast, found: Sequence[Help]) -> dict[str, object]:
    """Return a forecast and what would help as run.json holds them."""
    return {
        "next_serves": expected.next_serves,
        "any_serves": expected.any_serves,
        "cells_left": expected.cells_left,
        "attempts_left": expected.attempts_left,
        "why": expected.why,
        "walls": [
            {
                "cause": wall.cause,
                "values": dict(wall.values),
                "attempts": list(wall.attempts),
                "why": wall.why,
            }
            for wall in expected.walls
        ],
        "helps": [
            {
                "kind": one.kind,
                "cause": one.cause,
                "attempts": list(one.attempts),
                "blocks": one.blocks,
                "set": dict(one.values),
                "fixed_in": one.fixed_in,
                "title": one.title,
                "url": one.url,
                "source": one.source,
                "why": one.why,
            }
            for one in found
        ],
    }


def settings(values: Mapping[str, Value]) -> str:
    """Write flags as a reader says them: "kv-cache-dtype=bf16 and no page-size"."""
    return joined([_setting(name, value) for name, value in values.items()])


def _setting(name: str, value: Value) -> str:
    if value is None:
        return f"no {name}"
    if value is True:
        return name
    return f"{name}={value if isinstance(value, str) else spell(value)}"


def helps(
    cells: Cells,
    outcomes: Sequence[Outcome],
    blocked: Mapping[str, float],
    source: Callable[[Outcome], str],
) -> tuple[Help, ...]:
    """Return what would help, from the diagnoses of what failed.

    Args:
        cells: the matrix, as requested: what it holds is no help from outside.
        outcomes: all finished attempts.
        blocked: cause -> share of the cells left that probably fail of it.
        source: where the remedy in an outcome's diagnosis is known from.
    """
    found: dict[tuple[str, str], Help] = {}
    for outcome in outcomes:
        for one in _of(cells, outcomes, outcome, source):
            key = (one.cause, settings(one.values) or str(one.fixed_in))
            numbers = found[key].attempts if key in found else ()
            found[key] = _with(one, (*numbers, outcome.attempt.number), blocked)
    ranked = sorted(found.values(), key=lambda one: (-(one.blocks or 0.0), -len(one.attempts)))
    return tuple(ranked[:MOST_HELPS])


def _of(
    cells: Cells,
    outcomes: Sequence[Outcome],
    outcome: Outcome,
    source: Callable[[Outcome], str],
) -> Iterator[Help]:
    diagnosis, number = outcome.diagnosis, outcome.attempt.number
    if outcome.verdict is Verdict.SERVING or not outcome.is_evidence:
        return
    cause = diagnosis.cause or outcome.verdict.value
    is_new = _is_outside(cells, outcome) and not _is_tried(outcome, outcomes)
    if is_new and _remedied(outcome) is not None:
        yield Help(
            kind="remedy",
            cause=cause,
            attempts=(number,),
            blocks=None,
            values=dict(diagnosis.remedy),
            source=source(outcome),
        )
    for issue in diagnosis.known_issues:
        if issue.fixed_in:
            yield Help(
                kind="build",
                cause=cause,
                attempts=(number,),
                blocks=None,
                fixed_in=issue.fixed_in,
                title=issue.title,
                url=issue.url,
                source=issue.url,
            )


def _with(one: Help, numbers: tuple[int, ...], blocked: Mapping[str, float]) -> Help:
    return Help(
        kind=one.kind,
        cause=one.cause,
        attempts=numbers,
        blocks=blocked.get(one.cause, 0.0) if blocked else None,
        values=one.values,
        fixed_in=one.fixed_in,
        title=one.title,
        url=one.url,
        source=one.source,
    )


def _remedied(outcome: Outcome) -> Cell | None:
    """Return the cell with its remedy; None where there is none, or the cell has it already."""
    changes = {
        name: value
        for name, value in outcome.diagnosis.remedy.items()
        if spell(outcome.attempt.cell.get(name)) != spell(value)
    }
    return outcome.attempt.cell.with_values(changes) if changes else None


def _is_outside(cells: Cells, outcome: Outcome) -> bool:
    """True if the remedy has a value that no axis lists; else excludes and refusals decide."""
    listed = {axis.name: {spell(value) for value in axis.values} for axis in cells.axes}
    return any(
        spell(value) not in listed.get(name, set())
        for name, value in outcome.diagnosis.remedy.items()
    )


def _is_tried(outcome: Outcome, outcomes: Sequence[Outcome]) -> bool:
    """True if an attempt had these very values, whatever else it had: once is enough."""
    remedy = outcome.diagnosis.remedy
    return any(
        all(
            name in other.attempt.cell.values
            and spell(other.attempt.cell.get(name)) == spell(value)
            for name, value in remedy.items()
        )
        for other in outcomes
        if other.is_evidence
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What a decision about remedies depends on.

    Attributes:
        cells: the matrix as the strategy sees it; `requested` as it is launched.
        history: the attempts as the strategy sees them.
        seen: a requested cell as the strategy sees it.
        may_launch: False for flags that the build does not know, and for what is excluded.
    """

    cells: Cells
    requested: Cells
    history: Sequence[Evidence]
    outcomes: Sequence[Outcome]
    running: Sequence[Attempt]
    seen: Callable[[Cell], Cell]
    source: Callable[[Outcome], str]
    may_launch: Callable[[Outcome, Cell], bool]


def next_remedy(given: Remedies, *, better_than: float) -> Launch | None:
    """Return the remedy's launch that is likelier to serve than `better_than`, if there is one."""
    known = telling(given.history)
    begun = {a.cell.key for a in (*given.running, *(o.attempt for o in given.outcomes))}
    open_ones = [
        (outcome, cell)
        for outcome in given.outcomes
        if outcome.is_evidence
        and outcome.verdict is not Verdict.SERVING
        and (cell := _remedied(outcome)) is not None
        and cell.key not in begun
        and _is_outside(given.requested, outcome)
        and not _is_tried(outcome, given.outcomes)
        and given.may_launch(outcome, cell)
    ]
    if not open_ones or not known:
        return None
    chances = _chances(given, known, open_ones)
    best = max(range(len(open_ones)), key=lambda at: chances[at])
    if chances[best] <= better_than:
        return None
    outcome, cell = open_ones[best]
    cause = outcome.diagnosis.cause or outcome.verdict.value
    number, source = outcome.attempt.number, in_short(given.source(outcome))
    why = (
        f"outside the matrix: the remedy of {cause}, from {source}: attempt {number} with "
        f"{settings(outcome.diagnosis.remedy)}; chance to serve {percent(chances[best])}"
    )
    return Launch(cell, why, relaunch_of=number, chance=chances[best])


def _chances(
    given: Remedies, known: Sequence[Evidence], open_ones: Sequence[tuple[Outcome, Cell]]
) -> list[float]:
    """Return for each remedied cell its chance to serve, its own cause being gone if it helps."""
    cells = [given.seen(cell) for _, cell in open_ones]
    table = table_of(with_values_of(given.cells, [*(entry.cell for entry in known), *cells]))
    belief = believe(table, known)
    seen = outlook(whole(table.encode(cells)), belief)
    chances = []
    for place, (outcome, _) in enumerate(open_ones):
        chance = HELPS * float(seen.clean[place])
        for (cause, _, _), clear in zip(belief.readings, seen.clear_of, strict=True):
            if cause != outcome.diagnosis.cause:
                chance *= float(clear[place])
        chances.append(chance)
    return chances
