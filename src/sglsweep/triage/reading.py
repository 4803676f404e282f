"""A log read once, in any cuts: what it says so far, without a judgement.

Literals of the catalogue are searched in whole blocks of raw bytes; only lines that hold one
are looked at, and the lines of an open traceback. Whatever depends on a line's neighbours is
kept here from line to line, never read back, so that the cuts of the input cannot matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglsweep.triage import effective, metrics, milestones, resolution_lines, traceback
from sglsweep.triage.events import Events
from sglsweep.triage.prefix import Prefixes
from sglsweep.triage.record import pieces
from sglsweep.triage.signature import matcher
from sglsweep.triage.traces import Traces
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.catalogue import Catalogue
    from sglsweep.triage.events import Event
    from sglsweep.triage.record import Piece

STOP_MARKS = ("SIGTERM received", "Signal SIGTERM received", "Gracefully exiting")
ERRORS = ("Error: ", "Exception: ")
VERSION_MARKS = (
    "sglang version",
    "sglang:v",
    "sglang 0.",
    "sglang==",
    "sglang-0.",
    "SGLang v",
    "server_args=",
)
OTHER_NODE = "Dummy health check server"
NO_WARMUP = re.compile(r"'?skip_server_warmup'?\s*[=:]\s*True")
COMPILING_MARKS = (
    "Running FlashInfer autotune", "Entering DeepGEMM JIT", "Try DeepGEMM JIT Compiling",
    "DeepGEMM warmup", "Loading JIT ops", "flashinfer.jit", "[AutoTuner]", "JIT compil",
    "aiter] build", "start build [", "[aiter] start", "Compiling DeepGEMM", "JIT Pre-Compile",
    "Building extension", "ninja: Entering directory",
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
            *resolution_lines.LINE_MARKS,
            *traceback.MARKS,
            *STOP_MARKS,
            OTHER_NODE,
            *COMPILING_MARKS,
            *COMPILED_MARKS,
            *ERRORS,
            *VERSION_MARKS,
        )
    )
)
SHAPE = 48
"""Bytes at both ends of a line that make it one more of a flood; block numbers stand between."""
FLOODS = 1000
_BAR = re.compile(r"\|?\s(\d+)/(\d+) \[")
_VERSION = re.compile(
    r"(?:[Ss][Gg][Ll]ang(?: [Vv]ersion)?[ :=v-]{1,3}|'version': ')"
    r"(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)"
)


class Reading:
    """What was read so far, fed in any cut; `finished` is a copy that has read the last line."""

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
        self._prefixes = Prefixes()
        self._floods: dict[tuple[bytes, bytes], tuple[str, str]] = {}
        self._traces = Traces()
        self._events = Events(self._matcher)
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
        if copy._rest:  # noqa: SLF001 - a copy of itself
            block = bytes(copy._rest)  # noqa: SLF001 - a copy of itself
            copy._rest.clear()  # noqa: SLF001 - a copy of itself
            copy._read_block(block)  # noqa: SLF001 - a copy of itself
        return copy

    @property
    def pending(self) -> bytes:
        """The beginning of a line that is not ended yet, at most its last 4 KiB."""
        return bytes(self._rest[-4096:])

    def bars(self) -> dict[str, tuple[int, int]]:
        """How far weights and capture are, by the bars; the one being redrawn included."""
        bars = dict(self.progress.bars)
        tail = self.pending.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode("utf-8", "replace")
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
        copy._prefixes = self._prefixes.copy()
        copy._floods = dict(self._floods)
        traces = [*self._traces.known(), *(e.trace for e in self.events if e.trace)]
        twins = {identity: t.copy() for identity, t in {id(t): t for t in traces}.items()}
        copy._traces = self._traces.copy(twins)
        copy._events = self._events.copy(twins)
        copy.ranks = set(self.ranks)
        copy.torch_ranks = set(self.torch_ranks)
        return copy

    @property
    def events(self) -> Sequence[Event]:
        """Lines that may explain an end, in the order of the file."""
        return self._events.found

    @property
    def suspects(self) -> Mapping[str, Event]:
        """Warnings worth knowing, the first of each kind with its count."""
        return self._events.suspects

    @property
    def ignored_imports(self) -> Sequence[Event]:
        """Modules that SGLang left out because their import failed."""
        return self._events.ignored_imports

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
        while self._traces.is_any_open and position < until:
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
        shape = raw[:SHAPE], raw[-SHAPE:]
        if shape in self._floods and not self._traces.is_any_open:
            self._events.count_again(self._floods[shape])
            self._began_compiling = False
            return end + 1
        found = pieces(line, raw, self._prefixes)
        for piece in found:
            self._read_piece(piece)
        folded = self._events.take_folded()
        if folded and len(found) == 1 and not found[0].is_headed and len(self._floods) < FLOODS:
            self._floods[shape] = folded
        return end + 1

    def _serving_until(self, offset: int) -> None:
        """Find the prefills, decodes and answers before `offset` that mean something new."""
        start, progress = self._searched_to, self.progress
        if offset <= start:
            return
        self._searched_to = offset
        self._find_batches(start, offset)
        if progress.ready_line and progress.furthest is Phase.READY and not progress.first_busy:
            ranked = milestones.RANKED.search(self._block, start, offset)
            if ranked is not None:
                progress.first_busy = self._peek_line(ranked.start())
        at = start
        while not progress.has_answer:
            match = milestones.ANSWER.search(self._block, at, offset)
            if match is None:
                break
            progress.see_answer(self._peek_line(match.start()))
            at = match.end()

    def _find_batches(self, start: int, end: int) -> None:
        """Find the first decode, and the first prefill after the warm-up's."""
        progress = self.progress
        if not progress.first_decode:
            at = self._block.find(milestones.DECODE, start, end)
            if at >= 0:
                progress.see_decode(self._peek_line(at))
        at = start
        while not progress.first_decode and not progress.has_prefill and at >= 0:
            at = self._block.find(milestones.PREFILL, at, end)
            if at >= 0:
                progress.see_prefill(self._peek_line(at))
                at += 1

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
        at = milestones.last_health(block)
        if at >= 0:
            progress.last_health = total - block.count(b"\n", at) + 1
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
        self._note_ranks(piece)
        marks, candidates = self._matcher.hits(piece.text)
        if piece.is_headed:
            self._traces.close_before(piece)
        self._read_marks(piece, marks)
        trace = self._trace_of(piece, marks)
        if trace is None or not trace.has_in_its_stack(piece):
            is_exception = (
                trace.has_ended_at(piece)
                if trace
                else not marks.isdisjoint(ERRORS) and traceback.is_exception(piece)
            )
            if candidates or is_exception:
                around = trace or self._traces.trailing_of(piece)
                phase = self._phase(around)
                self._events.judge(piece, candidates, around, phase, is_exception=is_exception)
        self.last_piece = piece

    def _note_ranks(self, piece: Piece) -> None:
        if piece.rank:
            self.ranks.add(piece.rank)
        if piece.torch_rank is not None:
            self.torch_ranks.add(piece.torch_rank)
        if piece.stamp:
            self.stamp = piece.stamp

    def _trace_of(self, piece: Piece, marks: set[str]) -> traceback.Trace | None:
        """Return the traceback this piece belongs to; one that hurts nobody is marked so."""
        previous = self.last_piece
        trace = self._traces.follow(piece, marks, previous)
        if (
            trace is not None
            and trace.head.line == piece.line
            and previous is not None
            and previous.line == piece.line - 1
            and piece.text.startswith(traceback.HEAD)
        ):
            trace.is_ignored = self._events.is_harmless(previous, self.progress.phase)
        return trace

    def _read_marks(self, piece: Piece, marks: set[str]) -> None:
        for mark in marks:
            if mark in milestones.MARKS:
                self.progress.read(mark, piece.text, piece.rank, piece.line)
        if not marks.isdisjoint(metrics.MARKS):
            self.numbers.read(piece.text, piece.rank)
        self._read_arguments(piece, marks)
        if not marks.isdisjoint(STOP_MARKS):
            self.stop_line = self.stop_line or piece.line
        if OTHER_NODE in marks:
            self.progress.is_other_node = True
        is_done = not marks.isdisjoint(COMPILED_MARKS)
        self._began_compiling = not is_done and not marks.isdisjoint(COMPILING_MARKS)

    def _read_arguments(self, piece: Piece, marks: set[str]) -> None:
        """Take what a piece says of flags and of SGLang's version."""
        if "server_args=" in marks:
            self.resolution.read_args(piece.text)
            self.skips_warmup = self.skips_warmup or bool(NO_WARMUP.search(piece.text))
        elif not marks.isdisjoint(effective.MARKS):
            self.resolution.read_command(piece.text)
        if not marks.isdisjoint(resolution_lines.LINE_MARKS):
            self.resolution.read_line(piece.text)
        if self.version is None and not marks.isdisjoint(VERSION_MARKS):
            match = _VERSION.search(piece.text)
            self.version = match[1] if match else None

    def _phase(self, trace: traceback.Trace | None) -> Phase:
        if self.progress.has_milestone or trace is None:
            return self.progress.phase
        return milestones.phase_of_frames(trace.where)


def _line_of(block: bytes, offset: int) -> bytes:
    if offset < 0:
        return b""
    end = block.find(b"\n", offset)
    return block[offset : len(block) if end < 0 else min(end, offset + 2000)]
