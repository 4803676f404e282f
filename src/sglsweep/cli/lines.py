"""A sweep told in plain lines: one when an attempt begins, changes phase, is asked, ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, assert_never

from sglsweep.attempt import StepState
from sglsweep.events import Ended, Event, Note, Progress, Started, StepAsked, Stopping

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.verdict import Phase


class Lines:
    """Writes to standard error, so that results on standard output stay clean."""

    def __init__(self) -> None:
        self._phase: Phase | None = None

    def tell(self, event: Event) -> None:
        """Write what is worth a line."""
        match event:
            case Started():
                self._phase = None
                self._started(event)
            case Progress():
                self._progress(event)
            case StepAsked():
                self._asked(event)
            case Stopping():
                pass  # the next line says it
            case Ended():
                _write(_last_words(event.outcome))
            case Note():
                _write(event.text)
            case _:
                assert_never(event)

    def _started(self, event: Started) -> None:
        attempt = event.attempt
        verb = "taken over" if event.is_adopted else "started"
        _write(f"attempt {attempt.number} {verb}: {describe(attempt.cell.values)}")
        _write(f"  why: {attempt.why}")

    def _progress(self, event: Progress) -> None:
        if event.phase is self._phase:
            return
        self._phase = event.phase
        _write(f"  {event.elapsed_s:6.1f} s  {event.phase.value}")

    def _asked(self, event: StepAsked) -> None:
        step = event.step
        if step.state in {StepState.NOT_APPLICABLE, StepState.NOT_RUN}:
            return
        tail = f": {step.detail}" if step.detail else ""
        _write(f"            proof {step.name} {step.state.value}{tail}")


def describe(values: object) -> str:
    """Write a cell's values for a person; what is not passed is left out."""
    if not isinstance(values, dict):
        return str(values)
    said = [f"{name}={value}" for name, value in values.items() if value is not None]
    return " ".join(said) or "(nothing but what launch says)"


def _last_words(outcome: Outcome) -> str:
    diagnosis = outcome.diagnosis
    says_more = diagnosis.cause and diagnosis.cause != diagnosis.verdict.value
    cause = f" ({diagnosis.cause})" if says_more else ""
    head = (
        f"attempt {outcome.attempt.number} {diagnosis.verdict.value}{cause} in "
        f"{diagnosis.phase.value}, {outcome.timings.total_s:.0f} s"
    )
    evidence = f"\n  {diagnosis.evidence.strip()[:200]}" if diagnosis.evidence else ""
    return head + evidence


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
