"""A log that grows: what is known of it so far, for the watcher and the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sglsweep.catalogue.signature import Role
from sglsweep.triage.diagnose import conclude
from sglsweep.triage.reading import Reading
from sglsweep.triage.record import pieces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Diagnosis, Scalar
    from sglsweep.catalogue import Catalogue
    from sglsweep.triage.ending import Ending
    from sglsweep.triage.events import Event
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

    @property
    def phase(self) -> Phase: ...  # noqa: D102 - the class says it
    @property
    def is_ready(self) -> bool: ...  # noqa: D102
    @property
    def is_compiling(self) -> bool: ...  # noqa: D102
    @property
    def is_capturing(self) -> bool: ...  # noqa: D102
    @property
    def terminal(self) -> Terminal | None: ...  # noqa: D102
    @property
    def server_args(self) -> Mapping[str, Scalar]: ...  # noqa: D102
    @property
    def last_text(self) -> str: ...  # noqa: D102
    @property
    def progress(self) -> Mapping[str, tuple[int, int]]: ...  # noqa: D102
    @property
    def records(self) -> int: ...  # noqa: D102

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the log, cut anywhere."""
        ...


class Follower:
    """A `View` over a log that is fed while the server prints, each byte read once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._reading = Reading(catalogue)
        self._judged = 0
        self._terminal: Terminal | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the log, cut anywhere."""
        self._reading.feed(chunk)
        events = self._reading.events
        if self._terminal is None or self._terminal.is_cascade:
            for event in events[self._judged :]:
                self._judge(event)
        self._judged = len(events)

    def _judge(self, event: Event) -> None:
        is_cascade = event.signature is not None and event.signature.role is Role.CASCADE
        if not event.is_fatal or (self._terminal is not None and is_cascade):
            return
        if self._terminal is not None and not self._terminal.is_cascade:
            return
        self._terminal = Terminal(
            line=event.piece.line,
            text=event.piece.text,
            signature=event.signature.id if event.signature else "unknown",
            is_cascade=is_cascade,
        )

    def diagnose(self, ending: Ending | None = None) -> Diagnosis:
        """Return what the log amounts to so far; feeding can go on afterwards."""
        return conclude(self._reading, self._catalogue, ending=ending)

    @property
    def phase(self) -> Phase:
        """Furthest milestone of any rank; graph-capture again while a later capture is open."""
        return self._reading.progress.phase

    @property
    def is_ready(self) -> bool:
        """The ready line stood in the log, and the port was not somebody else's."""
        return bool(self._reading.progress.ready_line)

    @property
    def is_compiling(self) -> bool:
        """The last record was JIT, autotune or DeepGEMM work."""
        return self._reading.is_compiling

    @property
    def is_capturing(self) -> bool:
        """Graph capture is open."""
        return self._reading.progress.is_capturing

    @property
    def terminal(self) -> Terminal | None:
        """The first line that ends hope; a cascade gives way to the cause that follows it."""
        return self._terminal

    @property
    def server_args(self) -> Mapping[str, Scalar]:
        """The resolved arguments by SGLang's own names; empty until printed."""
        return self._reading.resolution.args

    @property
    def last_text(self) -> str:
        """The last line, or the last state of a progress bar, without prefixes."""
        raw = self._reading.pending if self._reading.pending.strip() else self._reading.last_raw
        found = pieces(0, raw)
        return found[-1].text.strip() if found else ""

    @property
    def progress(self) -> Mapping[str, tuple[int, int]]:
        """How far the bars are, the one that is being redrawn included."""
        return self._reading.bars()

    @property
    def records(self) -> int:
        """Number of complete lines so far."""
        return self._reading.lines

    @property
    def captures(self) -> Mapping[str, tuple[int, int]]:
        """Kind of graph capture -> (ranks that are through, ranks that began), in order."""
        begun, ended = self._reading.progress.begun, self._reading.progress.ended
        return {kind: (len(ended.get(kind, {})), len(ranks)) for kind, ranks in begun.items()}
