"""One scheduler process: its start-up, milestone by milestone, and the ways it dies."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from typing import TYPE_CHECKING, Never

from sglsweep.rehearsal.failures import aborted_text, fatal_text, headline_of, traceback_text
from sglsweep.rehearsal.voice import STDOUT, bar, shard_bar
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.voice import Log

_ORPHAN_LIVES_S = 600
_TORCH_DTYPES = {"fp8_e4m3": "torch.float8_e4m3fn", "fp8_e5m2": "torch.float8_e5m2"}
_MANY_GPUS = 2
_NOT_OF_A_RANK = frozenset({"stranger", "garbage"})


class Rank:
    """A scheduler: rank 0 of its group draws the bars and speaks for the group."""

    def __init__(self, index: int, plan: Plan, log: Log, parent_pid: int) -> None:
        self.index = index
        self.plan = plan
        self.log = log
        self.clock = log.clock
        self.capture_s = 0.0
        self._parent_pid = parent_pid
        self._random = random.Random(index * 7919 + 5)  # noqa: S311 - small differences of ranks

    def start_up(self) -> None:
        """Go through a launch; does not return where the launch ends on the way."""
        self._pause(0.0, 0.6)
        self._distribute()
        self._load()
        self._allocate()
        if self.plan.sizes:
            self._capture()
        self._announce()

    def die(self, phase: Phase) -> Never:
        """End this process the way its failure asks."""
        failure = self.plan.failure
        assert failure is not None  # noqa: S101 - nothing else leads here
        if failure.kind == "hang":
            if failure.watchdog:
                self._watch_dog()
            self.hang()
        if failure.kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        for line in failure.before:
            self.log.raw(line + "\n")
        if failure.kind == "native":
            self.log.raw(fatal_text(failure.headline))
            _crash(signal.SIGSEGV)
        headline = headline_of(failure, self.log.lines, self.plan, self.index)
        text = traceback_text(self.log.lines, failure, phase, headline)
        self.log.record(f"Scheduler hit an exception: {text}")
        self._tell_parent()
        if failure.aborts and self.index % 2 == 0:
            self.log.raw(aborted_text(failure))
            _crash(signal.SIGABRT)
        self.clock.sleep(30)
        os._exit(1)

    def hang(self) -> Never:
        """Do nothing more, burning a core if the plan's mischief is a busy hang."""
        is_busy = "busy-hang" in self.plan.mischief and self.index == 0
        end = time.monotonic() + _ORPHAN_LIVES_S
        while time.monotonic() < end:
            if not is_busy:
                time.sleep(1.0)
            if os.getppid() != self._parent_pid:
                break
        os._exit(1)

    def _tell_parent(self) -> None:
        """Send SIGQUIT, SGLang's word for "a child failed", unless the parent is gone."""
        if os.getppid() == self._parent_pid:
            os.kill(self._parent_pid, signal.SIGQUIT)

    def _watch_dog(self) -> None:
        """Let SGLang's watchdog bark: it only covers batches in flight, and then ends the tree."""
        timeout_s = float(str(self.plan.args["watchdog_timeout"]))
        self.clock.sleep(timeout_s)
        self.log.say("watchdog-debug")
        self.log.say("watchdog", timeout=timeout_s)
        self.clock.sleep(5)
        self._tell_parent()

    def _end_if(self, phase: Phase) -> None:
        failure = self.plan.failure
        if failure is None or failure.kind in _NOT_OF_A_RANK or not self.plan.strikes(phase):
            return
        if not self._is_victim():
            self.hang()  # in a collective with a rank that will never come
        self._pause(0.0, 0.05 * self.index)
        self.die(phase)

    def _is_victim(self) -> bool:
        """True unless this rank outlives the failure: only one is killed or segfaults."""
        failure = self.plan.failure
        if failure is not None and failure.kind in {"killed", "native"}:
            return self.index == min(3, self.plan.ranks - 1)
        return True

    def _pause(self, story_s: float, jitter_s: float = 0.05) -> None:
        self.clock.sleep(story_s + self._random.random() * jitter_s)

    def _distribute(self) -> None:
        log, plan = self.log, self.plan
        log.say("ue8m0")
        log.say("dist-begin")
        self._pause(2.6, 0.3)
        if plan.ranks > 1:
            log.raw(log.lines["gloo"].format(rank=self.index, peers=plan.ranks - 1), STDOUT)
        if self.index == 0:
            log.say("nccl")
        if plan.ranks > _MANY_GPUS and not plan.args.get("disable_custom_all_reduce"):
            log.say("custom-ar")
        self._end_if(Phase.DIST_INIT)
        log.say("dist-end", elapsed=2.6 + self._random.random() * 0.3, used=0.28)
        log.say("baseline", used=0.28)

    def _load(self) -> None:
        log, stage, memory = self.log, self.plan.stage, self.plan.memory
        log.say("load-begin", avail=memory.start)
        seconds = stage.load_s * (0.97 + 0.03 * self._random.random())
        dies = self.plan.strikes(Phase.WEIGHTS)
        self._load_shards(seconds, upto=0.4 if dies else 1.0)
        self._end_if(Phase.WEIGHTS)
        log.say("load-took", elapsed=seconds)
        log.say(
            "load-end",
            elapsed=seconds + 1.2,
            architecture=stage.architecture,
            avail=memory.loaded,
            used=memory.weights,
        )
        self._end_if(Phase.WEIGHTS_DONE)

    def _load_shards(self, seconds: float, upto: float) -> None:
        if self.index != 0:
            self._pause(seconds * upto)
            return
        total = self.plan.stage.shards
        title = self.log.lines["load-shards"]
        end = "\n" if self.log.lines["load-bar-ends-line"] else ""
        for done in range(int(total * upto) + 1):
            if done:
                self._pause(seconds / total, 0.0)
            self.log.raw(f"\r{shard_bar(title, done, total, seconds * done / total)}{end}")
        if upto == 1.0:
            self.log.raw("\n")

    def _allocate(self) -> None:
        log, plan, memory = self.log, self.plan, self.plan.memory
        dtype = _TORCH_DTYPES.get(str(plan.args["kv_cache_dtype"]), "torch.bfloat16")
        if self.index == 0:
            log.say("kv-using", torch_dtype=dtype)
        self._pause(0.4)
        log.say("kv-alloc", torch_dtype=dtype, tokens=memory.tokens, size=memory.kv)
        log.say("pool-end", avail=memory.pooled)
        self._end_if(Phase.KV_CACHE)
        log.say("attention-begin")
        log.say("attention-end", elapsed=0.01)
        log.say("prefill-graph-off")

    def _capture(self) -> None:
        log, memory, sizes = self.log, self.plan.memory, list(self.plan.sizes)
        self.capture_s = self.plan.stage.capture_s + self._random.random() * 0.07
        if self.index == 0:
            log.say("graph-sizes", sizes=sizes)
        log.say("graph-begin", avail=memory.before_capture, sizes=sizes)
        dies = self.plan.strikes(Phase.GRAPH_CAPTURE)
        self._capture_sizes(sizes[::-1], upto=self._captured(len(sizes)) if dies else len(sizes))
        self._end_if(Phase.GRAPH_CAPTURE)
        used = memory.before_capture - memory.left
        log.say("graph-end", elapsed=self.capture_s, used=used, avail=memory.left)
        self._end_if(Phase.GRAPH_CAPTURE_DONE)

    def _captured(self, sizes: int) -> int:
        """Return how many sizes are captured before the end: none unless memory runs out."""
        failure = self.plan.failure
        runs_out = failure is not None and "oom-graph-capture" in failure.cause
        return max(1, sizes * 2 // 3) if runs_out else 0

    def _capture_sizes(self, sizes: list[int], upto: int) -> None:
        if self.index != 0:
            self._pause(self.capture_s * max(1, upto) / len(sizes))
            return
        memory, total = self.plan.memory, len(sizes)
        self.log.raw(f"\r  0%|          | 0/{total} [00:00<?, ?it/s]")
        for done, size in enumerate(sizes[: upto + 1]):
            avail = memory.before_capture - (memory.before_capture - memory.left) * done / total
            title = self.log.lines["graph-bar"].format(size=size, avail=avail)
            elapsed = self.capture_s * done / total
            self.log.raw(f"\r{bar(title, done, total, elapsed)}")
            self._pause(self.capture_s / total, 0.0)
            if done < upto:
                self.log.raw(f"\r{bar(title, done + 1, total, elapsed + self.capture_s / total)}")
        if upto == total:
            self.log.raw("\n")

    def _announce(self) -> None:
        plan, memory = self.plan, self.plan.memory
        if self.index == 0:
            self.log.say(
                "max-tokens",
                tokens=memory.tokens,
                chunk=plan.args["chunked_prefill_size"],
                running=memory.running,
                context=plan.args.get("context_length") or plan.stage.context,
                avail=memory.left,
            )
            self.log.say("tree-cache")
        if not plan.sizes:
            self._end_if(Phase.GRAPH_CAPTURE)
            self._end_if(Phase.GRAPH_CAPTURE_DONE)


def rank_prefix(index: int, plan: Plan) -> str:
    """Return what stands before a rank's messages: each part only if its size is above 1."""
    tp, dp, ep = plan.int_arg("tp_size"), plan.int_arg("dp_size"), plan.int_arg("ep_size")
    stage, position = divmod(index, tp)
    parts = []
    if dp > 1:
        parts.append(f"DP{position * dp // tp}")
    if plan.int_arg("pp_size") > 1:
        parts.append(f"PP{stage}")
    if max(tp, plan.ranks) > 1:
        parts.append(f"TP{position if tp > 1 else index}")
    if ep > 1:
        parts.append(f"EP{position * ep // tp}")
    return "".join(f" {part}" for part in parts)


def rank_title(prefix: str) -> str:
    """Return a scheduler's process title: sglang::scheduler_TP3, or without a suffix if alone."""
    return "_".join(["sglang::scheduler", *prefix.split()])


def _crash(number: signal.Signals) -> Never:
    """End by a signal, as native code does, without leaving a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(1)
