"""From a failing attempt to the smallest set of flags that makes the difference.

Between a failing and a serving attempt stand the cells that take some of their differing values
from one and some from the other. The fault is in such a cell exactly where the cell keeps the
faulty values, so each launch of one halves what is left. What every attempt of the run has
shown counts, and the likeliest culprit is tried alone first: if the serving cell fails in the
same way with just these values, and not with fewer, the case is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.matrix import Axis, Cell, Cells, Value, spell
from sglsweep.plan.belief import believe
from sglsweep.plan.clues import FINAL
from sglsweep.plan.outlook import outlook
from sglsweep.plan.split import whole
from sglsweep.plan.strategy import Launch
from sglsweep.plan.table import table_of, telling
from sglsweep.plan.why import joined
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sglsweep.plan.belief import Belief
    from sglsweep.plan.strategy import Evidence

    Set = frozenset[str]

GUESS = 0.35
"""From this chance on the likeliest culprit is tried alone, else what is left is halved."""
DOUBT = 0.12
"""From this chance on that the failure was a flake, it is launched again first."""
LEAST_WORTH = 0.001
"""A launch worth less ends for another reason almost surely: it is not made."""
CONFIRMED = 3
"""Launches that must fail alike before several flags are held guilty together."""
LIKELY = 0.8
"""From this chance on an unproven culprit is named alone, else all that may be guilty."""
MOST_FLAGS = 12
"""More differing flags than this are halved without looking at every subset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The smallest set of flags that makes the difference.

    Attributes:
        values: the failing attempt's values of these flags; empty where the failure was a flake.
        is_proven: False where launches that would decide it ended for other reasons.
        failing: an attempt that fails and differs from a serving one in just these flags.
        serving: that serving attempt.
        why: one plain sentence.
    """

    values: Mapping[str, Value]
    is_proven: bool
    failing: int | None
    serving: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    """A failing attempt, a serving one, and all that is known."""

    axes: Sequence[Axis]
    bad: Evidence
    good: Evidence
    history: Sequence[Evidence]
    may_launch: Callable[[Cell], bool] = lambda _: True

    @property
    def differing(self) -> tuple[str, ...]:
        """Flags on which the two attempts differ."""
        return self.good.cell.difference(self.bad.cell)

    def cell(self, kept: Set) -> Cell:
        """Return the serving cell with the failing attempt's values of some flags."""
        return self.good.cell.with_values({flag: self.bad.cell.get(flag) for flag in kept})

    def is_same_failure(self, entry: Evidence) -> bool:
        """True if an attempt failed as the failing one did."""
        return entry.verdict is not Verdict.SERVING and (
            entry.cause,
            entry.phase,
            entry.verdict,
        ) == (self.bad.cause, self.bad.phase, self.bad.verdict)

    def is_without_it(self, entry: Evidence) -> bool:
        """True if an attempt got past the point where the failing one ended."""
        return entry.verdict is Verdict.SERVING or entry.phase.order > self.bad.phase.order


def nearest_serving(bad: Evidence, history: Sequence[Evidence]) -> Evidence | None:
    """Return the serving attempt with the fewest differing flags, the latest among equals."""
    served = [entry for entry in history if entry.verdict is Verdict.SERVING]
    return min(served, key=lambda e: (len(e.cell.difference(bad.cell)), -e.number), default=None)


def next_step(case: Case) -> Launch | Culprit:
    """Return what to launch next, or the culprit once nothing is left to decide."""
    known = telling(case.history)
    again = [
        e for e in known if not e.cell.difference(case.bad.cell) and e.verdict is Verdict.SERVING
    ]
    if again:
        return _flake(case, again[0])
    belief = believe(table_of(Cells(_all_axes(case), [])), known)
    if _flake_chance(case, belief) > DOUBT:
        return _again(case, frozenset(case.differing))
    failing = _smallest_failing(case, known)
    named = _suspects(case, known, failing)
    is_closed = all(_is_needed(case, known, failing, flag) for flag in named)
    if is_closed or len(failing) == 1:
        if len(named) > 1 and _may_be_flakes(case, known):
            return _again(case, failing)
        return _culprit(case, known, named, is_proven=True)
    kept = _best_test(case, known, belief, failing)
    if kept is not None:
        return Launch(case.cell(kept), _reason(case, kept))
    return _by_other_values(case, known, failing, named) or _guess(case, known, belief, named)


def _again(case: Case, kept: Set) -> Launch:
    cell = case.cell(kept)
    number = _number_of(cell, case)
    return Launch(cell, f"attempt {number} again: its failure may be a flake")


def _number_of(cell: Cell, case: Case) -> int:
    """Return the attempt at a cell; a flag that is not named is one that is not passed."""
    same = (e.number for e in telling(case.history) if not e.cell.difference(cell))
    return next(same, case.bad.number)


def _may_be_flakes(case: Case, known: Sequence[Evidence]) -> bool:
    """True if too few launches failed alike to name several flags at once on their word."""
    alike = sum(map(case.is_same_failure, known))
    return case.bad.verdict not in FINAL and alike < CONFIRMED


def _smallest_failing(case: Case, known: Sequence[Evidence]) -> Set:
    """Return the smallest set of flags with which the serving cell is known to fail alike."""
    serving = {entry.cell.key for entry in known if entry.verdict is Verdict.SERVING}
    sets = [
        kept
        for entry, kept in _between(case, known)
        if case.is_same_failure(entry) and entry.cell.key not in serving
    ]
    return min(sets, key=lambda kept: (len(kept), sorted(kept)), default=frozenset(case.differing))


def _is_needed(case: Case, known: Sequence[Evidence], failing: Set, flag: str) -> bool:
    """True if a cell with all of the set but this flag is known not to fail alike."""
    return any(
        flag not in kept and failing - {flag} <= kept
        for entry, kept in _between(case, known)
        if case.is_without_it(entry)
    ) or any(case.is_without_it(entry) for entry in _beside(case, known, failing, flag))


def _suspects(case: Case, known: Sequence[Evidence], failing: Set) -> Set:
    """Return the flags of the smallest failing set that may be guilty: never none.

    One that fails alike with a third value is spared, unless the serving attempt's value helps:
    then the third value is as bad (null, say, which SGLang resolves to the failing one). Where
    that would spare every flag, some third value must be as bad, and none says anything.
    """
    spared = {
        flag
        for flag in failing
        if _is_spared(case, known, failing, flag) and not _is_needed(case, known, failing, flag)
    }
    return failing - spared or failing


def _is_spared(case: Case, known: Sequence[Evidence], failing: Set, flag: str) -> bool:
    """True if the smallest failing cell fails alike with another value of the flag."""
    return any(case.is_same_failure(entry) for entry in _beside(case, known, failing, flag))


def _beside(case: Case, known: Sequence[Evidence], failing: Set, flag: str) -> Iterator[Evidence]:
    """Yield attempts that differ from the smallest failing cell in just this flag."""
    cell = case.cell(failing)
    return (entry for entry in known if entry.cell.difference(cell) == (flag,))


def _by_other_values(
    case: Case, known: Sequence[Evidence], failing: Set, named: Set
) -> Launch | None:
    """Return the failing cell with a third value of one flag.

    For where another fault hides what the serving attempt's value would show.
    """
    tried = {entry.cell.key for entry in known}
    cell = case.cell(failing)
    number = _number_of(cell, case)
    for flag in sorted(named):
        if _is_needed(case, known, failing, flag):
            continue
        for axis in case.axes:
            for value in axis.values if axis.name == flag else ():
                other = cell.with_values({flag: value})
                if other.key not in tried and case.may_launch(other):
                    why = (
                        f"attempt {number} with {flag}={spell(value)}: the value of attempt "
                        f"{case.good.number} runs into another fault"
                    )
                    return Launch(other, why)
    return None


def _guess(case: Case, known: Sequence[Evidence], belief: Belief, named: Set) -> Culprit:
    """Return the likeliest culprit where no launch can prove it."""
    masses = _masses(case, belief, named)
    likeliest = max(masses, key=lambda flags: masses[flags], default=named)
    is_likely = masses.get(likeliest, 0.0) >= LIKELY
    return _culprit(case, known, likeliest if is_likely else named, is_proven=False)


def _between(case: Case, known: Sequence[Evidence]) -> Iterator[tuple[Evidence, Set]]:
    """Yield attempts at cells between the two, with the flags they keep of the failing one."""
    differing = frozenset(case.differing)
    for entry in known:
        if differing.issuperset(entry.cell.difference(case.good.cell)):
            kept = differing - frozenset(entry.cell.difference(case.bad.cell))
            if not case.cell(kept).difference(entry.cell):
                yield entry, kept


def _best_test(case: Case, known: Sequence[Evidence], belief: Belief, failing: Set) -> Set | None:
    """Return which of the failing attempt's values to keep in the next launch."""
    tried = {kept for _, kept in _between(case, known)}
    masses = _masses(case, belief, failing)
    guess = max(masses, key=lambda flags: masses[flags], default=failing)
    if masses.get(guess, 0.0) >= GUESS and guess != failing and _is_open(case, guess, tried):
        return guess
    tests = [kept for kept in _subsets(failing) if _is_open(case, kept, tried)]
    if not tests:
        return None
    worth = _worth(case, belief, masses, tests)
    best = int(np.argmax(worth))
    return tests[best] if worth[best] >= LEAST_WORTH else None


def _is_open(case: Case, kept: Set, tried: set[Set]) -> bool:
    return kept not in tried and case.may_launch(case.cell(kept))


def _subsets(failing: Set) -> list[Set]:
    """Return the tests: every proper subset, or all but one flag and halves of a long list."""
    flags = sorted(failing)
    if len(flags) <= MOST_FLAGS:
        sizes = range(len(flags) - 1, 0, -1)
        return [frozenset(kept) for size in sizes for kept in combinations(flags, size)]
    half = len(flags) // 2
    halves = [frozenset(flags[:half]), frozenset(flags[half:])]
    return [*halves, *(failing - {flag} for flag in flags)]


def _masses(case: Case, belief: Belief, failing: Set) -> dict[Set, float]:
    """Return the chance of each set of differing flags to be the culprit."""
    names = [axis.name for axis in _all_axes(case)]
    differing = set(case.differing)
    masses: dict[Set, float] = {}
    for readings in belief.readings.values():
        for reading in readings:
            for fault in reading.faults:
                if any(case.bad.number in member.numbers for member in fault.members):
                    chances = fault.chances * reading.weight
                    for row in np.flatnonzero(chances):
                        bits = np.flatnonzero(belief.space.bits[row])
                        flags = frozenset(names[axis] for axis in bits) & differing
                        if flags and flags <= failing:
                            masses[flags] = masses.get(flags, 0.0) + float(chances[row])
    total = sum(masses.values())
    return {flags: mass / total for flags, mass in masses.items()} if total > 0 else {}


def _worth(
    case: Case, belief: Belief, masses: Mapping[Set, float], tests: Sequence[Set]
) -> list[float]:
    """Return how evenly each test splits what is left, times its chance to be readable."""
    table = table_of(Cells(_all_axes(case), []))
    seen = outlook(whole(table.encode(case.cell(kept) for kept in tests)), belief)
    own = (case.bad.cause, case.bad.phase, case.bad.verdict)
    others = [
        clear for kind, clear in zip(belief.readings, seen.clear_of, strict=True) if kind != own
    ]
    clean = np.prod([seen.clean, *others], axis=0)
    worth = []
    for kept, readable in zip(tests, clean, strict=True):
        share = sum(mass for flags, mass in masses.items() if flags <= kept)
        even = min(share, 1.0 - share)
        worth.append((even + 1e-3) * float(readable))
    return worth


def _flake_chance(case: Case, belief: Belief) -> float:
    return sum(
        reading.weight
        for readings in belief.readings.values()
        for reading in readings
        if any(case.bad.number in failure.numbers for failure in reading.flakes)
    )


def _all_axes(case: Case) -> tuple[Axis, ...]:
    """Return the matrix's axes, and one for each flag that only the two attempts name."""
    names = {axis.name for axis in case.axes}
    more = sorted({*case.bad.cell.values, *case.good.cell.values} - names)
    return (
        *case.axes,
        *(
            Axis(name, tuple(_distinct(case.bad.cell.get(name), case.good.cell.get(name))))
            for name in more
        ),
    )


def _distinct(first: Value, second: Value) -> list[Value]:
    return [first] if spell(first) == spell(second) else [first, second]


def _culprit(case: Case, known: Sequence[Evidence], failing: Set, *, is_proven: bool) -> Culprit:
    values = {flag: case.bad.cell.get(flag) for flag in case.differing if flag in failing}
    pair = _pair(known, case, failing)
    words = joined([f"{flag}={spell(value)}" for flag, value in values.items()])
    shown = "makes" if len(values) == 1 else "together make"
    how = f": {pair[0]} serves, {pair[1]} fails, the rest being equal" if pair else ""
    doubt = "" if is_proven else ", as far as launches could tell"
    return Culprit(
        values=values,
        is_proven=is_proven,
        failing=pair[1] if pair else None,
        serving=pair[0] if pair else None,
        why=f"{words} {shown} the difference{how}{doubt}",
    )


def _pair(known: Sequence[Evidence], case: Case, failing: Set) -> tuple[int, int] | None:
    flags = tuple(sorted(failing))
    for served in known:
        for failed in known:
            if (
                served.verdict is Verdict.SERVING
                and case.is_same_failure(failed)
                and served.cell.difference(failed.cell) == flags
            ):
                return served.number, failed.number
    return None


def _flake(case: Case, again: Evidence) -> Culprit:
    return Culprit(
        values={},
        is_proven=True,
        failing=case.bad.number,
        serving=again.number,
        why=(
            f"attempt {case.bad.number} was a flake: attempt {again.number} launched the same "
            "cell and serves"
        ),
    )


def _reason(case: Case, kept: Set) -> str:
    flags = joined(sorted(kept))
    return (
        f"attempt {case.good.number}, which serves, with {flags} as in attempt "
        f"{case.bad.number}: {len(kept)} of {len(case.differing)} differing flags"
    )
