"""When what happened to an attempt, on one clock, and how long each part took."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import Instants, Timings

if TYPE_CHECKING:
    from sglsweep.keeper_files import KeeperState, StopReport


class Stopwatch:
    """Takes down one attempt's instants; every `now` is the controller's.

    The host's clock may be another. A heartbeat is read at the earliest when it was written, so
    the smallest distance between the two that was ever seen is the difference of the clocks, to
    within one look.
    """

    def __init__(
        self, begun_at: float, *, call_at: float | None = None, is_adopted: bool = False
    ) -> None:
        """Begin.

        Args:
            begun_at: when the attempt was decided; of an adopted one, about when it was started.
            call_at: when this call of the tool opened the run.
            is_adopted: an earlier call decided on it, and nobody knows when.
        """
        self.begun_at = begun_at
        self._at = Instants(call_at=call_at, decided_at=None if is_adopted else begun_at)
        self._ready_at: float | None = None
        self._stopped_at: float | None = None
        self._exec_host: float | None = None
        self._ahead_s: float | None = None

    @property
    def ready_at(self) -> float | None:
        """When the server was ready, None before."""
        return self._ready_at

    def beat(self, state: KeeperState, now: float) -> None:
        """Learn from what the keeper last wrote."""
        if state.beat_at:
            behind = now - state.beat_at
            self._ahead_s = behind if self._ahead_s is None else min(self._ahead_s, behind)
        self._exec_host = state.started_at or self._exec_host

    def fatal(self, now: float) -> None:
        """Note the first sight of a fatal line or of an exit."""
        if self._at.fatal_at is None:
            self._at = replace(self._at, fatal_at=now)

    def ready(self, now: float) -> None:
        """Note that the server is ready."""
        self._ready_at = now

    def judged(self, now: float) -> None:
        """Note the end of the wait."""
        self._at = replace(self._at, judged_at=now)

    def stopped(self, report: StopReport, now: float) -> None:
        """Take over what the host says of the end."""
        self._stopped_at = now
        begun = self._here(report.asked_at)
        self._at = replace(
            self._at,
            stop_at=begun,
            group_gone_at=_after(begun, report.tree_gone_s),
            gpu_free_at=_after(begun, report.gpu_free_s),
            port_free_at=_after(begun, report.port_free_s),
        )

    def timings(self, *, closed_at: float | None = None) -> Timings:
        """Return what is known so far; before the end the last instants are absent."""
        exec_at = self._here(self._exec_host)
        at = replace(self._at, exec_at=exec_at, closed_at=closed_at)
        begun = at.decided_at if at.decided_at is not None else exec_at
        judged = at.judged_at
        last = self._stopped_at if self._stopped_at is not None else judged
        return Timings(
            total_s=_between(begun, last) or 0.0,
            ready_s=_between(begun, self._ready_at),
            proof_s=_between(self._ready_at, judged),
            stop_s=_between(judged, last),
            launch_s=_between(at.decided_at, exec_at),
            server_s=_between(exec_at, judged),
            last_words_s=_between(at.fatal_at, judged),
            group_gone_s=_between(judged, at.group_gone_at),
            gpu_free_s=_between(judged, at.gpu_free_at),
            port_free_s=_between(judged, at.port_free_at),
            at=_rounded(at),
        )

    def _here(self, host_at: float | None) -> float | None:
        """Return an instant of the host's on this machine's clock."""
        if host_at is None or self._ahead_s is None:
            return None
        return host_at + self._ahead_s


def _after(begun: float | None, seconds: float | None) -> float | None:
    return None if begun is None or seconds is None else begun + seconds


def _between(begun: float | None, ended: float | None) -> float | None:
    """Return the seconds between; 0 where the second came first, None where one is unknown."""
    return None if begun is None or ended is None else round(max(ended - begun, 0.0), 2)


def _rounded(at: Instants) -> Instants:
    known = {name: getattr(at, name) for name in Instants.__dataclass_fields__}
    return Instants(**{name: None if v is None else round(v, 3) for name, v in known.items()})
