"""A log read once, in any cuts: what it says so far, without a judgement.

Literals of the catalogue are searched in whole blocks of raw bytes; only lines that hold one
are looked at, and the lines of an open traceback. Whatever depends on a line's neighbours is
kept here from line to line, never read back, so that the cuts of the input cannot matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.catalogue.signature import Role
from sglsweep.triage import effective, metrics, milestones, traceback
from sglsweep.triage.record import Piece, pieces
from sglsweep.triage.signature import best, holds, matcher

if TYPE_CHECKING:
    from sglsweep.catalogue import Catalogue, Signature
    from sglsweep.verdict import Phase

FLOOD = 8
"""Matches of one signature by one rank that are kept; the rest is only counted."""
MAX_EVENTS = 20000

STOP_MARKS = ("SIGTERM received", "Signal SIGTERM received", "Gracefully exiting")
OTHER_NODE = "Dummy health check server"
NO_WARMUP = re.compile(r"'?skip_server_warmup'?\s*[=:]\s*True")
COMPILING_MARKS = (
    "Running FlashInfer autotune", "Entering DeepGEMM JIT", "Try DeepGEMM JIT Compiling", "DeepGEMM warmup",
    "Loading JIT ops", "flashinfer.jit", "[AutoTuner]", "JIT compil", "aiter] build", "start build [", "[aiter] start",
    "Compiling DeepGEMM", "JIT Pre-Compile", "Building extension", "ninja: Entering directory",
)  # fmt: skip
COMPILED_MARKS = (
    "FlashInfer autotune completed",
    "Finished loading JIT ops",
    "DeepGEMM JIT Pre-Compile finished",
)

MARKS = tuple(
    dict.fromkeys(
        (
            *milestones.MARKS,
            *metrics.MARKS,
            *effective.MARKS,
            *effective.LINE_MARKS,
            *traceback.MARKS,
            *STOP_MARKS,
            OTHER_NODE,
            *COMPILING_MARKS,
            *COMPILED_MARKS,
            "Error: ",
            "Exception: ",
            "sglang version",
            "lmsysorg/sglang:v",
            "sglang 0.",
        )
    )
)
_BAR = re.compile(r"\|?\s(\d+)/(\d+) \[")
_VERSION = re.compile(
    r"(?:sglang(?: version|==|-)?[ :=v]{1,3}|lmsysorg/sglang:v|'version': ')(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)"
)


@dataclass(slots=True)
class Event:
    """A line that a signature matched, where and in what context.

    Attributes:
        piece: the text that shows it.
        signature: None for an exception that no signature knows.
        trace: the traceback it belongs to.
        section: 0 for the innermost exception of a chain.
        count: how often it was seen, folded lines included.
    """

    piece: Piece
    signature: Signature | None
    phase: Phase
    rank: str | None
    stamp: str | None
    is_fatal: bool
    trace: traceback.Trace | None = None
    section: int = 0
    count: int = 1


class Reading:
    """What was read so far. `feed` takes bytes in any cut; `finished` is a copy with the last line."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._matcher = matcher(catalogue, MARKS)
        self._rest = bytearray()
        self._block = b""
        self._block_line = 0
        self._counted_to = 0
        self._searched_to = 0
        self._previous = b""
        self.lines = 0
        self.size = 0
        self.progress = milestones.Progress()
        self.numbers = metrics.Numbers()
        self.resolution = effective.Resolution()
        self.events: list[Event] = []
        self.suspects: dict[str, Event] = {}
        self.ignored_imports: list[Event] = []
        self.traces: list[traceback.Trace] = []
        self.open: list[traceback.Trace] = []
        self.trailing: traceback.Trace | None = None
        self._chained: dict[str, int] = {}
        self._seen: dict[tuple[str, str], Event] = {}
        self.ranks: set[str] = set()
        self.torch_ranks: set[int] = set()
        self.stop_line = 0
        self.stamp: str | None = None
        self.skips_warmup = False
        self._began_compiling = False
        self.version: str | None = None
        self.last_piece: Piece | None = None
        self.last_raw = b""

    # -- input ---------------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.size += len(chunk)
        cut = chunk.rfind(b"\n")
        if cut < 0:
            self._rest += chunk
            return
        if self._rest:
            block = bytes(self._rest) + chunk[: cut + 1]
            self._rest.clear()
        else:
            block = chunk[: cut + 1]
        self._rest += chunk[cut + 1 :]
        self._read_block(block)

    def finished(self) -> Reading:
        """Return a copy in which the last line, which no newline ended, was read as well."""
        copy = self._copy()
        if copy._rest:
            block = bytes(copy._rest)
            copy._rest.clear()
            copy._read_block(block)
        return copy

    @property
    def pending(self) -> bytes:
        """The beginning of a line that is not ended yet, at most its last 4 KiB."""
        return bytes(self._rest[-4096:])

    def bars(self) -> dict[str, tuple[int, int]]:
        """How far weights and capture are, by the bars; the one being redrawn included."""
        bars = dict(self.progress.bars)
        tail = self.pending.rsplit(b"\r", 1)[-1].decode("utf-8", "replace")
        if match := _BAR.search(tail):
            name = "capture" if "Capturing" in tail else "weights" if "shards" in tail else ""
            if name:
                bars[name] = (int(match[1]), int(match[2]))
        return bars

    def _copy(self) -> Reading:
        copy = object.__new__(Reading)
        copy.__dict__.update(self.__dict__)
        copy._rest = bytearray(self._rest)
        copy.progress = self.progress.copy()
        copy.numbers = self.numbers.copy()
        copy.resolution = self.resolution.copy()
        twins = {id(t): t.copy() for t in self.traces}
        copy.traces = list(twins.values())
        copy.open = [twins[id(t)] for t in self.open]
        copy.trailing = twins[id(self.trailing)] if self.trailing else None
        twin_events = {
            id(e): replace(e, trace=twins[id(e.trace)] if e.trace else None) for e in self.events
        }
        copy.events = list(twin_events.values())
        copy._seen = {k: twin_events[id(e)] for k, e in self._seen.items() if id(e) in twin_events}
        copy.suspects = dict(self.suspects)
        copy.ignored_imports = list(self.ignored_imports)
        copy._chained = dict(self._chained)
        copy.ranks = set(self.ranks)
        copy.torch_ranks = set(self.torch_ranks)
        return copy

    # -- blocks --------------------------------------------------------------------------------

    def _read_block(self, block: bytes) -> None:
        """Look at the lines of `block` that hold a literal, and at those of an open traceback."""
        self._block, self._block_line = block, self.lines
        self._counted_to = self._searched_to = 0
        position = 0
        for hit in self._matcher.offsets(block):
            if hit < position and position:
                continue
            position = self._read_open(position, hit)
            if hit < position:
                continue
            start = block.rfind(b"\n", 0, hit) + 1
            position = self._read_line(start)
        position = self._read_open(position, len(block))
        self._serving_until(len(block))
        self.lines = self._line_at(len(block))
        self._last_serving(block)
        self._remember_last(block)
        self._block = b""

    def _line_at(self, offset: int) -> int:
        """Number of newlines before `offset`, over all blocks."""
        self._block_line += self._block.count(b"\n", self._counted_to, offset)
        self._counted_to = offset
        return self._block_line

    def _read_open(self, position: int, until: int) -> int:
        """Read line by line while a traceback is open; return where reading stopped."""
        while (self.open or self.trailing) and position < until:
            end = self._block.find(b"\n", position)
            if end < 0:
                end = len(self._block)
            if end >= until and until < len(self._block):
                return position
            position = self._read_line(position)
        return position

    def _read_line(self, start: int) -> int:
        """Look at the line that begins at `start`; return where the next one begins."""
        end = self._block.find(b"\n", start)
        end = len(self._block) if end < 0 else end
        self._serving_until(start)
        line = self._line_at(start) + 1
        raw = self._block[start:end]
        for piece in pieces(line, raw):
            self._read_piece(piece)
        return end + 1

    def _serving_until(self, offset: int) -> None:
        """Find the prefills, decodes and answers before `offset` that mean something new."""
        start, progress = self._searched_to, self.progress
        if offset <= start:
            return
        self._searched_to = offset
        if not progress.first_decode:
            at = self._block.find(milestones.DECODE, start, offset)
            if at >= 0:
                progress.see_decode(self._peek_line(at))
        at = start
        while not progress.first_decode and not progress.has_prefill and at >= 0:
            at = self._block.find(milestones.PREFILL, at, offset)
            if at >= 0:
                progress.see_prefill(self._peek_line(at))
                at += 1
        at = start
        while not progress.has_answer:
            match = milestones.ANSWER.search(self._block, at, offset)
            if match is None:
                break
            progress.see_answer(self._peek_line(match.start()))
            at = match.end()

    def _peek_line(self, offset: int) -> int:
        return self._block_line + self._block.count(b"\n", self._counted_to, offset) + 1

    def _last_serving(self, block: bytes) -> None:
        """Keep the last decode, prefill and answer of the block."""
        progress, total = self.progress, self.lines
        decode, prefill = block.rfind(milestones.DECODE), block.rfind(milestones.PREFILL)
        for at in (decode, prefill):
            if at >= 0:
                line = total - block.count(b"\n", at) + 1
                progress.last_request = max(progress.last_request, line)
        if decode >= 0:
            progress.last_decode = total - block.count(b"\n", decode) + 1
        self.numbers.read_serving(_line_of(block, decode), _line_of(block, prefill))
        if progress.has_answer:
            at = milestones.last_answer(block)
            if at >= 0:
                progress.last_request = max(
                    progress.last_request, total - block.count(b"\n", at) + 1
                )

    def _remember_last(self, block: bytes) -> None:
        """Keep the block's last line that is not empty: what the server did last."""
        end = len(block.rstrip(b"\r\n \t"))
        if end == 0:
            return
        start = max(block.rfind(b"\n", 0, end) + 1, end - 8192)
        self.last_raw = block[start:end]

    @property
    def is_compiling(self) -> bool:
        """The last record is JIT, autotune or DeepGEMM work, or a bar that such a record began."""
        last = self.pending if self.pending.strip() else self.last_raw
        tail = last.decode("utf-8", "replace")
        if any(mark in tail for mark in COMPILING_MARKS):
            return not any(mark in tail for mark in COMPILED_MARKS)
        return self._began_compiling and "%|" in tail and "Capturing" not in tail

    # -- pieces --------------------------------------------------------------------------------

    def _read_piece(self, piece: Piece) -> None:
        if piece.rank:
            self.ranks.add(piece.rank)
        if piece.torch_rank is not None:
            self.torch_ranks.add(piece.torch_rank)
        if piece.stamp:
            self.stamp = piece.stamp
        marks, candidates = self._matcher.hits(piece.text)
        if piece.is_headed:
            self._close_traces(piece)
        self._read_marks(piece, marks)
        trace = self._read_trace(piece, marks)
        is_exception = (
            trace is not None and bool(trace.exceptions) and trace.exceptions[-1][1] is piece
        )
        if trace is None and self._is_lone_exception(piece, marks):
            is_exception = True
        if trace is not None and trace.source is piece:
            return
        if is_exception and trace is not None and trace.source is not None:
            candidates = self._with_source(piece, trace.source, candidates)
        self._judge(piece, candidates, trace or self.trailing_of(piece), is_exception=is_exception)
        self.last_piece = piece

    def _with_source(
        self, piece: Piece, source: Piece, candidates: list[Signature]
    ) -> list[Signature]:
        """Add what the source line of an exception without a text may be a sign of."""
        if ":" in piece.text:
            return candidates
        _, more = self._matcher.hits(source.text)
        return candidates + [s for s in more if s not in candidates and s.site == "exception"]

    def trailing_of(self, piece: Piece) -> traceback.Trace | None:
        """Return the traceback whose message this unheaded piece may go on."""
        return self.trailing if not piece.is_headed else None

    def _is_lone_exception(self, piece: Piece, marks: set[str]) -> bool:
        return ("Error: " in marks or "Exception: " in marks) and traceback.is_exception(piece)

    def _read_marks(self, piece: Piece, marks: set[str]) -> None:
        for mark in marks:
            if mark in milestones.MARKS:
                self.progress.read(mark, piece.text, piece.rank, piece.line)
        if not marks.isdisjoint(metrics.MARKS):
            self.numbers.read(piece.text, piece.rank)
        if "server_args=" in marks:
            self.resolution.read_args(piece.text)
            self.skips_warmup = self.skips_warmup or bool(NO_WARMUP.search(piece.text))
        elif not marks.isdisjoint(effective.MARKS):
            self.resolution.read_command(piece.text)
        if not marks.isdisjoint(effective.LINE_MARKS):
            self.resolution.read_line(piece.text)
        if not marks.isdisjoint(STOP_MARKS):
            self.stop_line = self.stop_line or piece.line
        if OTHER_NODE in marks:
            self.progress.is_other_node = True
        self._began_compiling = not marks.isdisjoint(COMPILING_MARKS) and marks.isdisjoint(
            COMPILED_MARKS
        )
        if self.version is None and ("sglang" in piece.text or "'version'" in piece.text):
            match = _VERSION.search(piece.text)
            self.version = match[1] if match else None

    def _close_traces(self, piece: Piece) -> None:
        """End what the same process wrote before this new record of its own."""
        self.trailing = None
        self.open = [
            t for t in self.open if t.head.rank != piece.rank or t.head.wrapper != piece.wrapper
        ]

    def _read_trace(self, piece: Piece, marks: set[str]) -> traceback.Trace | None:
        """Follow tracebacks; return the one this piece belongs to."""
        self.open = [t for t in self.open if piece.line - t.last_line < traceback.REACH]
        if self.trailing and piece.line - self.trailing.last_line > traceback.TRAILING:
            self.trailing = None
        if not marks.isdisjoint(traceback.CHAIN):
            return self._chain(piece)
        if (
            traceback.HEAD in marks
            or traceback.HIT in marks
            or traceback.WARMUP in marks
            or traceback.CHILD in marks
        ):
            return self._begin_trace(piece, marks)
        if traceback.FRAME in marks or piece.text.lstrip().startswith('File "'):
            return self._frame(piece)
        if not self.open:
            return None
        if traceback.is_exception(piece):
            return self._end_trace(piece)
        trace = self.open[-1]
        if not piece.is_headed and piece.text.startswith("    "):
            trace.source = piece
            return trace
        return None

    def _begin_trace(self, piece: Piece, marks: set[str]) -> traceback.Trace | None:
        if piece.text.startswith(traceback.HEAD) and (follow := self._continues(piece)):
            return follow
        is_fatal = not marks.isdisjoint({traceback.HIT, traceback.WARMUP, traceback.CHILD})
        trace = traceback.Trace(len(self.traces), piece, is_fatal=is_fatal, last_line=piece.line)
        previous = self.last_piece
        if piece.text.startswith(traceback.HEAD) and previous and previous.line == piece.line - 1:
            trace.is_ignored = self._is_ignored_by(previous)
            trace.head = replace(piece, rank=piece.rank or previous.rank, stamp=previous.stamp)
        self.traces.append(trace)
        self.open.append(trace)
        self.trailing = None
        return trace

    def _continues(self, piece: Piece) -> traceback.Trace | None:
        """Return the trace whose head was announced: a chain, or `Process SpawnProcess-1:`."""
        number = self._chained.pop(piece.wrapper, None)
        if number is not None:
            trace = self.traces[number]
            if trace not in self.open:
                self.open.append(trace)
            trace.is_open, trace.last_line = True, piece.line
            return trace
        if (
            self.open
            and self.open[-1].is_fatal
            and not self.open[-1].frames
            and self.open[-1].last_line >= piece.line - 2
        ):  # noqa: PLR2004 - a blank line may stand between
            self.open[-1].last_line = piece.line
            return self.open[-1]
        return None

    def _is_ignored_by(self, previous: Piece) -> bool:
        _, candidates = self._matcher.hits(previous.text)
        return any(
            s.role is Role.HARMLESS and holds(s, previous.text, self.progress.phase, "")
            for s in candidates
        )

    def _chain(self, piece: Piece) -> traceback.Trace | None:
        last = next(
            (
                t
                for t in reversed(self.traces)
                if t.head.wrapper == piece.wrapper or not t.head.wrapper
            ),
            None,
        )
        if last is None or piece.line - last.last_line > traceback.REACH:
            return None
        last.section += 1
        last.last_line = piece.line
        last.is_open = True
        if last not in self.open:
            self.open.append(last)
        self._chained[piece.wrapper] = last.number
        self.trailing = None
        return last

    def _frame(self, piece: Piece) -> traceback.Trace | None:
        if traceback.is_dump_frame(piece.text):
            return None
        self._chained.pop(piece.wrapper, None)
        for trace in reversed(self.open):
            if trace.head.wrapper == piece.wrapper and trace.add_frame(piece):
                return trace
        if self.open and self.open[-1].add_frame(piece):
            return self.open[-1]
        headless = traceback.Trace(len(self.traces), piece, last_line=piece.line)
        if not headless.add_frame(piece):
            return None
        self.traces.append(headless)
        self.open.append(headless)
        return headless

    def _end_trace(self, piece: Piece) -> traceback.Trace:
        same = [t for t in self.open if t.head.wrapper == piece.wrapper] or self.open
        trace = next((t for t in same if t.frames), same[0])
        trace.end_section(piece)
        self.open.remove(trace)
        self.trailing = trace
        return trace

    # -- judgement of one piece ------------------------------------------------------------------

    def _judge(
        self,
        piece: Piece,
        candidates: list[Signature],
        trace: traceback.Trace | None,
        *,
        is_exception: bool,
    ) -> None:
        if not candidates and not is_exception:
            return
        if trace is not None and trace.is_ignored:
            return
        frames = trace.where if trace else ""
        phase = self._phase(trace)
        text = _said_by(piece, trace) if is_exception else piece.text
        matched = [
            s
            for s in candidates
            if holds(s, text, phase, frames) and (is_exception or s.site != "exception")
        ]
        if is_exception and not any(s.role is not Role.ADVICE for s in matched):
            matched += [s for s in self._matcher.free if holds(s, text, phase, frames)]
        signature = best(matched)
        if signature is None:
            if is_exception:
                self._add(piece, None, trace, phase)
            return
        if signature.role is Role.HARMLESS:
            self._ignore(piece, signature)
            return
        if signature.role is Role.ADVICE:
            self._suspect(piece, signature, phase)
            return
        for advice in matched:
            if advice.role is Role.ADVICE:
                self._suspect(piece, advice, phase)
        self._add(piece, signature, trace, phase)

    def _phase(self, trace: traceback.Trace | None) -> Phase:
        if self.progress.has_milestone or trace is None:
            return self.progress.phase
        return milestones.phase_of_frames(trace.where)

    def _ignore(self, piece: Piece, signature: Signature) -> None:
        if signature.id == "import-ignored" and len(self.ignored_imports) < MAX_EVENTS:
            self.ignored_imports.append(self._event(piece, signature, None, self.progress.phase))

    def _suspect(self, piece: Piece, signature: Signature, phase: Phase) -> None:
        known = self.suspects.get(signature.id)
        if known is None:
            self.suspects[signature.id] = self._event(piece, signature, None, phase)
        else:
            self.suspects[signature.id] = replace(known, count=known.count + 1)

    def _add(
        self,
        piece: Piece,
        signature: Signature | None,
        trace: traceback.Trace | None,
        phase: Phase,
    ) -> None:
        event = self._event(piece, signature, trace, phase)
        key = (signature.id if signature else piece.text[:200], event.rank or "")
        known = self._seen.get(key)
        if known is not None:
            known.count += 1
            if known.count > FLOOD:
                return
        else:
            self._seen[key] = event
        if len(self.events) < MAX_EVENTS:
            self.events.append(event)

    def _event(
        self,
        piece: Piece,
        signature: Signature | None,
        trace: traceback.Trace | None,
        phase: Phase,
    ) -> Event:
        is_fatal = bool(trace and trace.is_fatal) or bool(signature and signature.is_fatal)
        rank, stamp = piece.rank, piece.stamp
        if trace is not None and not piece.is_headed:
            rank, stamp = trace.head.rank, trace.head.stamp or piece.stamp
        section = trace.section if trace else 0
        return Event(piece, signature, phase, rank, stamp, is_fatal, trace, section)


def _line_of(block: bytes, offset: int) -> bytes:
    if offset < 0:
        return b""
    end = block.find(b"\n", offset)
    return block[offset : len(block) if end < 0 else min(end, offset + 2000)]


def _said_by(piece: Piece, trace: traceback.Trace | None) -> str:
    """Return an exception's text; the source line that raised it where it has none."""
    if ":" in piece.text or trace is None or trace.source is None:
        return piece.text
    return f"{piece.text.strip()}: {trace.source.text.strip()}"
