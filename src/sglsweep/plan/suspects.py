"""Which combinations of values may be behind the failures of one kind.

Failures of one kind are mostly one fault, so it is sought among what they share; but one kind
can hide several faults, and a failure can be a flake. A *reading* says which failures belong
together; the likeliest readings are kept, each with what every group of failures shares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.clues import FINAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sglsweep.plan.clues import Clues, Failure, Kind
    from sglsweep.plan.rates import Combinations, Rates

KEPT_READINGS = 6
LEAST_WEIGHT = 0.03
LEAST_ALIVE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """What one group of failures may share.

    Attributes:
        row: the clue whose values the combinations are taken from.
        weights: how likely each combination is, not normalised.
        members: the failures.
        blamed: blames that the weights already hold.
    """

    row: int
    weights: NDArray[np.float64]
    members: tuple[Failure, ...]
    blamed: frozenset[int]

    @property
    def weight(self) -> float:
        """How well one fault explains these failures."""
        return float(self.weights.sum())

    @property
    def chances(self) -> NDArray[np.float64]:
        """Chance of each combination, given that there is one fault behind the failures."""
        total = self.weights.sum()
        return self.weights / total if total > 0 else self.weights


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One way to read the failures of a kind: faults, and failures that were flakes.

    Attributes:
        elsewhere: failures of earlier runs that do not bear on this one.
    """

    weight: float
    faults: tuple[Fault, ...] = ()
    flakes: tuple[Failure, ...] = ()
    elsewhere: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Court:
    """What is needed to judge combinations.

    Attributes:
        masks: for each pair of clues, on which axes they agree.
        alive: weight of each clue's values as faults of their own (by axis): near 0 where every
            other value of the axis is known to fail, since something is taken to serve.
        honesty: share of blames taken to be right.
        spotless: chance of each clue to serve, had its own failure been a flake.
        inert: for each clue the axes whose flag selects nothing in it, as a bit mask: nothing
            that fails there can come of them.
    """

    clues: Clues
    space: Combinations
    rates: Rates
    masks: NDArray[np.int64]
    alive: NDArray[np.float64]
    honesty: float
    spotless: NDArray[np.float64]
    inert: NDArray[np.int64]


def agreement(clues: Clues) -> NDArray[np.int64]:
    """Return for each pair of clues the axes with equal values, as a bit mask."""
    bits = 1 << np.arange(clues.codes.shape[1], dtype=np.int64)
    same = clues.codes[:, None, :] == clues.codes[None, :, :]
    masks: NDArray[np.int64] = same @ bits
    return masks


def readings(court: Court, kind: Kind) -> tuple[Reading, ...]:
    """Return the likeliest readings of a kind, weights adding up to one."""
    kept = [Reading(1.0)]
    once = court.rates.final_flake if kind[2] in FINAL else court.rates.flake
    for failure in court.clues.failures[kind]:
        alone = _alone(court, kind, failure)
        flake = once ** len(failure.own) * float(court.spotless[failure.row])
        longer: list[Reading] = []
        for reading in kept:
            longer += _extended(court, reading, failure, alone)
            longer.append(
                _as_flake(court, reading, failure, flake)
                if failure.own
                else _elsewhere(court, reading, failure)
            )
        longer.sort(key=lambda reading: -reading.weight)
        kept = _normalised(longer[:KEPT_READINGS]) or kept
    return tuple(_normalised([reading for reading in kept if reading.weight >= LEAST_WEIGHT]))


def _extended(court: Court, reading: Reading, failure: Failure, alone: Fault) -> Iterator[Reading]:
    """Yield the reading with one more failure: of a fault that it holds, or of a new one."""
    holds = float(court.clues.weight[failure.row])
    for place, fault in enumerate(reading.faults):
        wider = _joined(court, fault, failure)
        if wider.weight > 0:
            faults = (*reading.faults[:place], wider, *reading.faults[place + 1 :])
            # Failures of one earlier run say the same of this machine: all of them or none.
            is_doubted = any(not member.own for member in fault.members)
            weight = reading.weight * wider.weight / fault.weight
            weight *= 1.0 if is_doubted else holds
            yield replace(reading, weight=weight, faults=faults)
    if alone.weight > 0:
        weight = reading.weight * alone.weight * court.rates.shared * holds
        yield replace(reading, weight=weight, faults=(*reading.faults, alone))


def _as_flake(court: Court, reading: Reading, failure: Failure, chance: float) -> Reading:
    weight = reading.weight * chance * court.rates.shared
    return replace(reading, weight=weight, flakes=(*reading.flakes, failure))


def _elsewhere(court: Court, reading: Reading, failure: Failure) -> Reading:
    """Return the reading with a failure of an earlier run that shows no fault of this matrix."""
    holds = float(court.clues.weight[failure.row])
    weight = reading.weight
    if not reading.elsewhere:
        weight *= (1.0 - holds) * court.rates.shared
    return replace(reading, weight=weight, elsewhere=(*reading.elsewhere, failure))


def _alone(court: Court, kind: Kind, failure: Failure) -> Fault:
    """Return what a failure says on its own: anything in it that is not cleared."""
    clues, space = court.clues, court.space
    agree = court.masks[failure.row]
    alive = np.maximum(court.alive[failure.row], LEAST_ALIVE)
    weights = space.expected * np.where(space.sizes == 1, alive[space.bits.argmax(axis=1)], 1.0)
    weights = np.where(space.masks & court.inert[failure.row], 0.0, weights)
    reach = clues.reach[failure.row]
    further = clues.reach > reach
    weights = np.where(_held(space.masks, agree[further & (clues.weight >= 1.0)]), 0.0, weights)
    for row in np.flatnonzero(further & (clues.weight < 1.0)):
        held = _held(space.masks, agree[row : row + 1])
        weights = np.where(held, weights * (1.0 - clues.weight[row]), weights)
    for other, failures in clues.failures.items():
        rows = [f.row for f in failures]
        if other != kind and clues.reach[rows[0]] == reach:
            before = _held(space.masks, agree[rows])
            weights = np.where(before, weights * court.rates.before, weights)
    fault = Fault(failure.row, weights, (), frozenset())
    return _joined(court, fault, failure)


def _joined(court: Court, fault: Fault, failure: Failure) -> Fault:
    """Return the fault with one more failure: only what that failure holds too remains."""
    weights = fault.weights
    if failure.row != fault.row:
        agree = int(court.masks[fault.row, failure.row])
        weights = np.where((court.space.masks & ~agree) == 0, weights, 0.0)
    if failure.blamed and failure.blamed not in fault.blamed:
        weights = weights * blame_factor(court.space, failure.blamed, court.honesty)
    return Fault(fault.row, weights, (*fault.members, failure), fault.blamed | {failure.blamed})


def blame_factor(space: Combinations, blamed: int, honesty: float) -> NDArray[np.float64]:
    """Return how much likelier a blame is for each combination than if it were drawn blindly."""
    axes = space.bits.shape[1]
    count = blamed.bit_count()
    missed = np.ones(len(space.sizes))
    for drawn in range(count):
        missed *= np.clip((axes - space.sizes - drawn) / (axes - drawn), 0.0, 1.0)
    missed = np.clip(missed, 1e-6, 1 - 1e-6)
    right = (space.masks & blamed) != 0
    factor: NDArray[np.float64] = np.where(right, honesty / (1 - missed), (1 - honesty) / missed)
    return factor


def _held(masks: NDArray[np.int64], by: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which combinations lie wholly in at least one of the agreements."""
    if not by.size:
        return np.zeros(len(masks), dtype=np.bool_)
    held: NDArray[np.bool_] = ((masks[:, None] & ~by[None, :]) == 0).any(axis=1)
    return held


def _normalised(found: Sequence[Reading]) -> list[Reading]:
    total = sum(reading.weight for reading in found)
    if total <= 0:
        return []
    return [replace(reading, weight=reading.weight / total) for reading in found]
