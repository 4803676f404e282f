"""Which traceback a piece belongs to, while several ranks print theirs at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.triage import traceback
from sglsweep.triage.traceback import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglsweep.triage.record import Piece

RECENT = 64
"""Tracebacks that a later line can still go on with."""
_BEGINS = {traceback.HEAD, traceback.HIT, traceback.WARMUP, traceback.CHILD}
_ENDS_PROCESS = {traceback.HIT, traceback.WARMUP, traceback.CHILD}
_GAP = 2
"""Lines from `Process SpawnProcess-1:` to its traceback, a blank one included."""


class Traces:
    """The tracebacks that are open, the one whose message may go on, and the recent ones."""

    __slots__ = ("_chained", "_count", "_open", "_recent", "_trailing")

    def __init__(self) -> None:
        self._recent: list[Trace] = []
        self._open: list[Trace] = []
        self._trailing: Trace | None = None
        self._chained: dict[str, Trace] = {}
        self._count = 0

    @property
    def is_any_open(self) -> bool:
        """Every line has to be looked at."""
        return bool(self._open) or self._trailing is not None

    def known(self) -> Iterable[Trace]:
        """Return every traceback that can still change."""
        yield from self._recent
        yield from self._open
        yield from self._chained.values()
        if self._trailing is not None:
            yield self._trailing

    def copy(self, twins: dict[int, Trace]) -> Traces:
        """Return a copy made of `twins`, copies of the traces by the identity of the original."""
        copy = Traces()
        copy._recent = [twins[id(t)] for t in self._recent]
        copy._open = [twins[id(t)] for t in self._open]
        copy._trailing = twins[id(self._trailing)] if self._trailing else None
        copy._chained = {key: twins[id(t)] for key, t in self._chained.items()}
        copy._count = self._count
        return copy

    def close_before(self, piece: Piece) -> None:
        """End what the same process wrote before this new record of its own."""
        self._trailing = None
        self._open = [
            t for t in self._open if t.head.rank != piece.rank or t.head.wrapper != piece.wrapper
        ]

    def trailing_of(self, piece: Piece) -> Trace | None:
        """Return the traceback whose message this unheaded piece may go on."""
        return self._trailing if not piece.is_headed else None

    def begins(self, marks: set[str]) -> bool:
        """Say whether a piece with these marks begins a traceback, or announces one."""
        return not marks.isdisjoint(_BEGINS)

    def follow(self, piece: Piece, marks: set[str], previous: Piece | None) -> Trace | None:
        """Return the traceback this piece belongs to.

        `previous` is the piece before it: the record that a bare traceback explains.
        """
        self._forget(piece.line)
        if not marks.isdisjoint(traceback.CHAIN):
            return self._chain(piece)
        if self.begins(marks):
            return self._begin(piece, marks, previous)
        if traceback.FRAME in marks or piece.text.lstrip().startswith('File "'):
            return self._frame(piece)
        return self._go_on(piece) if self._open else None

    def _forget(self, line: int) -> None:
        self._open = [t for t in self._open if line - t.last_line < traceback.REACH]
        if self._trailing and line - self._trailing.last_line > traceback.TRAILING:
            self._trailing = None

    def _go_on(self, piece: Piece) -> Trace | None:
        """Take a line under an open traceback: its end, or a line of source."""
        if traceback.is_exception(piece):
            return self._end(piece)
        trace = self._open[-1]
        if piece.is_headed or not piece.text.startswith("    "):
            return None
        if not traceback.is_marker(piece.text):
            trace.source = piece
        return trace

    def _begin(self, piece: Piece, marks: set[str], previous: Piece | None) -> Trace | None:
        is_head = piece.text.startswith(traceback.HEAD)
        if is_head and (announced := self._announced(piece)):
            return announced
        is_fatal = not marks.isdisjoint(_ENDS_PROCESS)
        trace = Trace(self._count, piece, is_fatal=is_fatal, last_line=piece.line)
        if is_head and previous and previous.line == piece.line - 1:
            trace.head = replace(piece, rank=piece.rank or previous.rank, stamp=previous.stamp)
        return self._opened(trace)

    def _opened(self, trace: Trace) -> Trace:
        self._count += 1
        self._recent = [*self._recent[1 - RECENT :], trace]
        self._open.append(trace)
        self._trailing = None
        return trace

    def _announced(self, piece: Piece) -> Trace | None:
        """Return the trace whose head was announced: a chain, or `Process SpawnProcess-1:`."""
        chained = self._chained.pop(piece.wrapper, None)
        if chained is not None:
            if chained not in self._open:
                self._open.append(chained)
            chained.last_line = piece.line
            return chained
        last = self._open[-1] if self._open else None
        if last and last.is_fatal and not last.frames and last.last_line >= piece.line - _GAP:
            last.last_line = piece.line
            return last
        return None

    def _chain(self, piece: Piece) -> Trace | None:
        """Go on with the traceback that this exception replaces."""
        mine = [t for t in self._recent if t.head.wrapper == piece.wrapper or not t.head.wrapper]
        if not mine or piece.line - mine[-1].last_line > traceback.REACH:
            return None
        last = mine[-1]
        last.section += 1
        last.last_line = piece.line
        if last not in self._open:
            self._open.append(last)
        self._chained[piece.wrapper] = last
        self._trailing = None
        return last

    def _frame(self, piece: Piece) -> Trace | None:
        if traceback.is_dump_frame(piece.text):
            return None
        self._chained.pop(piece.wrapper, None)
        mine = [t for t in reversed(self._open) if t.head.wrapper == piece.wrapper]
        for trace in [*mine, *self._open[-1:]]:
            if trace.add_frame(piece):
                return trace
        headless = Trace(self._count, piece, last_line=piece.line)
        return self._opened(headless) if headless.add_frame(piece) else None

    def _end(self, piece: Piece) -> Trace:
        """Give the exception to the oldest open traceback with frames of the same container."""
        same = [t for t in self._open if t.head.wrapper == piece.wrapper] or self._open
        trace = next((t for t in same if t.frames), same[0])
        trace.end_section(piece)
        self._open.remove(trace)
        self._trailing = trace
        return trace
