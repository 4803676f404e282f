"""Tracebacks as they stand in a log: whose they are, their frames, the exceptions they end in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.triage.record import Piece

HEAD = "Traceback (most recent call last)"
CHAIN = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
FRAME = '  File "'
HIT = " hit an exception"
CHILD = "Process SpawnProcess"
WARMUP = "Initialization failed. warmup error"
MARKS = (HEAD, *CHAIN, FRAME, HIT, CHILD, WARMUP)

MAX_FRAMES = 400
"""Frames kept of one traceback: a recursion error prints a thousand."""
REACH = 80
"""Lines without a frame after which an open traceback is taken for cut off."""
TRAILING = 60
"""Lines after an exception that may still be its message."""

_FRAME = re.compile(r'^\s*File "([^"]{1,300})", line (\d+)(?:, in (.{1,200}))?$')
_DUMP_FRAME = re.compile(r'^\s*File "[^"]{1,300}", line \d+ in ')
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Failure|Warning|OutOfResources|Timeout|Refused"
    r"|Empty|Full|Died|Aborted|NotFound|Unavailable|Iteration|Closed)(?:: .*|:)?$"
    r"|^Exception(?:: .*|:)?$"
    r"|^(?:[a-z_]\w*\.){1,6}[A-Z]\w*: .+$",
    re.DOTALL,
)
_MAIN = re.compile(
    r"(?:launch_server\.py|/bin/sglang|sglang/cli/\w+\.py|<frozen runpy>|<string>"
    r"|multiprocessing/spawn\.py|bench_\w+\.py):"
    r"(?:<module>|_run_module_as_main|_run_code|spawn_main|main)$",
    re.MULTILINE,
)
_LOOP = re.compile(
    r":(?:run_scheduler_process|run_detokenizer_process|run_data_parallel_controller_process|event_loop_\w+|run_event_loop"
    r"|spawn_main|_bootstrap|start_router_process|start_detokenizer_process)$",
    re.MULTILINE,
)


@dataclass(slots=True)
class Trace:
    """One traceback with its chained predecessors.

    Attributes:
        head: the record or line it begins with.
        is_fatal: it ends a process of the server.
        is_ignored: the server says that it goes on, or one request alone failed.
        section: 0 for the first of a chain, which is the innermost exception.
        exceptions: (section, piece) of every line that ends a section.
        source: the last source line shown, for exceptions without a text.
    """

    number: int
    head: Piece
    is_fatal: bool = False
    is_ignored: bool = False
    section: int = 0
    last_line: int = 0
    frames: list[str] = field(default_factory=list)
    exceptions: list[tuple[int, Piece]] = field(default_factory=list)
    source: Piece | None = None

    def copy(self) -> Trace:
        """Return a copy that can go on by itself."""
        return replace(self, frames=list(self.frames), exceptions=list(self.exceptions))

    @property
    def where(self) -> str:
        """All frames as `path:function`, one a line."""
        return "\n".join(self.frames)

    def add_frame(self, piece: Piece) -> bool:
        """Take a frame line; False if it is none."""
        match = _FRAME.match(piece.text)
        if not match or match[3] is None:
            return False
        self.last_line = piece.line
        if len(self.frames) < MAX_FRAMES:
            self.frames.append(f"{match[1]}:{match[3]}")
        if not self.is_fatal and not self.is_ignored and self._is_the_end_of_a_process():
            self.is_fatal = True
        return True

    def _is_the_end_of_a_process(self) -> bool:
        last = self.frames[-1]
        return bool(_LOOP.search(last)) or (
            not self.head.is_headed
            and bool(_MAIN.search(last))
            and self.head.text.startswith(HEAD)
        )

    def has_in_its_stack(self, piece: Piece) -> bool:
        """Say whether a piece is one of its frames or lines of source: they say nothing."""
        text = piece.text
        return self.source is piece or text.lstrip().startswith('File "') or is_marker(text)

    def has_ended_at(self, piece: Piece) -> bool:
        """Say whether this very piece is the exception that ended it."""
        return bool(self.exceptions) and self.exceptions[-1][1] is piece

    def end_section(self, piece: Piece) -> None:
        """Take the line that ends a section."""
        self.exceptions.append((self.section, piece))
        self.last_line = piece.line


def is_dump_frame(text: str) -> bool:
    """Say whether a line is a frame of a faulthandler dump, which is no exception."""
    return bool(_DUMP_FRAME.match(text))


def is_marker(text: str) -> bool:
    """Say whether a line only points at a part of the line of source above it."""
    return text.startswith("    ") and not text.strip(" ^~")


def is_exception(piece: Piece) -> bool:
    """Say whether a line can be the one that ends a traceback."""
    return not piece.is_headed and bool(_EXCEPTION.match(piece.text))
