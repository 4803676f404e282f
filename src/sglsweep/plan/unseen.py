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
    from sglsweep.plan.table import Codes

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """Expected faults on each value and each pair of values.

    Faults of three values are left out: a cell holds one in sixty.

    Attributes:
        singles: expected faults of one value, one array an axis.
        pairs: expected faults of two values, one matrix a pair of axes.
    """

    singles: tuple[Numbers, ...]
    pairs: Mapping[tuple[int, int], Numbers]

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
        for codes, reach in zip(clues.codes, clues.reach, strict=True):
            block = np.ix_(codes + start[:-1], codes + start[:-1])
            furthest[block] = np.maximum(furthest[block], reach)
        share = unseen_shares()[furthest]
        one = rates.faults[0] / 8
        two = rates.faults[1] / 8 / max(1, (axes - 1) / 2)
        span = [slice(start[axis], start[axis + 1]) for axis in range(axes)]
        return cls(
            tuple(one / counts[a] * share.diagonal()[span[a]] for a in range(axes)),
            {
                (a, b): two / counts[a] / counts[b] * share[span[a], span[b]]
                for a in range(axes)
                for b in range(a + 1, axes)
            },
        )

    def weighted(self, weights: Sequence[Numbers]) -> Unseen:
        """Return the same with the faults of single values scaled."""
        singles = (single * weight for single, weight in zip(self.singles, weights, strict=True))
        return replace(self, singles=tuple(singles))

    def faults_in(self, codes: Codes) -> Numbers:
        """Return the faults to expect in each cell."""
        total = np.zeros(len(codes))
        for axis, single in enumerate(self.singles):
            total += single[codes[:, axis]]
        for (a, b), pair in self.pairs.items():
            total += pair.ravel()[codes[:, a] * np.intp(pair.shape[1]) + codes[:, b]]
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
