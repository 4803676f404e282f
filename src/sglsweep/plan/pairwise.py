"""Covering arrays: every pair of values once, then every triple, then chance.

The order to begin with can be chosen: triples at once, or more. Cells beside the array that were
launched (those listed under `include`) count: a row that shows nothing beyond them is left out.

A covering array buys evidence, not an early hit: each attempt shows as many new pairs of
values as it can. The arrays come from covertable; pairs that its rows cannot show because
their cells are excluded are covered by listed cells instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from covertable import make

from sglsweep.plan.goal import goal_reached
from sglsweep.plan.ordered import ALL_TRIED, first_by_chance
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import Table, table_of, telling, tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sglsweep.matrix import Cells
    from sglsweep.plan.goal import Goal
    from sglsweep.plan.strategy import Evidence

_WORDS = {2: "pairs", 3: "triples"}
ORDERS = range(2, 7)
"""Orders that can be asked for: beyond six, an array is hardly smaller than the matrix."""


def word_for(order: int) -> str:
    """Write "pairs", "triples", "combinations of 4"."""
    return _WORDS.get(order, f"combinations of {order}")


@dataclass(frozen=True, slots=True)
class Pairwise:
    """A covering array shuffled by the seed, then the next strength, then random."""

    seed: int
    goal: Goal
    order: int = 2

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the next row of the arrays that has not been tried."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        table = table_of(cells)
        taken = tried(table, history)
        last = max(self.order, *_WORDS)
        for strength in range(self.order, last + 1):
            rows = rows_to_launch(table, strength, history)
            order = np.random.default_rng([self.seed, strength]).permutation(len(rows))
            left = [rows[i] for i in order if not taken[rows[i]]]
            if left:
                return Launch(
                    cells[left[0]],
                    f"row {len(rows) - len(left) + 1} of {len(rows)} that show all "
                    f"{word_for(strength)} of values",
                )
        index = first_by_chance(cells, history, self.seed)
        if index is None:
            return Finish(ALL_TRIED)
        shown = word_for(last)
        return Launch(cells[index], f"all {shown} are shown; drawn at random, seed {self.seed}")


_ROWS: WeakKeyDictionary[Table, dict[int, tuple[int, ...]]] = WeakKeyDictionary()


def rows_to_launch(table: Table, strength: int, history: Sequence[Evidence]) -> tuple[int, ...]:
    """Return the rows of the array without those that show nothing beyond cells beside it."""
    rows = covering_rows(table, strength)
    mine = set(rows)
    launched = (table.find(entry.cell) for entry in telling(history))
    beside = [index for index in launched if index is not None and index not in mine]
    if not beside:
        return rows
    columns = _combination_ids(table, min(strength, len(table.names)))
    shown = np.zeros(int(columns.max(initial=-1)) + 1, dtype=np.bool_)
    shown[columns[beside].ravel()] = True
    needed = []
    for row in rows:
        if not shown[columns[row]].all():
            needed.append(row)
            shown[columns[row]] = True
    return tuple(needed)


def combinations_shown(table: Table, strength: int) -> int:
    """Return how many combinations of values there are that some listed cell has."""
    return len(np.unique(_combination_ids(table, min(strength, len(table.names)))))


def covering_rows(table: Table, strength: int) -> tuple[int, ...]:
    """Return listed cells that together hold every combination of `strength` values there is."""
    known = _ROWS.setdefault(table, {})
    if strength not in known:
        known[strength] = _cover(table, strength)
    return known[strength]


def _cover(table: Table, strength: int) -> tuple[int, ...]:
    sizes = tuple(len(np.unique(column)) for column in table.codes.T)
    strength = min(strength, len(sizes))
    rows = []
    if strength > 1:
        uniques = [np.unique(column) for column in table.codes.T]
        for picks in _array(sizes, strength):
            codes = np.asarray([u[p] for u, p in zip(uniques, picks, strict=True)], np.int16)
            index = table.index_of(codes)
            if index is not None:
                rows.append(index)
    return tuple(rows + _remaining(table, strength, rows))


@lru_cache(maxsize=8)
def _array(sizes: tuple[int, ...], strength: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(int(code) for code in row)
        for row in make([list(range(size)) for size in sizes], strength=strength)
    )


def _remaining(table: Table, strength: int, rows: list[int]) -> list[int]:
    """Return further cells, greedily, until every combination that exists is shown."""
    columns = _combination_ids(table, strength)
    shown = np.zeros(int(columns.max(initial=-1)) + 1, dtype=np.bool_)
    shown[columns[rows].ravel()] = True
    wanted = np.zeros_like(shown)
    wanted[columns.ravel()] = True
    more: list[int] = []
    while (wanted & ~shown).any():
        best = int(np.argmax(np.count_nonzero(~shown[columns], axis=1)))
        more.append(best)
        shown[columns[best]] = True
    return more


def _combination_ids(table: Table, strength: int) -> NDArray[np.int64]:
    """Number each cell's combinations of values: one column a set of axes."""
    sizes = [int(column.max(initial=0)) + 1 for column in table.codes.T]
    columns, offset = [], 0
    for axes in combinations(range(len(sizes)), strength):
        number = np.zeros(len(table), dtype=np.int64)
        for axis in axes:
            number = number * sizes[axis] + table.codes[:, axis]
        columns.append(number + offset)
        offset += int(np.prod([sizes[axis] for axis in axes]))
    if not columns:
        return np.zeros((len(table), 0), dtype=np.int64)
    return np.stack(columns, axis=1)
