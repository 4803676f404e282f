"""What a running sweep tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Attempt, Outcome, ProofStep
    from sglsweep.verdict import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An attempt begins, or one that was running is taken over."""

    attempt: Attempt
    is_adopted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a running attempt stands; told at every look, whether or not something changed.

    Attributes:
        phase_s: seconds in this phase so far.
        bars: {"weights": (done, total), "capture": (done, total)} where the log shows them.
    """

    attempt: Attempt
    phase: Phase
    phase_s: float
    elapsed_s: float
    last_text: str
    bars: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAsked:
    """One step of the proof was answered."""

    attempt: Attempt
    step: ProofStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt is over and its diagnosis stands."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a person should know."""

    text: str


Event = Started | Progress | StepAsked | Ended | Note


class Listener(Protocol):
    """Takes events as they happen; must not raise."""

    def tell(self, event: Event) -> None:
        """Take one event."""
        ...
