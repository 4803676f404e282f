"""The memory arithmetic against what real launches printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plan.test_memory import outcome
from sglsweep import catalogue
from sglsweep.plan.memory import Side, memory_of, next_fraction, side_of, smallest_said
from sglsweep.triage.diagnose import diagnose
from sglsweep.verdict import Verdict
from triage.cases import read_case

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome

LOGS = Path(__file__).parents[1] / "triage" / "logs"


def launched(log: str) -> Outcome:
    """Return what a log says, as an attempt that passed no fraction of its own."""
    case = read_case(LOGS / log)
    diagnosis = diagnose(case.log, catalogue.load())
    return replace(outcome(None, Verdict.OOM, ""), diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("log", "within_gb"),
    [
        ("serving/gpu-a1-dense-ok.log", 0.01),
        ("killed-sigkill/gpu-j1-kill9-scheduler.log", 0.01),
        ("no-kernel-image/rtx5060-rmsnorm-no-kernel-image.log", 0.05),
        ("serving/glm5-nvfp4-sm120-dense-mla-serving.log", 0.1),
    ],
)
def test_the_pool_follows_from_what_was_free_around_the_weights(
    log: str, within_gb: float
) -> None:
    memory = memory_of(launched(log))
    assert memory is not None
    assert memory.pool_gb is not None
    assert memory.pool_gb_at(memory.fraction) == pytest.approx(memory.pool_gb, abs=within_gb)
    assert memory.tokens_at(memory.fraction) == pytest.approx(memory.pool_tokens, rel=0.01)


@pytest.mark.parametrize(
    "log", ["oom-kv-pool/gpu-c1-memfrac-0.05.log", "oom-kv-pool/gpu-d2-holder-leaves-17.log"]
)
def test_the_smallest_fraction_is_the_one_that_sglang_prints(log: str) -> None:
    seen = launched(log)
    memory = memory_of(seen)
    assert memory is not None
    assert memory.smallest == pytest.approx(smallest_said(seen), abs=0.001)
    assert side_of(seen) is Side.TOO_LOW


@pytest.mark.parametrize(
    "log",
    [
        "serving/gpu-g1-flashmla-sparse-bf16.log",
        "nan-probability-tensor/gpu-e1-nan-graph.log",
        "port-in-use/gpu-i1-port-in-use.log",
        "serving/cpu-llama-with-vllm-stub.log",
    ],
)
def test_a_pool_that_max_total_tokens_sizes_does_not_grow_with_the_fraction(log: str) -> None:
    memory = memory_of(launched(log))
    assert memory is not None
    assert memory.is_capped
    assert memory.largest() is None
    assert memory.tokens_at(0.9) == memory.pool_tokens
    assert memory.left_gb_at(0.9) == memory.after_graphs_gb


def test_a_pool_that_torch_could_not_allocate_was_too_large() -> None:
    seen = launched("oom-kv-pool/gpu-b1-memfrac-0.999.log")
    assert side_of(seen) is Side.TOO_HIGH
    step = next_fraction([seen], most=0.999)
    assert step is not None
    assert 0.9 < step < 0.999


def test_weights_that_leave_no_pool_ask_for_more() -> None:
    step = next_fraction([launched("oom-kv-pool/gpu-c1-memfrac-0.05.log")])
    assert step is not None
    assert 0.109 < step < 0.95


def test_what_sglang_chose_for_a_fraction_that_was_not_passed_is_read() -> None:
    memory = memory_of(launched("serving/gpu-a1-dense-ok.log"))
    assert memory is not None
    assert memory.fraction == 0.903
