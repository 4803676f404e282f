"""What passed between servers: the tool's time against the servers' own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome


@dataclass(frozen=True, slots=True)
class Sums:
    """A run's time, as its attempts took it.

    Attributes:
        attempts: whose times are known.
        server_s: their servers' own time, side by side or not.
        dead_s: between two servers on one port, from judging the one until starting the other.
        between: how many such pairs there are; calls of the tool are not bridged.
    """

    attempts: int
    server_s: float
    dead_s: float
    between: int


def next_start_s(outcomes: Sequence[Outcome]) -> dict[int, float]:
    """Return for an attempt the seconds since the one before it was judged, until it started.

    Only attempts on one port follow each other, and only within one call of the tool: nobody
    knows what the hours between two calls were for. The first of a call is absent.
    """
    known = [o for o in outcomes if o.timings.at.exec_at is not None]
    known.sort(key=lambda o: (_lane(o), o.timings.at.exec_at or 0.0))
    waits: dict[int, float] = {}
    for _, group in groupby(known, key=_lane):
        lane = list(group)
        for before, after in pairwise(lane):
            judged, begun = before.timings.at.judged_at, after.timings.at.exec_at
            call = after.timings.at.call_at
            if judged is None or begun is None or (call is not None and judged < call):
                continue
            waits[after.attempt.number] = round(max(begun - judged, 0.0), 2)
    return waits


def sums(outcomes: Sequence[Outcome]) -> Sums:
    """Add a run's times up."""
    waits = next_start_s(outcomes)
    own = [o.timings.server_s for o in outcomes if o.timings.server_s is not None]
    return Sums(len(own), round(sum(own), 2), round(sum(waits.values()), 2), len(waits))


def _lane(outcome: Outcome) -> tuple[str, int]:
    return outcome.attempt.host, outcome.attempt.port
