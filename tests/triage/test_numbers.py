"""Numbers of every rank, and what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose

if TYPE_CHECKING:
    from sglsweep.attempt import Diagnosis


def answer(*lines: str) -> Diagnosis:
    return diagnose("\n".join(lines).encode(), catalogue.load())


def rank_lines(rank: int, *, seconds: float = 20.0, left: float = 6.6) -> list[str]:
    head = f"[2026-02-10 10:00:00 TP{rank}]"
    return [
        f"{head} Load weight begin. avail mem=94.08 GB",
        f"{head} Load weight end. elapsed={seconds} s, type=GlmMoeDsaForCausalLM, "
        "dtype=torch.bfloat16, avail mem=40.10 GB, mem usage=53.98 GB.",
        f"{head} KV Cache is allocated. #tokens: 409600, KV size: 21.50 GB",
        f"{head} Memory pool end. avail mem=12.25 GB",
        f"{head} Capture cuda graph begin. This can take several minutes. avail mem=12.17 GB",
        f"{head} Capture cuda graph end. Time elapsed: 7.71 s. mem usage=1.62 GB. "
        f"avail mem={left} GB.",
        f"{head} Capture draft cuda graph begin. avail mem={left} GB",
        f"{head} Capture draft cuda graph end. Time elapsed: 2.00 s. mem usage=0.38 GB. "
        f"avail mem={left} GB.",
    ]


def test_numbers_are_told_for_every_rank_and_the_worst() -> None:
    said = answer(*rank_lines(0, seconds=20.0), *rank_lines(1, seconds=24.5, left=6.1)).metrics
    assert said["TP0/weights_s"] == 20.0
    assert said["weights_s"] == 24.5
    assert said["weights_gb"] == 53.98
    assert said["kv_tokens"] == 409600
    assert said["kv_gb"] == 21.5
    assert said["graph_decode_s"] == 7.71
    assert said["graph_draft_s"] == 2.0
    assert said["graph_gb"] == 2.0
    assert said["avail_after_graphs_gb"] == 6.1
    assert said["model_class"] == "GlmMoeDsaForCausalLM"


def test_straggler_is_named_with_the_threshold() -> None:
    lines = [line for r in range(4) for line in rank_lines(r, seconds=90.0 if r == 2 else 20.0)]
    (suspect,) = [s for s in answer(*lines).suspects if s.id == "straggler"]
    assert suspect.text.startswith("TP2 took 90.0 s for loading weights, the median is 20.0 s")
    assert "2x" in suspect.text


def test_uneven_memory_is_named() -> None:
    lines = [line for r in range(2) for line in rank_lines(r, left=9.0 if r else 6.6)]
    (suspect,) = [s for s in answer(*lines).suspects if s.id == "memory-imbalance"]
    assert "TP0 had 6.60 GB" in suspect.text


def test_even_ranks_are_no_news() -> None:
    lines = [line for r in range(8) for line in rank_lines(r, seconds=20.0 + r)]
    assert not {s.id for s in answer(*lines).suspects} & {"straggler", "memory-imbalance"}


def test_pool_smaller_than_one_request_is_told() -> None:
    said = answer(
        "[2026-02-10 10:00:00] max_total_num_tokens=4578, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, "
        "available_gpu_mem=19.71 GB"
    )
    assert said.metrics["available_gpu_mem_gb"] == 19.71
    assert [s.id for s in said.suspects] == ["pool-below-context"]


def test_throughput_is_the_last_one() -> None:
    decode = (
        "[2026-02-10 10:02:0{n} TP0] Decode batch, #running-req: {n}, #token: 69, token usage: "
        "0.02, cuda graph: True, gen throughput (token/s): 4{n}.5, #queue-req: 0,"
    )
    said = answer(*(decode.format(n=n) for n in range(3))).metrics
    assert (said["decode_running"], said["decode_tok_s"]) == (2, 42.5)


def test_startup_timings_of_the_engine_are_numbers() -> None:
    said = answer(
        "[2026-11-29 10:00:00] Engine startup timings (s): load_weight=1.25, "
        "kv_cache_allocation=0.10, scheduler_e2e=9.00, cuda_graph={}, tokenizer_e2e=2.00"
    ).metrics
    assert said["startup_load_weight_s"] == 1.25
