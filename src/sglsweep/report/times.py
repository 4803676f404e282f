"""What passed between two servers: the tool's time beside the servers' own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.deadtime import Sums, next_start_s, sums
from sglsweep.report.numbers import duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One attempt's times in seconds; all but the first two since its last useful word.

    That is the fatal line, the exit, or the proof's last answer.

    Attributes:
        server_s: the server's own time, from its start until that word.
        group_gone_s: until no process of it lived.
        memory_free_s: until the GPUs' memory was back.
        port_free_s: until nobody listened on its port.
        next_start_s: until the next server was started on that port; None for the last of a call.
    """

    outcome: Outcome
    server_s: float
    group_gone_s: float | None
    memory_free_s: float | None
    port_free_s: float | None
    next_start_s: float | None


def time_rows(outcomes: Sequence[Outcome]) -> tuple[TimeRow, ...]:
    """Return a row for each attempt whose server was seen to start and to end."""
    nexts = _nexts(outcomes)
    return tuple(
        _row(outcome, outcome.timings.server_s, nexts.get(outcome.attempt.number))
        for outcome in outcomes
        if outcome.timings.server_s is not None
    )


def _row(outcome: Outcome, server_s: float, next_s: float | None) -> TimeRow:
    timings = outcome.timings
    words = timings.last_words_s or 0.0

    def since(seconds: float | None) -> float | None:
        return None if seconds is None else words + seconds

    return TimeRow(
        outcome=outcome,
        server_s=round(server_s - words, 2),
        group_gone_s=since(timings.group_gone_s),
        memory_free_s=since(timings.gpu_free_s),
        port_free_s=since(timings.port_free_s),
        next_start_s=since(next_s),
    )


def _nexts(outcomes: Sequence[Outcome]) -> dict[int, float]:
    """Return for an attempt what passed until the next one's start, by the attempt before."""
    waits = next_start_s(outcomes)
    started = [o for o in outcomes if o.timings.at.exec_at is not None]
    started.sort(key=lambda o: o.timings.at.exec_at or 0.0)
    last: dict[tuple[str, int], int] = {}
    nexts: dict[int, float] = {}
    for outcome in started:
        lane = (outcome.attempt.host, outcome.attempt.port)
        if outcome.attempt.number in waits and lane in last:
            nexts[last[lane]] = waits[outcome.attempt.number]
        last[lane] = outcome.attempt.number
    return nexts


def share_dead(total: Sums) -> float | None:
    """Return dead time as a share of it and the servers' own; None where neither is known."""
    whole = total.server_s + total.dead_s
    return total.dead_s / whole if total.between and whole > 0 else None


def times_sentence(outcomes: Sequence[Outcome]) -> str:
    """Say in one sentence how much of the time was the tool's; "" where nothing is known."""
    total = sums(outcomes)
    if not total.attempts:
        return ""
    own = f"servers' own time {duration(total.server_s)} in {plural(total.attempts, 'attempt')}"
    share = share_dead(total)
    if share is None:
        return own
    pairs = plural(total.between, "change of servers", "changes of servers")
    return f"{own}; dead time {duration(total.dead_s)} in {pairs} ({share:.0%} of both)"


def times_json(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Return the same as data."""
    total = sums(outcomes)
    share = share_dead(total)
    return {
        "server_s": total.server_s,
        "dead_s": total.dead_s,
        "between": total.between,
        "share_dead": None if share is None else round(share, 4),
        "attempts": [
            {
                "attempt": row.outcome.attempt.number,
                "server_s": row.server_s,
                "last_words_s": row.outcome.timings.last_words_s,
                "group_gone_s": row.group_gone_s,
                "memory_free_s": row.memory_free_s,
                "port_free_s": row.port_free_s,
                "next_start_s": row.next_start_s,
            }
            for row in time_rows(outcomes)
        ],
    }
