"""The chance that some of many cells serves: they share their faults, so chances do not add up.

Worlds are drawn from what is believed: for each kind of failure one reading and its faults, faults
that nothing has shown yet, and what is published. In each world every cell serves or not. Then
cells are picked one by one, each the one that serves in most worlds in which no earlier pick does:
a plan that does not learn on the way, so what it reaches is a lower bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.hints import PASSES_ALL_THE_SAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sglsweep.plan.belief import Belief
    from sglsweep.plan.hints import Hinted
    from sglsweep.plan.table import Codes

    Bools = NDArray[np.bool_]

WORLDS = 200
CELLS = 400
"""Likeliest cells that are looked at, and half as many of the others."""
_SEED = 20


def reached(
    codes: Codes, chances: NDArray[np.float64], belief: Belief, published: Hinted, launches: int
) -> float:
    """Return the chance that one of so many launches serves; `codes` and `chances` of all cells.

    Cells with a chance of 0 are no choice.
    """
    rng = np.random.default_rng(_SEED)
    picked = _candidates(chances, rng)
    serves = _worlds(codes[picked], belief, rng)
    for _, met, sure in published.among:
        fails = rng.random(WORLDS) < sure * (1.0 - PASSES_ALL_THE_SAME)
        serves &= ~(met[picked][:, None] & fails)
    uncovered = np.ones(WORLDS, dtype=np.bool_)
    for _ in range(min(launches, len(picked))):
        gains = (serves & uncovered).sum(axis=1)
        best = int(gains.argmax())
        if not gains[best]:
            break
        uncovered &= ~serves[best]
    # So few worlds cannot tell a certainty.
    return float((~uncovered).sum() + 0.5) / (WORLDS + 1.0)


def _candidates(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    open_ones = np.flatnonzero(chances > 0)
    if len(open_ones) <= CELLS:
        return open_ones
    ranked = open_ones[np.argsort(-chances[open_ones], kind="stable")]
    others = rng.choice(ranked[CELLS:], size=min(CELLS // 2, len(ranked) - CELLS), replace=False)
    return np.concatenate([ranked[:CELLS], others])


def _worlds(codes: Codes, belief: Belief, rng: np.random.Generator) -> Bools:
    """Return whether each cell serves in each world."""
    serves = np.ones((len(codes), WORLDS), dtype=np.bool_)
    for readings in belief.readings.values():
        weights = np.asarray([reading.weight for reading in readings])
        drawn = rng.choice(len(readings), size=WORLDS, p=weights / weights.sum())
        for number, reading in enumerate(readings):
            for fault in reading.faults:
                worlds = np.flatnonzero(drawn == number)
                faults = rng.choice(len(fault.chances), size=len(worlds), p=fault.chances)
                same = codes == belief.clues.codes[fault.row]
                bits = belief.space.bits[faults]
                serves[:, worlds] &= (~same @ bits.T.astype(np.int16)) > 0
    return serves & ~_unseen(codes, belief, rng)


def _unseen(codes: Codes, belief: Belief, rng: np.random.Generator) -> Bools:
    """Return which cells hold a fault, in each world, that nothing has shown yet."""
    hit = np.zeros((len(codes), WORLDS), dtype=np.bool_)
    for axis, expected in enumerate(belief.unseen.singles):
        there = rng.random((len(expected), WORLDS)) < 1.0 - np.exp(-expected)[:, None]
        hit |= there[codes[:, axis]]
    for (one, other), expected in belief.unseen.pairs.items():
        there = rng.random((*expected.shape, WORLDS)) < 1.0 - np.exp(-expected)[:, :, None]
        hit |= there[codes[:, one], codes[:, other]]
    return hit
