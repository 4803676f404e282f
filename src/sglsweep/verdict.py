"""The closed list of verdicts, phases and milestones."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What one attempt came to, in one word."""

    SERVING = "serving"
    GRAPH_CAPTURE_OK = "graph-capture-ok"
    INCOMPLETE = "incomplete"
    OOM = "oom"
    NAN_IN_PROBS = "nan-in-probs"
    DEVICE_ASSERT = "device-assert"
    CUDA_FAULT = "cuda-fault"
    KERNEL_UNSUPPORTED = "kernel-unsupported"
    BAD_CONFIG = "bad-config"
    LOAD_ERROR = "load-error"
    ENV_ERROR = "env-error"
    COLLECTIVE_ERROR = "collective-error"
    HANG = "hang"
    KILLED = "killed"
    GARBAGE_OUTPUT = "garbage-output"
    CRASH = "crash"
    HOST_LOST = "host-lost"
    INTERRUPTED = "interrupted"

    @property
    def is_evidence(self) -> bool:
        """False where the verdict says nothing about the cell that was launched."""
        return self not in {Verdict.HOST_LOST, Verdict.INTERRUPTED}


class Phase(StrEnum):
    """The furthest milestone of a launch, in the order a launch goes through them."""

    START = "start"
    ARGS = "args"
    DIST_INIT = "dist-init"
    WEIGHTS = "weights"
    WEIGHTS_DONE = "weights-done"
    KV_CACHE = "kv-cache"
    GRAPH_CAPTURE = "graph-capture"
    GRAPH_CAPTURE_DONE = "graph-capture-done"
    WARMUP = "warmup"
    READY = "ready"
    DECODE = "decode"

    @property
    def order(self) -> int:
        """Position in a launch: 0 for start, 10 for decode."""
        return list(Phase).index(self)


class Milestone(StrEnum):
    """What a diagnosis says about each big step of a launch."""

    WEIGHTS = "weights"
    KV_CACHE = "kv-cache"
    GRAPH_CAPTURE = "graph-capture"
    WARMUP = "warmup"
    READY = "ready"
    DECODE = "decode"


class MilestoneState(StrEnum):
    """How far one milestone got."""

    OK = "ok"
    FAILED = "failed"
    NOT_REACHED = "not-reached"
