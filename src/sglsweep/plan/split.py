"""Cells as pairs of halves: what is worked out for each half is looked up for each cell.

A matrix of 34,560 cells of eight axes has 360 left and 96 right halves. Sums over pairs of axes
and comparisons with a failed cell are made on the halves; a cell costs one look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
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
    best = whole(codes)
    for cut in range(1, axes):
        found = _cut(codes, cut)
        pairs = len(found.left) * len(found.right)
        if pairs <= MOST_WASTE * count and _halves(found) < _halves(best):
            best = found
    return best


def whole(codes: Codes) -> Split:
    """Return cells that are not worth splitting: every right half is a whole cell."""
    return Split(np.empty((1, 0), dtype=codes.dtype), codes, None)


def _halves(split: Split) -> int:
    return len(split.left) + len(split.right)


def _cut(codes: Codes, cut: int) -> Split:
    left, on_left = np.unique(codes[:, :cut], axis=0, return_inverse=True)
    right, on_right = np.unique(codes[:, cut:], axis=0, return_inverse=True)
    place = on_left.ravel() * len(right) + on_right.ravel()
    in_order = len(place) == len(left) * len(right) and np.array_equal(
        place, np.arange(len(place))
    )
    return Split(left, right, None if in_order else place.astype(np.intp))
