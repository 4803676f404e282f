"""Faults that no attempt has shown yet: how many to expect, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.rates import unseen_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from sglsweep.plan.clues import Clues
    from sglsweep.plan.rates import Rates
    from sglsweep.plan.split import Split
    from sglsweep.plan.table import Codes

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """Expected faults on each value and each pair of values.

    Faults of three values are left out: a cell holds one in sixty.

    Attributes:
        singles: expected faults of one value, one array an axis.
        pairs: expected faults of two values, one matrix a pair of axes.
        examined: faults that would have shown by now, had there been as many as expected.
    """

    singles: tuple[Numbers, ...]
    pairs: Mapping[tuple[int, int], Numbers]
    examined: float

    @classmethod
    def after(cls, clues: Clues, counts: Sequence[int], rates: Rates) -> Unseen:
        """Return what the attempts leave to expect on axes with so many listed values."""
        axes = len(counts)
        sizes = [
            max(count, int(column.max(initial=-1)) + 1)
            for count, column in zip(counts, clues.codes.T, strict=True)
        ]
        start = np.concatenate([[0], np.cumsum(sizes)])
        furthest = np.full((start[-1], start[-1]), -1, dtype=np.int64)
        blocks = [np.ix_(codes + start[:-1], codes + start[:-1]) for codes in clues.codes]
        for block, reach, weight in zip(blocks, clues.reach, clues.weight, strict=True):
            if weight >= 1.0:
                furthest[block] = np.maximum(furthest[block], reach)
        share = unseen_shares()[furthest]
        for block, reach, weight in zip(blocks, clues.reach, clues.weight, strict=True):
            if weight < 1.0:
                hidden = np.minimum(share[block], unseen_shares()[reach])
                share[block] = (1.0 - weight) * share[block] + weight * hidden
        one = rates.faults[0] / 8
        two = rates.faults[1] / 8 / max(1, (axes - 1) / 2)
        span = [slice(start[axis], start[axis + 1]) for axis in range(axes)]
        singles = tuple(one / counts[a] * share.diagonal()[span[a]] for a in range(axes))
        pairs = {
            (a, b): two / counts[a] / counts[b] * share[span[a], span[b]]
            for a in range(axes)
            for b in range(a + 1, axes)
        }
        left = sum(
            float(single[:count].sum()) for single, count in zip(singles, counts, strict=True)
        )
        left += sum(float(pair[: counts[a], : counts[b]].sum()) for (a, b), pair in pairs.items())
        everything = one * axes + two * len(pairs)
        return cls(singles, pairs, max(0.0, everything - left))

    def without(self, inert: Codes) -> Unseen:
        """Return the same with nothing to expect of flags that select nothing, by their codes."""
        if (inert < 0).all():
            return self
        singles = tuple(single.copy() for single in self.singles)
        pairs = {axes: pair.copy() for axes, pair in self.pairs.items()}
        for axis in np.flatnonzero(inert >= 0):
            singles[axis][inert[axis]] = 0.0
        for (a, b), pair in pairs.items():
            if inert[a] >= 0:
                pair[inert[a], :] = 0.0
            if inert[b] >= 0:
                pair[:, inert[b]] = 0.0
        return replace(self, singles=singles, pairs=pairs)

    def scaled(self, found: float, pull: float) -> Unseen:
        """Return the same for a matrix with as many faults as this one has shown so far.

        Faults come at a rate that is a gamma posterior: `pull` stands for that many faults of
        prior knowledge. Where everything fails of something new, more of it is to be expected.
        """
        scale = (pull + found) / (pull + self.examined)
        return replace(
            self,
            singles=tuple(single * scale for single in self.singles),
            pairs={axes: pair * scale for axes, pair in self.pairs.items()},
        )

    def weighted(self, weights: Sequence[Numbers]) -> Unseen:
        """Return the same with the faults of single values scaled."""
        singles = (single * weight for single, weight in zip(self.singles, weights, strict=True))
        return replace(self, singles=tuple(singles))

    def faults_in(self, split: Split) -> Numbers:
        """Return the faults to expect in each pair of halves."""
        cut = split.left.shape[1]
        left, right = range(cut), range(cut, len(self.singles))
        total = self._within(split.left, left)[:, None] + self._within(split.right, right)
        # Expected faults of each left half with each value of the right axes, then of each pair.
        with_values, has_values = [], []
        for b in right:
            with_values.append(sum(self.pairs[a, b][split.left[:, a]] for a in left))
            has_values.append(np.eye(len(self.singles[b]))[split.right[:, b - cut]])
        if cut:
            total += np.hstack(with_values) @ np.hstack(has_values).T
        return total

    def _within(self, codes: Codes, axes: range) -> Numbers:
        total = np.zeros(len(codes))
        for place, axis in enumerate(axes):
            total += self.singles[axis][codes[:, place]]
            for other in range(place):
                total += self.pairs[axes[other], axis][codes[:, other], codes[:, place]]
        return total


def others_work(failing: Sequence[Numbers], counts: Sequence[int]) -> tuple[Numbers, ...]:
    """Return for each value the chance that another listed value of its axis works.

    Something is taken to serve, so the last value that is left works on its own.
    """
    return tuple(
        np.asarray(
            [1.0 - np.delete(chances[:count], code).prod() for code in range(count)]
            + [1.0 - chances[:count].prod()] * (len(chances) - count)
        )
        for chances, count in zip(failing, counts, strict=True)
    )
