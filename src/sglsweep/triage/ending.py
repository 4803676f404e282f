"""What is known about a log's end that the log itself cannot say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a log as its owner saw it.

    Attributes:
        exit_status: the parent's, negative for a signal (or 128+N); None if unknown.
        silence_s: seconds since the last output, where the server still lived; None if unknown.
    """

    exit_status: int | None = None
    silence_s: float | None = None
