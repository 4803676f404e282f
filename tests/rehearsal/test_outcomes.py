"""The world alone decides what a launch comes to, when, and how it looks."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from rehearsal.launching import READY, launched, world_file

if TYPE_CHECKING:
    from pathlib import Path

NAN = "probability tensor contains either `inf`, `nan` or element < 0"
FP8 = ("--kv-cache-dtype", "fp8_e4m3", "--attention-backend", "flashinfer")
COMMON = ("--mem-fraction-static", "0.88", "--moe-runner-backend", "flashinfer_cutlass")
WORLD = """
axes: {{attention-backend: [null, triton]}}
rules:
  - when: {{attention-backend: triton}}
    verdict: {verdict}
    cause: {cause}
    phase: {phase}
    at: "{at}"
rehearsal: {{sglang-version: "{version}"}}
"""


def one_rule(folder: Path, decides: str, *, version: str = "0.5.9", at: str = "") -> Path:
    """Write a world with one rule; `decides` is its verdict, cause and phase."""
    verdict, cause, phase = decides.split()
    text = WORLD.format(verdict=verdict, cause=cause, phase=phase, version=version, at=at)
    return world_file(folder, text)


def test_oom_in_capture_stands_in_the_log_as_sglang_wraps_it(tmp_path: Path) -> None:
    flags = (*FP8, "--mem-fraction-static", "0.95")
    with launched(tmp_path, *flags) as standin:
        assert standin.await_end() == -signal.SIGKILL
        log = standin.log
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in log
    assert "Exception: Capture cuda graph failed: CUDA out of memory." in log
    assert log.index("Capture cuda graph begin") < log.index("OutOfMemoryError")
    assert "Received sigquit from a child process." in log
    assert READY not in log


def test_what_a_rank_says_in_the_capture_is_glued_to_the_bar_of_another(tmp_path: Path) -> None:
    flags = (*FP8, "--mem-fraction-static", "0.95")
    for number in range(3):  # Which rank writes first is chance, as with real ones.
        (tmp_path / str(number)).mkdir()
        with launched(tmp_path / str(number), *flags) as standin:
            standin.await_end()
            log = standin.log
        if re.search(r"(it/s|s/it)\]\[\d{4}-.*Scheduler hit an exception", log):
            return
    pytest.fail("no bar was open when a rank died, in three launches")


def test_nan_dies_only_under_a_sampled_request_and_greedy_ones_get_zeros(tmp_path: Path) -> None:
    with launched(tmp_path, *FP8, *COMMON) as standin:
        standin.await_line(READY)
        greedy = standin.generate(range(50), temperature=0.0, tokens=40)["output_ids"]
        assert greedy[0] != 0
        assert set(greedy[1:]) == {0}
        assert NAN not in standin.log
        assert standin.generate(range(50), temperature=1.0, tokens=8) == {}
        assert standin.await_end() == -signal.SIGKILL
        log = standin.log
    assert NAN in log
    assert "CUDA error: device-side assert triggered" in log
    assert log.index(NAN) < log.index("device-side assert triggered")
    assert "SIGQUIT received. signum=None" in log


@pytest.mark.parametrize(
    "flags",
    [
        ("--nsa-decode-backend", "flashmla_sparse"),
        ("--fp8-gemm-backend", "cutlass"),
        ("--disable-cuda-graph",),
    ],
    ids=lambda flags: flags[0],
)
def test_the_flags_blamed_that_night_are_innocent(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with launched(tmp_path, *FP8, *COMMON, *flags) as standin:
        standin.await_line(READY)
        standin.generate(range(50), temperature=1.0)
        standin.await_end()
        assert NAN in standin.log


@pytest.mark.parametrize(
    "flags",
    [
        ("--kv-cache-dtype", "bf16", "--attention-backend", "flashinfer"),
        (*FP8, "--nsa-prefill-backend", "trtllm", "--nsa-decode-backend", "trtllm"),
    ],
    ids=["bf16", "flat"],
)
def test_the_corner_serves(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with launched(tmp_path, *flags, *COMMON) as standin:
        standin.await_line(READY)
        for prompt in (range(30), range(30), range(9000)):
            ids = standin.generate(prompt, temperature=1.0, tokens=48)["output_ids"]
            assert len(set(ids)) > 40
        assert standin.process.poll() is None


def test_untuned_moe_tiles_serve_one_request_and_die_of_two(tmp_path: Path) -> None:
    flags = ("--kv-cache-dtype", "bf16", "--mem-fraction-static", "0.88")
    with launched(tmp_path, *flags, "--moe-runner-backend", "triton") as standin:
        standin.await_line(READY)
        assert standin.generate(range(200), temperature=1.0)
        body = {"input_ids": [[1] * 9, [2] * 9], "sampling_params": {"max_new_tokens": 40}}
        assert standin.ask("/generate", body) == (0, {})
        standin.await_end()
        assert "Required: 147456, Hardware limit: 101376" in standin.log


def test_a_prefix_hit_can_be_what_kills(tmp_path: Path) -> None:
    world = one_rule(tmp_path, "kernel-unsupported triton-smem-attention decode")
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line(READY)
        assert standin.generate(range(200), temperature=1.0)["meta_info"]["cached_tokens"] == 0
        assert standin.generate(range(200), temperature=1.0) == {}
        standin.await_end()
        assert "Required: 106496, Hardware limit: 101376" in standin.log


def test_garbage_is_token_zero_for_ever(tmp_path: Path) -> None:
    world = one_rule(tmp_path, "garbage-output token-collapse decode")
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line(READY)
        answer = standin.generate(range(9), temperature=1.0, tokens=32)
        assert answer["output_ids"] == [0] * 32
        assert standin.process.poll() is None


@pytest.mark.parametrize(
    ("decides", "status", "text"),
    [
        ("bad-config flag-invalid-choice start", 2, "error: argument --attention-backend"),
        ("kernel-unsupported backend-not-for-this-arch start", 1, "only supported on"),
        ("env-error import-error start", 1, "ModuleNotFoundError: No module named"),
        ("load-error weight-shape-mismatch weights", -9, "The size of tensor a"),
        ("oom oom-weights weights", -9, "OutOfMemoryError"),
        ("oom oom-kv-pool weights-done", -9, "Not enough memory. Please try to increase"),
        ("bad-config dsa-triton-fp8-kv graph-capture", -9, "AssertionError"),
        ("collective-error nccl-error dist-init", -9, "NCCL error in:"),
        ("crash segfault graph-capture", 1, "Fatal Python error: Segmentation fault"),
        ("killed killed-sigkill weights", 1, "Exit code: -9"),
        ("env-error port-in-use warmup", 3, "[Errno 98]"),
        ("device-assert assert-index-oob warmup", -9, "index out of bounds"),
    ],
)
def test_a_failure_ends_as_sglang_ends_of_it(
    tmp_path: Path, decides: str, status: int, text: str
) -> None:
    world = one_rule(tmp_path, decides)
    with launched(tmp_path, "--attention-backend", "triton", world=world, ranks=4) as standin:
        assert standin.await_end() == status
        assert text in standin.log


def test_in_0_5_23_a_rank_killed_in_launch_is_named_by_the_parent(tmp_path: Path) -> None:
    world = one_rule(tmp_path, "killed killed-sigkill weights", version="0.5.23")
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        assert standin.await_end() == 1
        assert "scheduler died during initialization (exit code: -9)" in standin.log


def test_the_nan_check_of_0_5_23_names_the_nan_already_at_warm_up(tmp_path: Path) -> None:
    nsa = ("--nsa-prefill-backend", "flashmla_auto", "--nsa-decode-backend", "flashmla_kv")
    flags = (*FP8, *COMMON, *nsa, "--sglang-version", "0.5.23")
    with launched(tmp_path, *flags, env={"SGLANG_ENABLE_NAN_LOGITS_CHECK": "1"}) as standin:
        assert standin.await_end() == -signal.SIGKILL
        assert "NaN detected! sampler: next_token_logits" in standin.log
        assert READY not in standin.log


def test_a_hang_at_decode_is_ended_by_the_watchdog(tmp_path: Path) -> None:
    world = one_rule(tmp_path, "hang watchdog-timeout decode")
    flags = ("--attention-backend", "triton", "--watchdog-timeout", "20")
    with launched(tmp_path, *flags, world=world) as standin:
        standin.await_line(READY)
        began = time.monotonic()
        assert standin.generate(range(9), temperature=0.0) == {}
        assert standin.await_end() == -signal.SIGKILL
        assert time.monotonic() - began >= 0.08
        assert "Watchdog timeout (self.watchdog_timeout=20)" in standin.log


@pytest.mark.parametrize(
    ("at", "prompts"),
    [
        ("long", [(range(30), 0.0, 4), (range(8500), 0.0, 4)]),
        ("steps", [(range(30), 0.0, 30), (range(40), 0.0, 60)]),
        ("3", [(range(30), 0.0, 4), (range(40), 0.0, 4), (range(50), 0.0, 4)]),
    ],
)
def test_a_rule_can_say_which_request_kills(
    tmp_path: Path, at: str, prompts: list[tuple[range, float, int]]
) -> None:
    world = one_rule(tmp_path, "crash flake decode", at=at)
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line(READY)
        *fine, last = prompts
        for ids, temperature, tokens in fine:
            assert standin.generate(ids, temperature=temperature, tokens=tokens)
        assert standin.generate(last[0], temperature=last[1], tokens=last[2]) == {}
        assert standin.await_end() == -signal.SIGKILL


def test_a_flag_that_the_version_lacks_ends_with_usage_and_status_2(tmp_path: Path) -> None:
    with launched(tmp_path, "--no-such-flag", "1") as standin:
        assert standin.await_end() == 2
        assert "launch_server.py: error: unrecognized arguments: --no-such-flag" in standin.log


def test_a_world_that_cannot_be_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    world = world_file(tmp_path, "axes: {a: [1]}\nrehearsal: {no-such-key: 1}\n")
    with launched(tmp_path, world=world) as standin:
        assert standin.await_end() == 2
        assert "unknown key 'no-such-key'" in standin.log
        assert " next: " in standin.log
