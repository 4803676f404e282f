"""Looks at a run that somebody else writes, and tells what changes there as events."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from sglsweep.events import Ended, Event, Progress, Started, StepAsked, Stopping
from sglsweep.triage.follow import Follower

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.catalogue import Catalogue
    from sglsweep.clock import Clock
    from sglsweep.journal import Journal
    from sglsweep.verdict import Phase

_CHUNK = 1 << 20


class Onlooker:
    """Takes no lock and asks no host: all it knows stands in the run's folder.

    Of the proof nothing stands there before an attempt is over, and life signs never do.
    """

    def __init__(self, journal: Journal, catalogue: Catalogue, clock: Clock) -> None:
        """Begin to look; what is finished by now is not told."""
        self._journal = journal
        self._catalogue = catalogue
        self._clock = clock
        self._ended = {outcome.attempt.number for outcome in journal.history()}
        self._begun: set[int] = set()
        self._stopping: set[int] = set()
        self._logs: dict[int, _GrowingLog] = {}

    def look(self) -> Iterator[Event]:
        """Yield what happened since the last look, then where the running attempts stand."""
        for outcome in self._journal.history():
            if outcome.attempt.number not in self._ended:
                self._ended.add(outcome.attempt.number)
                self._logs.pop(outcome.attempt.number, None)
                yield from self._closed(outcome)
        for outcome in self._journal.stopping_outcomes():
            if outcome.attempt.number not in self._stopping:
                yield from self._begins(outcome.attempt)
                self._stopping.add(outcome.attempt.number)
                yield Stopping(outcome=outcome)
        for attempt in self._journal.open_attempts():
            yield from self._begins(attempt)
            yield self._progress(attempt)

    def _begins(self, attempt: Attempt) -> Iterator[Event]:
        if attempt.number not in self._begun:
            self._begun.add(attempt.number)
            yield Started(attempt=attempt)

    def _closed(self, outcome: Outcome) -> Iterator[Event]:
        yield from self._begins(outcome.attempt)
        for step in outcome.proof.steps if outcome.proof else ():
            yield StepAsked(attempt=outcome.attempt, step=step)
        yield Ended(outcome=outcome)

    def _progress(self, attempt: Attempt) -> Progress:
        now = self._clock.now()
        log = self._logs.get(attempt.number)
        if log is None:
            log = _GrowingLog(self._journal, attempt.number, Follower(self._catalogue))
            self._logs[attempt.number] = log
        log.read(now)
        return Progress(
            attempt=attempt,
            phase=log.follower.phase,
            phase_s=None if log.phase_since is None else now - log.phase_since,
            elapsed_s=max(now - _seconds(attempt.started_at, now), 0.0),
            last_text=log.follower.last_text,
            bars=log.follower.progress,
            ranks=log.follower.captures,
            silent_s=log.silent_s(now),
            sign="the log grew",
        )


class _GrowingLog:
    """The stored log of one attempt, each byte read once."""

    def __init__(self, journal: Journal, number: int, follower: Follower) -> None:
        self.follower = follower
        self.phase_since: float | None = None
        self._path = journal.log_path(number)
        self._offset = 0
        self._phase: Phase | None = None

    def read(self, now: float) -> None:
        """Take what the log has grown by."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._offset)
            while chunk := file.read(_CHUNK):
                self.follower.feed(chunk)
                self._offset += len(chunk)
        if self.follower.phase is not self._phase:
            # Nobody knows since when the first phase has gone on that an onlooker finds.
            self.phase_since = None if self._phase is None else now
            self._phase = self.follower.phase

    def silent_s(self, now: float) -> float:
        """Return the seconds since the log last grew; 0 while there is none."""
        try:
            return max(now - self._path.stat().st_mtime, 0.0)
        except FileNotFoundError:
            return 0.0


def _seconds(stamp: str, otherwise: float) -> float:
    """Return a time stamp as seconds since the epoch."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return otherwise
