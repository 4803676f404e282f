"""The one table of what fails: `plan.blame` over the run's attempts, and what `bisect` proved.

Every page, the JSON and `status` tell who is to blame from here, so that no two of them, and no
two sections of one, say different things about a flag.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.plan.blame import BlameRow, Status, flakes, table
from sglsweep.report.evidence import Known, asked, evidence_in, key
from sglsweep.report.held import resolved_to
from sglsweep.report.launches import HOST, Remembered, changes
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Cell, Value
    from sglsweep.report.groups import Group
    from sglsweep.report.launches import Change
    from sglsweep.report.view import Bisected, RunView

LIKELY = 0.5
"""From this chance on an unproven combination is named as the one; below it nothing is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A failing attempt, a better one, and all that differs between them (failing -> better)."""

    failing: Outcome
    better: Outcome
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A combination of settings that fails, or that was blamed and does not by itself.

    Attributes:
        values: setting as the run spells it -> text; None = not passed, "" = passed without a
            value.
        chance: 1 for proven, 0 for refuted, else how likely it is the one; None where `bisect`
            named it and could not prove it.
        failing: attempts that failed of the cause with the whole combination.
        against: attempts that serve with the whole combination.
        without: attempts that failed of the cause without it.
        proofs: for proven, pairs that differ in just its settings, one serving, one failing.
        is_bisected: `sglsweep bisect` named it.
        rivals: the next likeliest, with their chances.
    """

    values: Mapping[str, str | None]
    cause: str
    verdict: Verdict
    status: Status
    chance: float | None
    failing: tuple[Outcome, ...]
    against: tuple[Outcome, ...] = ()
    without: tuple[Outcome, ...] = ()
    proofs: tuple[Pair, ...] = ()
    is_bisected: bool = False
    rivals: tuple[tuple[Mapping[str, str | None], float], ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Its settings by the names that are the same for all spellings."""
        return frozenset(key(name) for name in self.values)

    def telling(self, pair: Pair) -> tuple[Change, ...]:
        """Return what of a pair's differences is the combination; the rest has no effect there."""
        return tuple(c for c in pair.changes if key(c.name) in self.keys) or pair.changes

    @property
    def is_proven(self) -> bool:
        """True where attempts leave no doubt."""
        return self.status is Status.PROVEN

    @property
    def is_refuted(self) -> bool:
        """True where an attempt serves with all of it."""
        return self.status is Status.REFUTED

    @property
    def is_named(self) -> bool:
        """True where it may be called the one that fails: proven, or likelier than all else."""
        if self.status is not Status.SUPPORTED:
            return self.is_proven
        return self.chance is None or self.chance >= LIKELY


def combinations(run: RunView) -> tuple[Combination, ...]:
    """Return every row: what fails in the order of its first attempt, then what is refuted."""
    return _combinations(run)


def combinations_of(run: RunView, group: Group) -> tuple[Combination, ...]:
    """Return the rows of one cause."""
    return tuple(
        c for c in combinations(run) if (c.verdict, c.cause) == (group.verdict, group.name)
    )


def known(run: RunView) -> Known:
    """Return the attempts as the table takes them."""
    return _known(run)


def twins_of(run: RunView, group: Group) -> tuple[tuple[int, int], ...]:
    """Return attempts of a cause that only show more of another attempt, with that one."""
    numbers = {o.attempt.number for o in group.outcomes}
    return tuple((a, b) for a, b in _known(run).twins.items() if a in numbers)


def flaky_attempts(run: RunView) -> tuple[int, ...]:
    """Return attempts whose failure did not repeat: no setting is blamed for it."""
    known = _known(run)
    named = [b.bad for b in run.bisections if b.is_flake and run.outcome(b.bad) in run.failing]
    return tuple(sorted({*flakes(known.axes, known.evidence), *named}))


def _make(run: RunView) -> tuple[Combination, ...]:
    known = _known(run)
    rows = table(known.axes, known.evidence) if known.axes else ()
    found = [_combination(run, known, row) for row in rows]
    found = [_as_resolved(row) for row in found if not _is_of_machine(known, row)]
    found = [row for row in found if row.against or not row.is_refuted]
    for bisected in run.bisections:
        found = _with_bisected(run, known, found, bisected)
    order = {status: place for place, status in enumerate(Status)}
    found.sort(key=lambda c: (c.status is Status.REFUTED, order[c.status]))
    return tuple(found)


def _as_resolved(row: Combination) -> Combination:
    """Keep of those that serve with a refuted one only what SGLang resolved as in the failing.

    A flag that is not passed may become another value in each launch.
    """
    if not row.is_refuted or not row.failing:
        return row
    names = [key(name) for name, text in row.values.items() if text is None]
    alike = [o for o in row.against if all(_ran_as(o, row.failing[0], name) for name in names)]
    return replace(row, against=tuple(alike))


def _ran_as(outcome: Outcome, failing: Outcome, name: str) -> bool:
    wanted = resolved_to(failing, name)
    known = {canonical(flag.replace("_", "-")) for flag in outcome.diagnosis.effective}
    return wanted is None or name not in known or resolved_to(outcome, name) == wanted


def _is_of_machine(known: Known, row: Combination) -> bool:
    """True for a guess about a failure that its signature lays to the machine, not to a flag."""
    names = {axis.name for axis in known.axes}
    blamed = {key(b.flag) for outcome in row.failing for b in outcome.diagnosis.blames}
    is_guess = row.status is Status.SUPPORTED and row.verdict is Verdict.ENV_ERROR
    return is_guess and not blamed & names


_known = Remembered(evidence_in, most=8)
_combinations = Remembered(_make, most=8)


def _combination(run: RunView, known: Known, row: BlameRow) -> Combination:
    outcomes = {o.attempt.number: o for o in run.outcomes}
    alike = [o for o in run.failing if _ended_like(o, row)]
    having, without = _split(known, alike, row.values)
    first = outcomes[row.attempts_for[0]]
    return Combination(
        values=_as_passed(known, first, row.values),
        cause=row.cause,
        verdict=row.verdict,
        status=row.status,
        chance=row.chance,
        failing=having if row.status is not Status.REFUTED else _those(run, row.attempts_for),
        against=_those(run, row.attempts_against),
        without=without if row.status is not Status.REFUTED else (),
        proofs=tuple(_plainest(run, known, bad, good) for good, bad in row.pairs),
        rivals=tuple((_as_passed(known, first, values), chance) for values, chance in row.rivals),
    )


def _ended_like(outcome: Outcome, row: BlameRow) -> bool:
    cause = outcome.diagnosis.cause or outcome.verdict.value
    return (outcome.verdict, cause) == (row.verdict, row.cause)


def _those(run: RunView, numbers: Iterable[int]) -> tuple[Outcome, ...]:
    wanted = set(numbers)
    return tuple(o for o in run.outcomes if o.attempt.number in wanted)


def _split(
    known: Known, outcomes: Sequence[Outcome], values: Mapping[str, Value]
) -> tuple[tuple[Outcome, ...], tuple[Outcome, ...]]:
    """Return the attempts that have the whole combination, and those that have not."""
    having = [o for o in outcomes if _has(known.cell(o.attempt.number), values)]
    return tuple(having), tuple(o for o in outcomes if o not in having)


def _has(cell: Cell | None, values: Mapping[str, Value]) -> bool:
    return cell is not None and all(cell.get(name) == value for name, value in values.items())


def _as_passed(
    known: Known, outcome: Outcome, values: Mapping[str, Value]
) -> dict[str, str | None]:
    """Return the combination as an attempt passed it; what the machine was stays as it is."""
    own = asked(outcome)
    return {
        known.written.get(name, name): str(value) if name.startswith(HOST) else own.get(name)
        for name, value in values.items()
    }


def _plainest(run: RunView, known: Known, bad: int, good: int) -> Pair:
    """Return the pair, or one of the same cells that differs in less beside what is shown."""
    cells = (known.cell(bad), known.cell(good))
    failing, serving = (
        [o for o in group if known.cell(o.attempt.number) == cell and not run.is_flaky(o)]
        for group, cell in zip((run.failing, run.serving), cells, strict=True)
    )
    outcomes = {o.attempt.number: o for o in run.outcomes}
    named = _pair(outcomes[bad], outcomes[good])
    pairs = [
        _pair(one, other)
        for one in failing
        if _ended_alike(one, named.failing)
        for other in serving
    ]
    return min([named, *pairs], key=lambda pair: len(pair.changes))


def _ended_alike(one: Outcome, other: Outcome) -> bool:
    return (one.verdict, one.diagnosis.cause) == (other.verdict, other.diagnosis.cause)


def _pair(failing: Outcome, better: Outcome) -> Pair:
    return Pair(failing=failing, better=better, changes=changes(failing, better))


# -- what `sglsweep bisect` named --------------------------------------------------------------


def _with_bisected(
    run: RunView, known: Known, found: list[Combination], bisected: Bisected
) -> list[Combination]:
    """Put a bisection's answer in the place of what the table only supposes."""
    made = _bisected(run, known, bisected)
    if made is None:
        return found
    same = [c for c in found if c.keys == made.keys and _is_of(c, made)]
    if any(c.is_proven or c.status is Status.REFUTED for c in same):
        return [replace(c, is_bisected=True) if c in same else c for c in found]
    return [*_rest(found, made), made]


def _bisected(run: RunView, known: Known, bisected: Bisected) -> Combination | None:
    bad, cell = run.outcome(bisected.bad), known.cell(bisected.bad)
    if bad is None or bad not in run.failing or cell is None or not bisected.values:
        return None
    names = [key(name) for name in bisected.values]
    values = {name: cell.get(name) for name in names}
    cause = bad.diagnosis.cause or bad.verdict.value
    alike = [o for o in run.failing if (o.diagnosis.cause or o.verdict.value) == cause]
    having, without = _split(known, alike, values)
    serving = [o for o in run.serving if not run.is_flaky(o)]
    against, _ = _split(known, serving, values)
    status = Status.PROVEN if bisected.is_proven else Status.SUPPORTED
    return Combination(
        values=_as_passed(known, bad, values),
        cause=cause,
        verdict=bad.verdict,
        status=Status.REFUTED if against else status,
        chance=0.0 if against else 1.0 if bisected.is_proven else None,
        failing=having,
        against=against,
        without=without,
        proofs=tuple(_proof(run, bisected)),
        is_bisected=True,
    )


def _proof(run: RunView, bisected: Bisected) -> Iterator[Pair]:
    bad, good = (
        None if number is None else run.outcome(number)
        for number in (bisected.failing, bisected.serving)
    )
    if bad and good:
        yield _pair(bad, good)


def _is_of(one: Combination, other: Combination) -> bool:
    return (one.verdict, one.cause) == (other.verdict, other.cause)


def _rest(found: Sequence[Combination], made: Combination) -> Iterator[Combination]:
    """Yield the rows that stay: those that a bisection has nothing to say about."""
    for row in found:
        is_guess = row.status is Status.SUPPORTED and _is_of(row, made)
        left = tuple(o for o in row.failing if o not in made.failing) if is_guess else row.failing
        if left:
            yield replace(row, failing=left)
