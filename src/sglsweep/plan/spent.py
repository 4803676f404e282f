"""How long a run has taken: hours in which at least one attempt was on the host."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Attempt, Outcome

Span = tuple[float, float]


def spent_s(
    outcomes: Sequence[Outcome], running: Sequence[Attempt] = (), *, now: float = 0.0
) -> float:
    """Return the seconds that attempts took; what ran side by side counts once.

    Args:
        outcomes: finished attempts, of all calls of the tool.
        running: attempts that are not over.
        now: seconds since the epoch, for those.
    """
    after_each_other = sum(o.timings.total_s for o in outcomes if not o.end.beside)
    beside = [_span(o.attempt, o.timings.total_s) for o in outcomes if o.end.beside]
    open_ones = [(begun, max(now, begun)) for a in running for begun in [_begun(a)]]
    return after_each_other + _covered([*beside, *open_ones])


def _span(attempt: Attempt, seconds: float) -> Span:
    begun = _begun(attempt)
    return begun, begun + seconds


def _begun(attempt: Attempt) -> float:
    try:
        return datetime.fromisoformat(attempt.started_at).timestamp()
    except ValueError:
        return 0.0


def _covered(spans: Sequence[Span]) -> float:
    covered, end = 0.0, float("-inf")
    for begun, over in sorted(spans):
        covered += max(over - max(begun, end), 0.0)
        end = max(end, over)
    return covered
