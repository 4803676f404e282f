"""What a running sweep tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass, field
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
        phase_s: seconds in this phase so far; None for an onlooker who came in the middle of it.
        bars: {"weights": (done, total), "capture": (done, total)} where the log shows them.
        ranks: kind of graph capture -> (ranks that are through, ranks that began).
        silent_s: seconds since the last output or life sign.
        limit_s: of that silence; None = none.
        cap_s: how long this phase may last in all; None = without end.
        sign: what the last sign was.
    """

    attempt: Attempt
    phase: Phase
    phase_s: float | None
    elapsed_s: float
    last_text: str
    bars: Mapping[str, tuple[int, int]]
    ranks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    silent_s: float | None = None
    limit_s: float | None = None
    cap_s: float | None = None
    sign: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAsked:
    """One step of the proof was answered."""

    attempt: Attempt
    step: ProofStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The wait is over and the diagnosis stands; what is left of the attempt is being ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt is over and its diagnosis stands."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """An attempt was not started after all (its port is taken); its record is gone."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a person should know."""

    text: str


Event = Started | Progress | StepAsked | Stopping | Ended | Withdrawn | Note


class Listener(Protocol):
    """Takes events as they happen; must not raise."""

    def tell(self, event: Event) -> None:
        """Take one event."""
        ...
