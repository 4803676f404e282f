"""How far a launch got: milestones, open captures, handled requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sglsweep.verdict import Milestone, MilestoneState, Phase

MARKS: dict[str, Phase] = {
    "server_args=": Phase.ARGS,
    "Init torch distributed begin": Phase.DIST_INIT,
    "Init torch distributed ends": Phase.DIST_INIT,
    "Init parallel begin": Phase.DIST_INIT,
    "Init nccl begin": Phase.DIST_INIT,
    "Init distributed": Phase.DIST_INIT,
    "Initializing distributed environment": Phase.DIST_INIT,
    "sglang is using nccl==": Phase.DIST_INIT,
    "oad weight begin": Phase.WEIGHTS,
    "checkpoint shards:": Phase.WEIGHTS,
    "loading shards:": Phase.WEIGHTS,
    "Loading safetensors using": Phase.WEIGHTS,
    "Loading pipeline modules": Phase.WEIGHTS,
    "Loading required modules": Phase.WEIGHTS,
    ". avail mem: ": Phase.WEIGHTS,
    "oad weight end": Phase.WEIGHTS_DONE,
    "KV Cache is allocated": Phase.KV_CACHE,
    "KV Cache VA upper bound": Phase.KV_CACHE,
    "Memory pool end": Phase.KV_CACHE,
    "emory pool end": Phase.KV_CACHE,
    "graph begin": Phase.GRAPH_CAPTURE,
    "draft extend begin": Phase.GRAPH_CAPTURE,
    "Capturing batches (": Phase.GRAPH_CAPTURE,
    "Capturing num tokens (": Phase.GRAPH_CAPTURE,
    "Capturing prefill shape (": Phase.GRAPH_CAPTURE,
    "Capture cuda graph bs": Phase.GRAPH_CAPTURE,
    "Capture cuda graph num tokens": Phase.GRAPH_CAPTURE,
    "graph end.": Phase.GRAPH_CAPTURE_DONE,
    "draft extend end": Phase.GRAPH_CAPTURE_DONE,
    "max_total_num_tokens=": Phase.KV_CACHE,
    "Application startup complete": Phase.WARMUP,
    "Uvicorn running on": Phase.WARMUP,
    "/model_info HTTP": Phase.WARMUP,
    "/get_model_info HTTP": Phase.WARMUP,
    "Start of pd disaggregation warmup": Phase.WARMUP,
    "Start of prefill warmup": Phase.WARMUP,
    "fired up and ready to roll": Phase.READY,
}
"""Text that proves a phase was reached. Every one becomes a literal of the automaton."""

PREFILL, DECODE = b"Prefill batch", b"Decode batch"
ANSWER = re.compile(
    rb'"POST /(?:generate|v1/(?:chat/)?completions|v1/responses|v1/messages|api/(?:chat|generate))'
    rb'[^\s"]* HTTP/[\d.]+\\?" 200'
)


RANKED = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,12} (?:[TDP]P)\d")
_HEALTHY = re.compile(rb'"GET /health(?:_generate)? HTTP/[\d.]+\\?" 200')


def last_health(block: bytes) -> int:
    """Return the offset of the block's last health check that was answered, -1 without one."""
    at = block.rfind(b'"GET /health')
    while at >= 0 and not _HEALTHY.match(block, at):
        at = block.rfind(b'"GET /health', 0, at)
    return at


def last_answer(block: bytes) -> int:
    """Return the offset of the block's last 200 answer to a request for tokens, -1 without one."""
    at = block.rfind(b'" 200')
    while at >= 0:
        start = block.rfind(b"\n", 0, at) + 1
        if ANSWER.search(block, start, at + 5):
            return at
        at = block.rfind(b'" 200', 0, start)
    return -1


_BEGIN = re.compile(r"Capture (?P<kind>[\w -]{1,60}?)(?: \(step \d+\))? begin\b", re.IGNORECASE)
_END = re.compile(r"Capture (?P<kind>[\w -]{1,60}?) end\.", re.IGNORECASE)
_BAR_DONE = re.compile(r"(\d+)/(\d+) \[[^\]]*\]?\s*$")
_FRAME_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (
        Phase.DECODE,
        re.compile(
            r":(?:event_loop_\w+|run_event_loop|run_batch|process_batch_result\w*|process_input_requests"
            r"|forward_batch_generation|_async_crash_handler|generate_request)$",
            re.MULTILINE,
        ),
    ),
    (
        Phase.GRAPH_CAPTURE,
        re.compile(
            r"cuda_graph_runner\.py|cuda_graph_setup\.py|:(?:init_cuda_graphs|init_device_graphs|capture_one_batch_size|"
            r"kernel_warmup|capture)$",
            re.MULTILINE,
        ),
    ),
    (
        Phase.DECODE,
        re.compile(
            r":(?:_?forward_(?:extend|decode|prefill|idle|batch)\w*|draft|draft_extend\w*|verify"
            r"|get_image_feature|_get_chunked_prefill_embedding)$",
            re.MULTILINE,
        ),
    ),
    (
        Phase.WEIGHTS_DONE,
        re.compile(
            r":(?:init_memory_pool|_profile_available_bytes|profile_max_num_token|profile_available_bytes|alloc_memory_pool|_create_buffers|"
            r"configure_kv_cache|init_kv_cache)$|kv_cache_configurator\.py|memory_pool\.py",
            re.MULTILINE,
        ),
    ),
    (
        Phase.WEIGHTS,
        re.compile(
            r":(?:load_model|load_weights|_initialize_model|load_weights_and_postprocess|process_weights_after_loading)$"
            r"|model_loader/|sglang/srt/models/\w+\.py:__init__$",
            re.MULTILINE,
        ),
    ),
    (
        Phase.DIST_INIT,
        re.compile(
            r":(?:init_torch_distributed|init_distributed_environment|initialize_model_parallel|init_process_group)$"
            r"|distributed/bootstrap\.py|distributed/parallel_state\.py:__init__$",
            re.MULTILINE,
        ),
    ),
    (Phase.WARMUP, re.compile(r":_?(?:execute_server_warmup|wait_and_warmup)$", re.MULTILINE)),
    (
        Phase.ARGS,
        re.compile(r":(?:get_tokenizer|get_processor|_wait_for_scheduler_ready|run_scheduler_process|run_detokenizer_process|_launch_subprocesses|_init_tokenizer_manager"
                   r"|init_tokenizer_manager|launch_subprocesses)$", re.MULTILINE),
    ),
)  # fmt: skip


def phase_of_frames(frames: str) -> Phase:
    """Say where a traceback was raised, for a log that holds no milestone."""
    for phase, pattern in _FRAME_PHASES:
        if pattern.search(frames):
            return phase
    return Phase.START


@dataclass(slots=True)
class Progress:
    """Milestones seen so far; grows as the log does.

    Attributes:
        first: phase -> line where it was first reached.
        begun, ended: capture kind -> rank -> how often.
        ready_line, listening_line: 0 where not seen.
        has_prefill, has_answer: a request after the warm-up's was taken, was answered with 200.
        last_request: line of the last handled request (a 200, a prefill, a decode).
        first_busy: line after ready in which a rank first said something: an idle one is silent.
        last_health: line of the last health check that was answered with 200.
        bars: {"weights": (done, total), "capture": (done, total)}.
    """

    furthest: Phase = Phase.START
    first: dict[Phase, int] = field(default_factory=dict)
    begun: dict[str, dict[str, int]] = field(default_factory=dict)
    ended: dict[str, dict[str, int]] = field(default_factory=dict)
    has_milestone: bool = False
    ready_line: int = 0
    listening_line: int = 0
    first_prefill: int = 0
    first_decode: int = 0
    last_decode: int = 0
    last_request: int = 0
    has_prefill: bool = False
    has_answer: bool = False
    last_advance: int = 0
    last_health: int = 0
    first_busy: int = 0
    is_other_node: bool = False
    bars: dict[str, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> Progress:
        """Return a copy that can go on by itself."""
        return Progress(
            self.furthest,
            dict(self.first),
            {kind: dict(ranks) for kind, ranks in self.begun.items()},
            {kind: dict(ranks) for kind, ranks in self.ended.items()},
            self.has_milestone,
            self.ready_line,
            self.listening_line,
            self.first_prefill,
            self.first_decode,
            self.last_decode,
            self.last_request,
            self.has_prefill,
            self.has_answer,
            self.last_advance,
            self.last_health,
            self.first_busy,
            self.is_other_node,
            dict(self.bars),
        )

    @property
    def is_capturing(self) -> bool:
        """A capture was begun by some rank and ended by none since."""
        return any(
            max(ranks.values()) > max(self.ended.get(kind, {}).values(), default=0)
            for kind, ranks in self.begun.items()
        )

    @property
    def phase(self) -> Phase:
        """Furthest milestone of any rank; graph-capture while a capture is open."""
        if self.is_capturing and self.furthest.order <= Phase.GRAPH_CAPTURE_DONE.order:
            return Phase.GRAPH_CAPTURE
        return self.furthest

    @property
    def captured(self) -> bool:
        """Some capture ended and none is open."""
        return Phase.GRAPH_CAPTURE_DONE in self.first and not self.is_capturing

    def reach(self, phase: Phase, line: int) -> None:
        """Note that `phase` was reached at `line`."""
        self.has_milestone = True
        self.first.setdefault(phase, line)
        if phase.order > self.furthest.order:
            self.furthest = phase
            self.last_advance = line

    def read(self, mark: str, text: str, rank: str | None, line: int) -> None:
        """Take a line that holds `mark`."""
        phase = MARKS[mark]
        if phase is Phase.GRAPH_CAPTURE:
            self._begin(mark, text, rank or "", line)
        elif phase is Phase.GRAPH_CAPTURE_DONE:
            self._end(text, rank or "", line)
        elif mark == "max_total_num_tokens=":
            self._pool_is_sized(line)
        elif phase is Phase.READY:
            self.ready_line = self.ready_line or line
            self._close_captures()
            self.reach(phase, line)
        else:
            if phase is Phase.WEIGHTS:
                self._bar("weights", text)
            if phase is Phase.WARMUP:
                self.listening_line = self.listening_line or line
                self._close_captures()
            self.reach(phase, line)

    def see_prefill(self, line: int) -> None:
        """Take a prefill line."""
        self.first_prefill = self.first_prefill or line
        if not self._is_past_warmup:
            self.reach(Phase.WARMUP, line)
            return
        self.has_prefill = True
        self.last_request = max(self.last_request, line)
        self.reach(Phase.DECODE, line)

    def see_decode(self, line: int) -> None:
        """Take a decode line: 40 steps, which no warm-up makes."""
        self.first_decode = self.first_decode or line
        self.last_decode = max(self.last_decode, line)
        self.last_request = max(self.last_request, line)
        self.reach(Phase.DECODE, line)

    def see_answer(self, line: int) -> None:
        """Take a 200 answer to a request for tokens."""
        if not self._is_past_warmup:
            self.reach(Phase.WARMUP, line)
            return
        self.has_answer = True
        self.last_request = max(self.last_request, line)
        self.reach(Phase.DECODE, line)

    @property
    def _is_past_warmup(self) -> bool:
        """The ready line stands above, or the log begins in the middle of serving."""
        return bool(self.ready_line) or self.furthest in {Phase.START, Phase.DECODE}

    def _begin(self, mark: str, text: str, rank: str, line: int) -> None:
        if mark.startswith("Capturing"):
            self._capture_bar(mark, text, rank, line)
        elif mark == "Capture cuda graph num tokens":
            self.begun.setdefault("capturing num tokens", {rank: 1})
        elif match := _BEGIN.search(text):
            kind = match["kind"].lower()
            ranks = self.begun.setdefault(kind, {})
            ranks[rank] = ranks.get(rank, 0) + 1
        self.reach(Phase.GRAPH_CAPTURE, line)

    def _capture_bar(self, mark: str, text: str, rank: str, line: int) -> None:
        """A bar opens a capture of its own where no begin line announced one."""
        self._bar("capture", text)
        kind = mark.rstrip(" (").lower()
        if self.is_capturing and kind not in self.begun:
            return
        done, total = self.bars.get("capture", (0, 0))
        if total and done >= total and kind in self.begun:
            self.ended.setdefault(kind, {})[rank] = self.begun[kind].get(rank, 1)
            self.reach(Phase.GRAPH_CAPTURE_DONE, line)
        elif kind not in self.begun and (self.captured or not self.begun):
            self.begun[kind] = {rank: 1}

    def _end(self, text: str, rank: str, line: int) -> None:
        match = _END.search(text)
        if not match:
            return
        kind = match["kind"].lower()
        ranks = self.ended.setdefault(kind, {})
        ranks[rank] = ranks.get(rank, 0) + 1
        for bar in [k for k in self.begun if k.startswith("capturing")]:
            self.ended[bar] = dict(self.begun[bar])
        self.reach(Phase.GRAPH_CAPTURE_DONE, line)

    def _pool_is_sized(self, line: int) -> None:
        """Close captures: this is the scheduler's last line; 0.3.6 ends them silently."""
        if self.is_capturing:
            self._close_captures()
            self.reach(Phase.GRAPH_CAPTURE_DONE, line)
        self.reach(Phase.KV_CACHE, line)

    def _close_captures(self) -> None:
        if self.is_capturing:
            self.first.setdefault(Phase.GRAPH_CAPTURE_DONE, self.first[Phase.GRAPH_CAPTURE])
        self.ended = {kind: dict(ranks) for kind, ranks in self.begun.items()}

    def _bar(self, name: str, text: str) -> None:
        if match := _BAR_DONE.search(text):
            self.bars[name] = (int(match[1]), int(match[2]))


def milestones(
    progress: Progress, *, has_failed: bool, phase: Phase
) -> dict[Milestone, MilestoneState]:
    """Say of each big step whether it was done, failed, or never reached."""
    done = {
        Milestone.WEIGHTS: _is_past(phase, Phase.WEIGHTS_DONE),
        Milestone.KV_CACHE: _is_past(phase, Phase.KV_CACHE),
        Milestone.GRAPH_CAPTURE: Phase.GRAPH_CAPTURE_DONE in progress.first
        and phase is not Phase.GRAPH_CAPTURE,
        Milestone.WARMUP: _is_past(phase, Phase.READY),
        Milestone.READY: bool(progress.ready_line) or phase is Phase.DECODE,
        Milestone.DECODE: phase is Phase.DECODE and not has_failed,
    }
    failing = {
        Phase.WEIGHTS: Milestone.WEIGHTS,
        Phase.WEIGHTS_DONE: Milestone.KV_CACHE,
        Phase.GRAPH_CAPTURE: Milestone.GRAPH_CAPTURE,
        Phase.GRAPH_CAPTURE_DONE: Milestone.WARMUP,
        Phase.WARMUP: Milestone.WARMUP,
        Phase.READY: Milestone.DECODE,
        Phase.DECODE: Milestone.DECODE,
    }.get(phase)
    states = {
        step: MilestoneState.OK if ok else MilestoneState.NOT_REACHED for step, ok in done.items()
    }
    if has_failed and failing is not None:
        states[failing] = MilestoneState.FAILED
    return states


def _is_past(phase: Phase, mark: Phase) -> bool:
    return phase.order >= mark.order
