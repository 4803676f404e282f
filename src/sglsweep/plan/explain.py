"""Goal explain: which changes against the user's own starting cell were needed to serve.

A search that found a serving cell has mostly changed more than it had to. Each change is taken
back: one that still serves without was not needed, one that fails without is, and the pair of
attempts shows it. Changes that are likely not needed are taken back together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from sglsweep.matrix import NO_EFFECT
from sglsweep.plan.belief import believe
from sglsweep.plan.bisect import nearest_serving
from sglsweep.plan.outlook import outlook
from sglsweep.plan.split import whole
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import table_of
from sglsweep.plan.why import joined, percent
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.matrix import Cell, Cells
    from sglsweep.plan.strategy import Evidence

MOST_TOGETHER = 4096
"""Sets of changes looked at; beyond it only the small ones."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Flags that go back to what the starting cell has, and the cell that makes."""

    flags: tuple[str, ...]
    cell: Cell


def next_proof(cells: Cells, known: Sequence[Evidence]) -> Launch | Finish:
    """Return the next change to take back; Finish once every one that is left was needed.

    `known` starts with the user's own cell and holds a serving attempt.
    """
    start = next((entry for entry in known if entry.verdict is not Verdict.SERVING), None)
    if start is None:
        return Finish(f"attempt {known[0].number}, the first, serves as it is")
    good = nearest_serving(start, known)
    assert good is not None  # noqa: S101 - the caller has seen one
    table = table_of(cells)
    tried = {entry.cell.key for entry in known}
    open_changes = [c for c in _changes(cells, start, good) if c.cell.key not in tried]
    if not any(len(change.flags) == 1 for change in open_changes):
        return Finish(_needed(start, good))
    belief = believe(table, known)
    chances = outlook(whole(table.encode(c.cell for c in open_changes)), belief).chances
    worth = [
        float(chance) * len(change.flags)
        for chance, change in zip(chances, open_changes, strict=True)
    ]
    best = max(range(len(worth)), key=lambda at: worth[at])
    return Launch(open_changes[best].cell, _why(open_changes[best], good, float(chances[best])))


def _changes(cells: Cells, start: Evidence, good: Evidence) -> Iterator[_Change]:
    """Yield sets of flags of the serving cell to take back, those that make a listed cell."""
    table = table_of(cells)
    differing = good.cell.difference(start.cell)
    asleep = [name for name, value in good.cell.values.items() if value == NO_EFFECT]
    seen = 0
    for size in range(1, len(differing)):
        for flags in combinations(differing, size):
            back = {flag: start.cell.get(flag) for flag in (*flags, *asleep)}
            cell = good.cell.with_values(back)
            index = table.find(cell)
            if index is not None:
                yield _Change(flags, cells[index])
            seen += 1
            if seen >= MOST_TOGETHER:
                return


def _why(change: _Change, good: Evidence, chance: float) -> str:
    was = "was" if len(change.flags) == 1 else "were"
    return (
        f"attempt {good.number}, which serves, with {joined(change.flags)} as at the start: was "
        f"that change needed? chance that it {was} not {percent(chance)}"
    )


def _needed(start: Evidence, good: Evidence) -> str:
    flags = good.cell.difference(start.cell)
    return (
        f"attempt {good.number} serves with the fewest changes against attempt {start.number}: "
        f"{joined(flags)}; every one of them that could be taken back alone was needed"
    )
