"""What a live view knows: filled by events, looked at by the painter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from sglsweep.events import Ended, Event, Note, Progress, Started, StepAsked, Stopping
from sglsweep.report.launches import Change, settings
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Attempt, Outcome, ProofStep

_NOTES_KEPT = 20


@dataclass(slots=True, kw_only=True)
class Scene:
    """Everything on the screen; times are seconds on one clock.

    Attributes:
        most: attempts at most, of the budget; None = no limit.
        outcomes: finished attempts of the run, earlier sessions' too, by number.
        told_at: when `progress` was told, for what grows while nothing is told.
        ending: what the running attempt came to, while it is being ended.
        next_text: what comes after the running attempt, and why.
    """

    title: str
    host: str
    goal: str = ""
    most: int | None = None
    began_at: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    attempt: Attempt | None = None
    is_adopted: bool = False
    progress: Progress | None = None
    told_at: float = 0.0
    steps: list[ProofStep] = field(default_factory=list)
    ending: Outcome | None = None
    notes: list[str] = field(default_factory=list)
    next_text: str = ""

    def take(self, event: Event, now: float) -> None:
        """Take one event."""
        match event:
            case Started():
                self._begin(event)
            case Progress():
                self.attempt, self.progress = event.attempt, event
            case StepAsked():
                self.steps.append(event.step)
            case Stopping():
                self.ending = event.outcome
            case Ended():
                self._end(event.outcome)
            case Note():
                self.notes = [*self.notes[1 - _NOTES_KEPT :], event.text]
            case _:
                assert_never(event)
        self.told_at = now

    def _begin(self, event: Started) -> None:
        self.attempt, self.is_adopted = event.attempt, event.is_adopted
        self.progress = self.ending = None
        self.steps = []
        self.next_text = ""

    def _end(self, outcome: Outcome) -> None:
        number = outcome.attempt.number
        others = [o for o in self.outcomes if o.attempt.number != number]
        self.outcomes = sorted([*others, outcome], key=lambda o: o.attempt.number)
        self.attempt = self.progress = self.ending = None
        self.next_text = ""

    @property
    def serving(self) -> list[int]:
        """Numbers of the attempts that serve."""
        return [o.attempt.number for o in self.outcomes if o.verdict is Verdict.SERVING]


def difference(attempt: Attempt, outcomes: Sequence[Outcome]) -> tuple[int, tuple[Change, ...]]:
    """Return the earlier attempt that differs least, the latest of equals, and in what; 0: none.

    Settings count that reach the server, not only the matrix.
    """
    earlier = [o.attempt for o in outcomes if o.attempt.number < attempt.number]
    if not earlier:
        return 0, ()
    mine = settings(attempt)
    other = min(earlier, key=lambda a: (len(_names(a, attempt)), -a.number))
    theirs = settings(other)
    changes = (Change(n, theirs.get(n), mine.get(n)) for n in sorted(_names(other, attempt)))
    return other.number, tuple(changes)


def _names(before: Attempt, after: Attempt) -> set[str]:
    return {name for name, _ in settings(before).items() ^ settings(after).items()}
