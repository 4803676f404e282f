"""What a live view knows: filled by events, looked at by the painter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from sglsweep.events import (
    Ended,
    Event,
    Note,
    Progress,
    Started,
    StepAsked,
    Stopping,
    Withdrawn,
)
from sglsweep.report.launches import Change, settings
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Attempt, Outcome, ProofStep

_NOTES_KEPT = 20


@dataclass(slots=True)
class Running:
    """An attempt that is not over.

    Attributes:
        told_at: when `progress` was told, for what grows while nothing is told.
        ending: what it came to, while it is being ended.
    """

    attempt: Attempt
    is_adopted: bool = False
    progress: Progress | None = None
    told_at: float = 0.0
    steps: list[ProofStep] = field(default_factory=list)
    ending: Outcome | None = None


@dataclass(slots=True, kw_only=True)
class Scene:
    """Everything on the screen; times are seconds on one clock.

    Attributes:
        most: attempts at most, of the budget; None = no limit.
        outcomes: finished attempts of the run, earlier sessions' too, by number.
        running: attempts that are not over, by number.
        next_text: what comes after the running attempt, and why.
        odds_text: what further attempts may bring.
    """

    title: str
    host: str
    goal: str = ""
    most: int | None = None
    began_at: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    running: dict[int, Running] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    next_text: str = ""
    odds_text: str = ""

    def take(self, event: Event, now: float) -> None:
        """Take one event."""
        match event:
            case Started():
                self.running[event.attempt.number] = Running(event.attempt, event.is_adopted)
                self.next_text = ""
            case Progress():
                one = self._of(event.attempt)
                one.progress, one.told_at = event, now
            case StepAsked():
                one = self._of(event.attempt)
                one.told_at = now
                one.steps.append(event.step)
            case Stopping():
                self._of(event.outcome.attempt).ending = event.outcome
            case Ended():
                self._end(event.outcome)
            case Withdrawn():
                self.running.pop(event.attempt.number, None)
            case Note():
                self.notes = [*self.notes[1 - _NOTES_KEPT :], event.text]
            case _:
                assert_never(event)

    def _of(self, attempt: Attempt) -> Running:
        return self.running.setdefault(attempt.number, Running(attempt))

    def _end(self, outcome: Outcome) -> None:
        number = outcome.attempt.number
        others = [o for o in self.outcomes if o.attempt.number != number]
        self.outcomes = sorted([*others, outcome], key=lambda o: o.attempt.number)
        self.running.pop(number, None)
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
