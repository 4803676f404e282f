"""When to stop: the chance that anything left serves, and what a sweep cannot mend."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.belief import believe
from sglsweep.plan.hints import hinted
from sglsweep.plan.outlook import outlook
from sglsweep.plan.prior import trusted
from sglsweep.plan.prospect import reached
from sglsweep.plan.table import table_of, telling, tried
from sglsweep.plan.why import joined, percent
from sglsweep.plan.wider import widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.matrix import Cells, Value
    from sglsweep.plan.belief import Belief
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Table

OFTEN = 4
"""Cells that failed alike before their fault is said to be in all that is left."""
OFTEN_OUTSIDE = 5
"""Cells without a common value that failed alike before the fault is said to be in no flag.

Four would end one of 432 plays in vain where most faults share a cause; five ended none.
"""
SURE = 0.9
LEAST_CULPRIT = 0.05
"""A combination less likely than this is not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A failure that no cell that is left can get round.

    Attributes:
        values: the values that it comes with, which every cell left has; empty where the
            failures have nothing in common, so that no listed flag is behind it.
        attempts: the attempts that ended with it.
    """

    cause: str
    values: Mapping[str, Value]
    attempts: tuple[int, ...]

    @property
    def why(self) -> str:
        """One sentence with what would help."""
        numbers = joined([str(number) for number in self.attempts])
        if self.values:
            flags = joined([f"{flag}={value}" for flag, value in self.values.items()])
            where = f"every cell left has {flags}"
        else:
            where = "they have no setting of the matrix in common, and nothing got past it"
        return (
            f"{numbers} ended with {self.cause}, and {where}: try a build with a fix, or add "
            "another value to the matrix"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the attempts that are left can be expected to bring.

    Attributes:
        next_serves: chance of the best cell to serve.
        any_serves: chance that one of the attempts that are left serves, at least: what they
            teach on the way makes it better. Cells that fail for one reason fail together.
        cells_left: cells that have not been tried.
        attempts_left: what the budget allows; None = no limit.
        blocked: cause -> share of the cells left that probably fail of it.
    """

    next_serves: float
    any_serves: float
    cells_left: int
    attempts_left: int | None = None
    walls: tuple[Wall, ...] = ()
    blocked: Mapping[str, float] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """One sentence for a reader who must decide whether to go on."""
        if self.walls:
            return self.walls[0].why
        if not self.cells_left:
            return "no cell is left"
        most = self.attempts_left
        some = "any of them" if most is None else f"one of the next {most}"
        told = f"{self.cells_left:,} cells are left; the best serves with a chance of "
        told += percent(self.next_serves)
        if not most and most is not None:
            return f"{told}, but the budget is spent"
        return told if most == 1 else f"{told}, {some} with {percent(self.any_serves)}"


def forecast(
    cells: Cells,
    history: Sequence[Evidence],
    *,
    attempts_left: int | None,
    priors: Sequence[Evidence] = (),
    hints: Sequence[Hint] = (),
) -> Forecast:
    """Return what further attempts can be expected to bring; `cells` and `history` as decided on.

    Raises:
        ValueError: the history is empty: nothing can be foretold.
    """
    own = telling(history)
    if not own:
        raise ValueError("no attempt says anything yet")
    known = [*telling(trusted(priors, own)), *own]
    table = table_of(widened(cells, known))
    left = ~tried(table, own)
    count = int(left.sum())
    if not count:
        return Forecast(next_serves=0.0, any_serves=0.0, cells_left=0, attempts_left=attempts_left)
    belief = believe(table, known)
    seen, published = outlook(table.split, belief), hinted(cells, hints, known)
    chances = np.where(left, seen.chances * published.factor, 0.0)
    best = float(chances.max())
    launches = count if attempts_left is None else min(attempts_left, count)
    several = partial(reached, table.codes, chances, belief, published, launches)
    blocked: dict[str, float] = {}
    for (cause, _, _), clear in zip(belief.readings, seen.clear_of, strict=True):
        blocked[cause] = max(blocked.get(cause, 0.0), 1.0 - float(clear[left].mean()))
    return Forecast(
        next_serves=best,
        any_serves=_any(launches, best, several),
        cells_left=count,
        attempts_left=attempts_left,
        walls=walls(table, known, belief),
        blocked=blocked,
    )


def _any(launches: int, best: float, several: Callable[[], float]) -> float:
    """Return the chance that one of so many launches serves; one launch is the best cell's."""
    if launches <= 1:
        return best * launches
    return max(best, several())


def walls(table: Table, known: Sequence[Evidence], belief: Belief) -> tuple[Wall, ...]:
    """Return the failures that no cell that is left can get round.

    The culprit need not be known: it is enough that every cell left has whatever it may be.
    """
    left = table.codes[~tried(table, [entry for entry in known if entry.is_own])]
    by_number = {entry.number: entry for entry in known}
    found = []
    for (cause, _, _), readings in belief.readings.items():
        for fault in max(readings, key=lambda reading: reading.weight).faults:
            numbers = tuple(sorted(n for m in fault.members for n in m.own))
            cells = sum(bool(m.own) for m in fault.members)
            if cells < OFTEN or not len(left):
                continue
            # A fault is in every cell left exactly where it lies in what all of them share.
            shared = (left == belief.clues.codes[fault.row]).all(axis=0)
            inside = ~(belief.space.bits & ~shared).any(axis=1)
            if fault.chances[inside].sum() >= SURE:
                culprits = belief.space.bits[inside & (fault.chances >= LEAST_CULPRIT)]
                names = [table.names[axis] for axis in np.flatnonzero(culprits.any(axis=0))]
                cell = by_number[numbers[0]].cell
                values = {name: cell.get(name) for name in names}
                found.append(Wall(cause=cause, values=values, attempts=numbers))
    return (*found, *_outside(table, belief))


def _outside(table: Table, belief: Belief) -> list[Wall]:
    """Return failures that share no value and that nothing got past: no flag is behind them."""
    varying = [len(values) > 1 for values in table.values]
    found = []
    for kind, failures in belief.clues.failures.items():
        rows = [failure.row for failure in failures if failure.own]
        if len(rows) < OFTEN_OUTSIDE:
            continue
        codes = belief.clues.codes[rows][:, varying]
        shares = (codes == codes[0]).all(axis=0).any()
        is_last = belief.clues.reach.max() <= belief.clues.reach[rows[0]]
        if is_last and not shares:
            numbers = tuple(sorted(n for failure in failures for n in failure.own))
            found.append(Wall(cause=kind[0], values={}, attempts=numbers))
    return found
