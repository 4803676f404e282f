"""A log that grows: what is known of it so far, for the watcher and the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar
    from sglsweep.verdict import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The first line that will not let this server live.

    Attributes:
        line: 1-based line number.
        signature: id of the catalogue entry that said so.
        is_cascade: True for a line that only says some other process died; wait for the cause.
    """

    line: int
    text: str
    signature: str
    is_cascade: bool


class View(Protocol):
    """What a follower knows after the bytes fed so far.

    Attributes:
        phase: furthest milestone of any rank; graph-capture again while a later capture is open.
        is_ready: the ready line stood in the log.
        is_compiling: the last record was JIT, autotune or DeepGEMM work (long silence is normal).
        is_capturing: graph capture is open.
        terminal: None while the log gives no reason to stop waiting.
        server_args: the resolved arguments, once printed.
        last_text: the last meaningful record, for a person.
        progress: {"weights": (done, total), "capture": (done, total)} where bars show it.
        records: number of records so far.
    """

    phase: Phase
    is_ready: bool
    is_compiling: bool
    is_capturing: bool
    terminal: Terminal | None
    server_args: Mapping[str, Scalar]
    last_text: str
    progress: Mapping[str, tuple[int, int]]
    records: int

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the log, cut anywhere."""
        ...
