"""What passed between servers: the tool's time against the servers' own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.attempt import Outcome


@dataclass(frozen=True, slots=True)
class Sums:
    """A run's time, as its attempts took it.

    Attributes:
        attempts: whose times are known.
        server_s: their servers' own time, side by side or not: until the fatal line, where one
            was seen.
        dead_s: between two servers on one port, from the last useful word of the one (its fatal
            line, its exit, the proof's last answer) until the start of the other.
        between: how many such pairs there are; calls of the tool are not bridged, nor are slots
            that waited for an attempt that ran alone.
    """

    attempts: int
    server_s: float
    dead_s: float
    between: int


def next_start_s(outcomes: Sequence[Outcome]) -> dict[int, float]:
    """Return for an attempt the seconds since the one before it was judged, until it started.

    Only attempts on one port follow each other, and only within one call of the tool: nobody
    knows what the hours between two calls were for. The first of a call is absent, and so is one
    whose slot had waited for an attempt that ran alone.
    """
    return {after.attempt.number: seconds for _, after, seconds in _changes(outcomes)}


def sums(outcomes: Sequence[Outcome]) -> Sums:
    """Add a run's times up."""
    timings = [o.timings for o in outcomes if o.timings.server_s is not None]
    own = sum((t.server_s or 0.0) - (t.last_words_s or 0.0) for t in timings)
    changes = list(_changes(outcomes))
    dead = sum(seconds + (before.timings.last_words_s or 0.0) for before, _, seconds in changes)
    return Sums(len(timings), round(own, 2), round(dead, 2), len(changes))


def _changes(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome, float]]:
    """Yield two attempts that followed each other, and what passed from judging to starting."""
    known = [o for o in outcomes if o.timings.at.exec_at is not None]
    known.sort(key=lambda o: (_lane(o), o.timings.at.exec_at or 0.0))
    for _, lane in groupby(known, key=_lane):
        for before, after in pairwise(lane):
            judged, begun = before.timings.at.judged_at, after.timings.at.exec_at
            call = after.timings.at.call_at
            if judged is None or begun is None or (call is not None and judged < call):
                continue
            if _waited(before, judged, begun, known):
                continue
            yield before, after, round(max(begun - judged, 0.0), 2)


def _waited(before: Outcome, since: float, until: float, known: Sequence[Outcome]) -> bool:
    """True if a slot stood empty since another attempt ran from begin to end meanwhile.

    One that has the cards to itself makes the others wait: that is the sweep's doing, and its
    time is counted in its own slot.
    """
    return any(
        _lane(other) != _lane(before)
        and (other.timings.at.exec_at or 0.0) >= since
        and (other.timings.at.judged_at or until + 1.0) <= until
        for other in known
    )


def _lane(outcome: Outcome) -> tuple[str, int]:
    return outcome.attempt.host, outcome.attempt.port
