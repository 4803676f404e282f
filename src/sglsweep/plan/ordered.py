"""Strategies that follow an order fixed beforehand: the order as listed, and chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.goal import goal_reached
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import table_of, tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Cells
    from sglsweep.plan.goal import Goal
    from sglsweep.plan.strategy import Evidence

ALL_TRIED = "every cell of the matrix has been tried"


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells in the order of the matrix, as a nested loop would launch them."""

    goal: Goal

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the first cell that has not been tried."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        left = np.flatnonzero(~tried(table_of(cells), history))
        if not left.size:
            return Finish(ALL_TRIED)
        return Launch(cells[int(left[0])], "next in the order of the matrix")


@dataclass(frozen=True, slots=True)
class Random:
    """The cells in an order drawn by the seed."""

    seed: int
    goal: Goal

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the first cell of the drawn order that has not been tried."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        index = first_by_chance(cells, history, self.seed)
        if index is None:
            return Finish(ALL_TRIED)
        return Launch(cells[index], f"drawn at random, seed {self.seed}")


def first_by_chance(cells: Cells, history: Sequence[Evidence], seed: int) -> int | None:
    """Return the first untried cell of the order that `seed` draws; None when none is left."""
    order = np.random.default_rng(seed).permutation(len(cells))
    left = order[~tried(table_of(cells), history)[order]]
    return int(left[0]) if left.size else None
