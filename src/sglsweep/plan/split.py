"""Cells as pairs of halves: what is worked out for each half is looked up for each cell.

A matrix of 34,560 cells of eight axes has 360 left and 96 right halves. Sums over pairs of axes
and comparisons with a failed cell are made on the halves; a cell costs one look-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Codes = NDArray[np.int16]

MOST_WASTE = 2.0
"""Halves are used where not more than this many pairs of halves stand for one cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Distinct left and right halves of cells.

    Attributes:
        left: values of the first axes, one row a half.
        right: values of the other axes.
        place: for each cell the position of its pair, left half first; None: the cells are all
            pairs, in order.
    """

    left: Codes
    right: Codes
    place: NDArray[np.intp] | None

    def cells(self, pairs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each cell from the values of all pairs (left by right)."""
        flat = pairs.ravel()
        return flat if self.place is None else flat[self.place]


def split_of(codes: Codes) -> Split:
    """Return the halves, cut where there are fewest; whole cells where halves save nothing."""
    count, axes = codes.shape
    sizes = [int(size) + 1 for size in codes.max(axis=0, initial=0)]
    best, fewest = None, count + 1
    for cut in range(1, axes):
        left = _Half.of(codes[:, :cut], sizes[:cut])
        right = _Half.of(codes[:, cut:], sizes[cut:])
        if left is None or right is None:
            continue
        halves = len(left.rows) + len(right.rows)
        if halves < fewest and len(left.rows) * len(right.rows) <= MOST_WASTE * count:
            best, fewest = (left, right), halves
    if best is None:
        return whole(codes)
    left, right = best
    place = left.number * len(right.rows) + right.number
    pairs = len(left.rows) * len(right.rows)
    in_order = len(place) == pairs and bool((place == np.arange(pairs)).all())
    return Split(left.rows, right.rows, None if in_order else place)


def whole(codes: Codes) -> Split:
    """Return cells that are not worth splitting: every right half is a whole cell."""
    return Split(np.empty((1, 0), dtype=codes.dtype), codes, None)


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """Distinct rows, and for each cell the number of its row."""

    rows: Codes
    number: NDArray[np.intp]

    @classmethod
    def of(cls, codes: Codes, sizes: Sequence[int]) -> _Half | None:
        """Return the half; None where its values make too many combinations to number."""
        room = math.prod(sizes)
        if room > MOST_WASTE * len(codes):
            return None
        number = np.ravel_multi_index(tuple(codes.T), tuple(sizes))
        taken = np.zeros(room, dtype=np.bool_)
        taken[number] = True
        found = np.flatnonzero(taken)
        rank = np.cumsum(taken) - 1
        rows = np.stack(np.unravel_index(found, tuple(sizes)), axis=1).astype(codes.dtype)
        return cls(rows, rank[number])
