"""One flag at a time: what people do by hand, kept as a measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.goal import goal_reached
from sglsweep.plan.ordered import ALL_TRIED
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import table_of, telling, tried
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Cells
    from sglsweep.plan.goal import Goal
    from sglsweep.plan.strategy import Evidence


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """Start from the first cell, change one flag, keep a change that got further."""

    goal: Goal

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the first untried cell with the fewest changes from the furthest attempt."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        table = table_of(cells)
        left = np.flatnonzero(~tried(table, history))
        if not left.size:
            return Finish(ALL_TRIED)
        known = telling(history)
        if not known:
            return Launch(cells[int(left[0])], "the starting point: the first cell as listed")
        base = max(known, key=_progress)
        base_codes = table.encode([base.cell])[0]
        changes = np.count_nonzero(table.changed(table.codes[left], base_codes), axis=1)
        cell = cells[int(left[int(np.argmin(changes))])]
        changed = ", ".join(cell.difference(base.cell))
        return Launch(cell, f"attempt {base.number}, which got furthest, with {changed} changed")


def _progress(entry: Evidence) -> tuple[bool, int, int]:
    """How far an attempt got; the earlier one among equals, so that the base stays put."""
    return entry.verdict is Verdict.SERVING, entry.phase.order, -entry.number
