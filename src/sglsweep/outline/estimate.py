"""How long a sweep may take and what memory it will find, by earlier runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.plan.memory import FRACTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.config.sweep import Sweep
    from sglsweep.expand import Expanded
    from sglsweep.outline.past import Past, Seen

USUAL_S = 300.0
"""Seconds of an attempt where nothing better is known: the lead case's took 3 to 5 minutes."""
_FRACTIONS = (0.80, 0.85, 0.90)
"""Shown where the sweep names no fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """How long it may take.

    Attributes:
        attempts: launches at most.
        each_s: seconds of one.
        source: where that is from, as a sentence's end.
    """

    attempts: int
    each_s: float
    source: str
    budget_hours: float | None = None

    @property
    def total_s(self) -> float:
        """Seconds of all of them, the budget aside."""
        return self.attempts * self.each_s


@dataclass(frozen=True, slots=True, kw_only=True)
class AtFraction:
    """What an earlier attempt's figures say of one fraction."""

    fraction: float
    pool_gb: float | None
    tokens: int | None
    left_gb: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What one KV dtype's latest attempt says of the fractions of this sweep.

    Attributes:
        free_gb: free before the weights there.
        enough: the smallest fraction whose pool holds what is needed; None: nothing is needed, or
            not known.
    """

    where: str
    attempt: int
    kv_dtype: str
    fraction: float
    free_gb: float
    smallest: float
    largest: float | None
    is_capped: bool
    at: tuple[AtFraction, ...]
    needed: int | None = None
    enough: float | None = None


def time_estimate(sweep: Sweep, expanded: Expanded, past: Sequence[Past]) -> TimeEstimate:
    """Return how long the sweep may take at most, by the nearest run that tells."""
    cells = len(expanded.cells) + len(expanded.includes)
    budget = sweep.budget
    known = next((p for p in past if p.mean_s is not None), None)
    attempts = min(cells, budget.attempts) if budget.attempts else cells
    if known is None or known.mean_s is None:
        source = "nothing was launched here yet, so by the lead case: 3 to 5 minutes on 8 GPUs"
        each = USUAL_S
    else:
        count = len(known.attempts_s)
        each = known.mean_s
        source = f"the mean of {count} attempt{'' if count == 1 else 's'} of {known.where}, "
        source += known.relation
    return TimeEstimate(attempts=attempts, each_s=each, source=source, budget_hours=budget.hours)


def memory_estimates(sweep: Sweep, past: Sequence[Past]) -> tuple[MemoryEstimate, ...]:
    """Return what the nearest run's attempts say of this sweep's fractions, one a KV dtype."""
    known = next((p for p in past if p.seen), None)
    if known is None:
        return ()
    latest: dict[str, Seen] = {}
    for seen in known.seen:
        before = latest.get(seen.kv_dtype)
        if before is None or seen.memory.pool_tokens or not before.memory.pool_tokens:
            latest[seen.kv_dtype] = seen
    return tuple(_estimate(sweep, known.where, seen) for seen in latest.values())


def _estimate(sweep: Sweep, where: str, seen: Seen) -> MemoryEstimate:
    memory = seen.memory
    need = sweep.need
    needed = None if need.context is None else need.context * (need.concurrent or 1)
    return MemoryEstimate(
        where=where,
        attempt=seen.attempt,
        kv_dtype=seen.kv_dtype,
        fraction=memory.fraction,
        free_gb=memory.before_weights_gb or 0.0,
        smallest=memory.smallest or 0.0,
        largest=memory.largest(),
        is_capped=memory.is_capped,
        at=tuple(
            AtFraction(
                fraction=fraction,
                pool_gb=memory.pool_gb_at(fraction),
                tokens=memory.tokens_at(fraction),
                left_gb=memory.left_gb_at(fraction),
            )
            for fraction in fractions_of(sweep)
        ),
        needed=needed,
        enough=memory.fraction_for(needed) if needed else None,
    )


def fractions_of(sweep: Sweep) -> tuple[float, ...]:
    """Return the fractions that the sweep may launch with; some usual ones where it names none."""
    if sweep.auto is not None:
        return tuple(dict.fromkeys((sweep.auto.start, sweep.auto.max)))
    named = [sweep.launch.flags.get(FRACTION)]
    for axis in sweep.axes:
        if axis.name == FRACTION:
            named = list(axis.values)
    numbers = [float(v) for v in named if isinstance(v, int | float) and not isinstance(v, bool)]
    return tuple(dict.fromkeys(sorted(numbers))) or _FRACTIONS
