"""What is believed before anything is launched: how many faults, how large, at which phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_VALUES = 3
"""A fault needs at most this many values; published failures need more in 1 to 11 % of cases."""

SERVED = len(Phase)
"""Reach of an attempt that served: beyond every phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Expected numbers and chances.

    Attributes:
        faults: expected number of faults of one, two and three values in a matrix of eight
            axes; more axes bring proportionally more.
        flake: chance that a launch fails for a reason that is not its flags.
        final_flake: the same where the verdict is one that a second launch hardly ever changes.
        shared: how likely another fault shows the same cause, phase and verdict.
        before: weight of a fault for each failure of another cause, at the same phase, in a cell
            that holds it: which of two comes first within a phase is not known.
        pull: weight of `faults` against what the attempts show, as a number of faults seen.
        blame_right: possible shares of right blames, each with its weight.
    """

    faults: tuple[float, float, float] = (6.0, 3.0, 1.0)
    flake: float = 0.03
    final_flake: float = 0.001
    shared: float = 0.003
    before: float = 0.5
    pull: float = 6.0
    blame_right: tuple[tuple[float, float], ...] = ((0.97, 0.45), (0.75, 0.2), (0.5, 0.35))


RATES = Rates()

PHASE_SHARES: dict[Phase, float] = {
    Phase.START: 0.03,
    Phase.ARGS: 0.16,
    Phase.DIST_INIT: 0.03,
    Phase.WEIGHTS: 0.14,
    Phase.WEIGHTS_DONE: 0.02,
    Phase.KV_CACHE: 0.16,
    Phase.GRAPH_CAPTURE: 0.16,
    Phase.GRAPH_CAPTURE_DONE: 0.02,
    Phase.WARMUP: 0.14,
    Phase.READY: 0.02,
    Phase.DECODE: 0.12,
}
"""Share of faults that end a launch at each phase."""


def unseen_shares() -> NDArray[np.float64]:
    """Return which share of faults a value may still hide, by how far it got without failing.

    Index: order of the phase in which an attempt with it ended for another reason (half of that
    phase's faults would have shown before), `SERVED`, or -1 for never tried.
    """
    shares = np.asarray([PHASE_SHARES[phase] for phase in Phase])
    shares = shares / shares.sum()
    left = [shares[i + 1 :].sum() + shares[i] / 2 for i in range(len(shares))]
    return np.asarray([*left, 0.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """Every set of at most three axes, as bit masks, with the expected faults on it.

    Attributes:
        masks: bit `a` stands for axis `a`.
        bits: the same as booleans, one column an axis.
        expected: expected number of faults on one combination of values of these axes.
    """

    masks: NDArray[np.int64]
    bits: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    expected: NDArray[np.float64]


@lru_cache(maxsize=16)
def combinations_of(value_counts: tuple[int, ...], rates: Rates = RATES) -> Combinations:
    """Return the possible faults of a matrix whose axes have so many values.

    A fault is taken to hit any axis equally often and any of its values equally often.
    """
    axes = len(value_counts)
    sets = [
        chosen
        for size in range(1, min(MOST_VALUES, axes) + 1)
        for chosen in combinations(range(axes), size)
    ]
    bits = np.zeros((len(sets), axes), dtype=np.bool_)
    for row, chosen in enumerate(sets):
        bits[row, list(chosen)] = True
    sizes = bits.sum(axis=1)
    each = np.asarray(value_counts, dtype=np.float64)
    expected = np.asarray(
        [rates.faults[size - 1] * axes / 8 / int((sizes == size).sum()) for size in sizes]
    ) / np.where(bits, each, 1.0).prod(axis=1)
    masks = np.asarray([sum(1 << axis for axis in chosen) for chosen in sets], dtype=np.int64)
    return Combinations(masks, bits, sizes, expected)
