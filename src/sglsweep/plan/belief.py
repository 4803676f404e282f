"""What the history says about every cell: the chance that it serves, and what speaks against it.

The model: faults are combinations of one to three values, each tied to a phase; the earliest
fault in a cell ends its launch. So a pass clears everything the cell contains, a failure clears
everything in it for the earlier phases, and the failures of one kind point at what they share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.clues import clues_of
from sglsweep.plan.rates import RATES, combinations_of
from sglsweep.plan.split import whole
from sglsweep.plan.suspects import Court, agreement, blame_factor, readings
from sglsweep.plan.unseen import Unseen, others_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from sglsweep.plan.clues import Clues, Kind
    from sglsweep.plan.rates import Combinations, Rates
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.suspects import Fault, Reading
    from sglsweep.plan.table import Table

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What is believed after some attempts.

    Attributes:
        clues: the attempts it rests on.
        readings: for each kind of failure, the likely explanations, weights adding up to one.
        failing: chance that each value fails on its own, one array an axis.
        honesty: share of blames taken to be right.
    """

    clues: Clues
    space: Combinations
    readings: Mapping[Kind, Sequence[Reading]]
    unseen: Unseen
    failing: tuple[Numbers, ...]
    honesty: float


def believe(table: Table, history: Sequence[Evidence], rates: Rates = RATES) -> Belief:
    """Return what attempts that say something make likely.

    The explanations of different kinds bear on each other only through what must work: they
    are read twice, the second time knowing which values fail and how far blames can be trusted.
    """
    clues = clues_of(table, history)
    counts = tuple(len(values) for values in table.values)
    unseen = Unseen.after(clues, counts, rates).without(table.inert)
    court = Court(
        clues=clues,
        space=combinations_of(counts, rates),
        rates=rates,
        masks=agreement(clues),
        alive=np.ones(clues.codes.shape),
        honesty=sum(share * weight for share, weight in rates.blame_right),
        spotless=np.exp(-unseen.faults_in(whole(clues.codes)).ravel()),
        inert=(clues.codes == table.inert) @ (1 << np.arange(len(counts), dtype=np.int64)),
    )
    first = {kind: readings(court, kind) for kind in clues.failures}
    unseen = unseen.scaled(_faults_found(first), rates.pull)
    alive = others_work(_failing(first, unseen.singles, court), counts)
    court = replace(
        court,
        alive=np.stack([a[c] for a, c in zip(alive, clues.codes.T, strict=True)], axis=1),
        honesty=_honesty(first, court),
    )
    final = {kind: readings(court, kind) for kind in clues.failures}
    singles = [single * some for single, some in zip(unseen.singles, alive, strict=True)]
    failing = _failing(final, singles, court)
    unseen = unseen.weighted(others_work(failing, counts))
    return Belief(clues, court.space, final, unseen, failing, court.honesty)


def _failing(
    explained: Mapping[Kind, Sequence[Reading]], unseen: Sequence[Numbers], court: Court
) -> tuple[Numbers, ...]:
    """Return the chance of each value to fail on its own, by seen and unseen faults."""
    works = [np.exp(-single) for single in unseen]
    codes, sizes, bits = court.clues.codes, court.space.sizes, court.space.bits
    ones = np.flatnonzero(sizes == 1)
    axes = bits[ones].argmax(axis=1)
    for readings_of_kind in explained.values():
        for reading, fault in _faults(readings_of_kind):
            chances = fault.chances[ones] * reading.weight
            for axis, chance in zip(axes, chances, strict=True):
                works[axis][codes[fault.row, axis]] *= 1.0 - chance
    return tuple(1.0 - work for work in works)


def _faults(explained: Sequence[Reading]) -> Iterator[tuple[Reading, Fault]]:
    return ((reading, fault) for reading in explained for fault in reading.faults)


def _faults_found(explained: Mapping[Kind, Sequence[Reading]]) -> float:
    return sum(
        reading.weight * len(reading.faults)
        for readings_of_kind in explained.values()
        for reading in readings_of_kind
    )


def _honesty(explained: Mapping[Kind, Sequence[Reading]], court: Court) -> float:
    """Return the share of blames that are right, as far as other evidence tells."""
    shares = np.asarray([share for share, _ in court.rates.blame_right])
    logs = np.log([weight for _, weight in court.rates.blame_right])
    for found in explained.values():
        for fault in found[0].faults:
            for blamed in fault.blamed - {0}:
                # What the weights would be without this blame, then with it at each share.
                plain = fault.weights / blame_factor(court.space, blamed, court.honesty)
                if plain.sum() > 0:
                    plain = plain / plain.sum()
                    logs += np.log(
                        [float(plain @ blame_factor(court.space, blamed, s)) for s in shares]
                    )
    weights = np.exp(logs - logs.max())
    return float(shares @ weights / weights.sum())
