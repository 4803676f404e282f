"""A sweep told in plain lines: one when an attempt begins, changes phase, is asked, ends."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, assert_never

from sglsweep.attempt import StepState
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

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.verdict import Phase


class Lines:
    """Writes to standard error, so that results on standard output stay clean.

    Each line of an attempt among several begins with its number. Usable from several threads.
    """

    def __init__(self, *, is_numbered: bool = False) -> None:
        self._is_numbered = is_numbered
        self._phases: dict[int, Phase] = {}
        self._turn = threading.Lock()

    def tell(self, event: Event) -> None:
        """Write what is worth a line."""
        with self._turn:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        match event:
            case Started():
                self._phases.pop(event.attempt.number, None)
                self._started(event)
            case Progress():
                self._progress(event)
            case StepAsked():
                self._asked(event)
            case Stopping():
                pass  # the next line says it
            case Ended():
                head, *more = _last_words(event.outcome)
                _write(head)
                self._write_below(event.outcome.attempt, *more)
            case Withdrawn():
                pass  # the error, or the note of the slot, says why
            case Note():
                _write(event.text)
            case _:
                assert_never(event)

    def _started(self, event: Started) -> None:
        attempt = event.attempt
        verb = "taken over" if event.is_adopted else "started"
        _write(f"attempt {attempt.number} {verb}: {describe(attempt.cell.values)}")
        self._write_below(attempt, f"why: {attempt.why}")

    def _progress(self, event: Progress) -> None:
        if event.phase is self._phases.get(event.attempt.number):
            return
        self._phases[event.attempt.number] = event.phase
        self._write_below(event.attempt, f"{event.elapsed_s:6.1f} s  {event.phase.value}")

    def _asked(self, event: StepAsked) -> None:
        step = event.step
        if step.state in {StepState.NOT_APPLICABLE, StepState.NOT_RUN}:
            return
        tail = f": {step.detail}" if step.detail else ""
        said = f"{'':10}proof {step.name} {step.state.value}{tail}"
        self._write_below(event.attempt, said)

    def _write_below(self, attempt: Attempt, *lines: str) -> None:
        """Write lines that belong to an attempt, so that one knows to which."""
        head = f"{attempt.number:>4} | " if self._is_numbered else "  "
        for line in lines:
            _write(head + line)


def describe(values: object) -> str:
    """Write a cell's values for a person; what is not passed is left out."""
    if not isinstance(values, dict):
        return str(values)
    said = [f"{name}={value}" for name, value in values.items() if value is not None]
    return " ".join(said) or "(nothing but what launch says)"


def _last_words(outcome: Outcome) -> list[str]:
    """Return what an attempt came to, and the line of its log that shows it."""
    diagnosis = outcome.diagnosis
    says_more = diagnosis.cause and diagnosis.cause != diagnosis.verdict.value
    cause = f" ({diagnosis.cause})" if says_more else ""
    head = (
        f"attempt {outcome.attempt.number} {diagnosis.verdict.value}{cause} in "
        f"{diagnosis.phase.value}, {outcome.timings.total_s:.0f} s"
    )
    evidence = [diagnosis.evidence.strip()[:200]] if diagnosis.evidence else []
    return [head, *evidence]


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
