"""Memory lines follow SGLang's arithmetic, and never contradict what the world decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rehearsal.launching import READY, launched
from sglsweep.rehearsal.memory import plan_memory
from sglsweep.rehearsal.settings import Stage

if TYPE_CHECKING:
    from pathlib import Path

LEAD = {"mem_fraction_static": 0.88, "kv_cache_dtype": "bfloat16", "max_running_requests": 64}
SIZES = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64]


def test_the_lead_case_comes_out_as_its_log_had_it() -> None:
    memory = plan_memory(Stage(), LEAD, "", SIZES)
    assert memory.before_capture - memory.left == pytest.approx(1.62, abs=0.005)
    assert memory.left == pytest.approx(6.60, abs=0.01)
    assert memory.kv == pytest.approx(25.65, abs=0.1)
    assert memory.tokens == pytest.approx(274_000, rel=0.01)


def test_kv_pool_is_what_the_fraction_leaves_after_the_weights() -> None:
    for fraction in (0.7, 0.8, 0.88, 0.92):
        memory = plan_memory(Stage(), {**LEAD, "mem_fraction_static": fraction}, "", SIZES)
        expected = memory.loaded - memory.start * (1 - fraction)
        assert memory.kv == pytest.approx(expected, abs=0.01)


def test_fp8_holds_more_tokens_and_the_flat_layout_most() -> None:
    packed = plan_memory(Stage(), {**LEAD, "kv_cache_dtype": "fp8_e4m3"}, "", SIZES)
    flat = plan_memory(
        Stage(), {**LEAD, "kv_cache_dtype": "fp8_e4m3", "nsa_decode_backend": "trtllm"}, "", SIZES
    )
    assert plan_memory(Stage(), LEAD, "", SIZES).tokens < packed.tokens < flat.tokens


def test_at_095_nothing_is_left_for_the_graphs() -> None:
    memory = plan_memory(
        Stage(), {**LEAD, "mem_fraction_static": 0.95}, "oom-graph-capture", SIZES
    )
    assert memory.graphs >= memory.before_capture - 0.05


@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.62, 0.9, 0.999])
def test_a_cell_that_serves_always_has_tokens_and_memory_left(fraction: float) -> None:
    memory = plan_memory(Stage(), {**LEAD, "mem_fraction_static": fraction}, "", SIZES)
    assert memory.tokens > 0
    assert 0 < memory.left <= memory.before_capture <= memory.pooled <= memory.loaded


def test_weights_that_leave_no_kv_are_bigger_than_the_fraction_allows() -> None:
    memory = plan_memory(Stage(), LEAD, "oom-kv-pool", SIZES)
    assert memory.loaded < memory.start * (1 - 0.88)


def test_the_lines_of_a_launch_hold_these_numbers(tmp_path: Path) -> None:
    flags = [
        "--mem-fraction-static",
        "0.88",
        "--kv-cache-dtype",
        "bf16",
        "--max-running-requests",
        "64",
    ]
    with launched(tmp_path, *flags, "--cuda-graph-max-bs", "64", ranks=1) as standin:
        log = standin.await_line(READY)
    found = dict(
        re.findall(
            r"(Load weight begin|Memory pool end|Capture cuda graph end).*avail mem=([\d.]+)", log
        )
    )
    assert found["Load weight begin"] == "94.01"
    assert float(found["Capture cuda graph end"]) == pytest.approx(6.60, abs=0.011)
    assert float(found["Memory pool end"]) == pytest.approx(94.01 * 0.12 - 0.05, abs=0.02)
