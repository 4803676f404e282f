"""Memory of a card through a launch: SGLang's arithmetic, bent where the outcome asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.rehearsal.settings import Stage

_GIB = 2**30
_PAGE = 64
_LEAST_KV_GB = 1.0
_LEAST_LEFT_GB = 0.4
_REFERENCE_SIZES = 12  # batch sizes up to 64, what the stage's graph_gb is for
_FEW_EXTRA_SLOTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """GiB free at each milestone, and what went where.

    Attributes:
        start: free before the weights. weights: taken by them. loaded: free after them.
        kv: KV cache. tokens: how many it holds. pooled: free after the memory pool.
        workspace: taken between pool and capture. graphs: needed by all CUDA graphs.
        running: most requests at once.
    """

    start: float
    weights: float
    kv: float
    tokens: int
    request_pool: float
    workspace: float
    graphs: float
    running: int

    @property
    def loaded(self) -> float:
        """GiB free once the weights are there."""
        return self.start - self.weights

    @property
    def pooled(self) -> float:
        """GiB free after the memory pool."""
        return self.loaded - self.kv - self.request_pool

    @property
    def before_capture(self) -> float:
        """GiB free when graph capture begins."""
        return self.pooled - self.workspace

    @property
    def left(self) -> float:
        """GiB free when the server is up."""
        return max(0.01, self.before_capture - self.graphs)


def plan_memory(
    stage: Stage, args: Mapping[str, object], cause: str, sizes: Sequence[int]
) -> Memory:
    """Work out a card's memory for the effective flags, consistent with what the world decides.

    `cause` is of the failure that awaits the launch, "" for none; `sizes` are the batch sizes of
    the graphs, empty where none are captured.
    """
    fraction = float(str(args["mem_fraction_static"]))
    weights = _weights(stage, fraction, cause)
    kv = stage.available_gb - weights - stage.available_gb * (1 - fraction)
    tokens = _tokens(kv, _bytes_per_token(stage, args), args.get("max_total_tokens"))
    context = int(str(args.get("context_length") or stage.context))
    running = int(str(args.get("max_running_requests") or _auto_running(tokens, context)))
    memory = Memory(
        start=stage.available_gb,
        weights=weights,
        kv=max(0.0, tokens * _bytes_per_token(stage, args) / _GIB),
        tokens=tokens,
        request_pool=running * (context + _FEW_EXTRA_SLOTS) * 4 / _GIB,
        workspace=stage.workspace_gb,
        graphs=stage.graph_gb * len(sizes) / _REFERENCE_SIZES,
        running=running,
    )
    return _bent(memory, cause)


def _weights(stage: Stage, fraction: float, cause: str) -> float:
    """Return the weights' size, moved where the outcome would contradict the arithmetic."""
    room = stage.available_gb * fraction
    if cause == "oom-kv-pool":
        return max(stage.weights_gb, room + 0.4)
    if cause == "oom-weights":
        return stage.available_gb + 4.0
    return min(stage.weights_gb, max(0.2, room - _LEAST_KV_GB))


def _bent(memory: Memory, cause: str) -> Memory:
    if cause == "oom-graph-capture":
        needs = max(memory.graphs, memory.before_capture - 0.02, 0.3)
        return replace(memory, graphs=needs)
    if memory.pooled < memory.workspace + _LEAST_LEFT_GB:
        memory = replace(memory, workspace=memory.pooled / 2)
    return replace(memory, graphs=min(memory.graphs, memory.before_capture * 0.9))


def _bytes_per_token(stage: Stage, args: Mapping[str, object]) -> int:
    dtype = str(args.get("kv_cache_dtype"))
    backends = {
        str(args.get(f"{kind}_{use}_backend"))
        for kind in ("nsa", "dsa")
        for use in ("prefill", "decode")
    }
    if dtype.startswith("fp8"):
        return stage.kv_bytes["flat" if "trtllm" in backends else "fp8_e4m3"]
    return stage.kv_bytes["bf16"]


def _tokens(kv_gb: float, token_bytes: int, limit: object) -> int:
    tokens = max(0, int(kv_gb * _GIB / token_bytes))
    if limit is not None:
        tokens = min(tokens, int(str(limit)))
    return tokens // _PAGE * _PAGE


def _auto_running(tokens: int, context: int) -> int:
    return min(max(int(tokens / context * 512), 2048), 4096)
