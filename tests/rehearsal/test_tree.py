"""A stand-in's processes are born, named and ended as SGLang's are."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from rehearsal.launching import READY, launched

SERVES = (
    "--kv-cache-dtype",
    "bf16",
    "--mem-fraction-static",
    "0.88",
    "--attention-backend",
    "flashinfer",
)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_ranks_and_detokenizer_carry_sglangs_titles_in_one_session(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, ranks=8) as standin:
        standin.await_line(READY)
        family = standin.family()
    ranks = {f"sglang::scheduler_TP{rank}" for rank in range(8)}
    assert ranks | {"sglang::detokenizer"} < set(family)
    assert len(family) == 10


def test_titles_overwrite_the_shown_environment_unless_spt_noenv_is_set(tmp_path: Path) -> None:
    for extra, expected in (({}, False), ({"SPT_NOENV": "1"}, True)):
        with launched(tmp_path, *SERVES, env={"MARKER": "here", **extra}) as standin:
            standin.await_line(READY)
            family = standin.family()
            assert (b"MARKER=here" in environment(family["sglang::scheduler_TP1"])) is expected
            assert b"MARKER=here" in environment(standin.process.pid)


def test_the_port_is_bound_only_after_capture(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--time-scale", "0.02") as standin:
        log = standin.await_line("Load weight begin")
        assert "Capture cuda graph end" not in log
        assert not is_open(standin.port)
        standin.await_line(READY)
        assert is_open(standin.port)


@pytest.mark.parametrize(("version", "status"), [("0.5.9", -9), ("0.5.23", 0)])
def test_term_to_a_ready_parent_ends_the_whole_tree(
    tmp_path: Path, version: str, status: int
) -> None:
    with launched(tmp_path, *SERVES, "--sglang-version", version) as standin:
        standin.await_line(READY)
        standin.process.terminate()
        assert standin.await_end() == status
        assert standin.family() == {}
        assert "Gracefully exiting..." in standin.log


def test_term_while_loading_kills_the_parent_alone(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--time-scale", "0.05") as standin:
        standin.await_line("Load weight begin")
        standin.process.terminate()
        assert standin.await_end() == -signal.SIGTERM
        assert "sglang::scheduler_TP0" in standin.family()


@pytest.mark.parametrize(("version", "status"), [("0.5.9", None), ("0.5.23", -9)])
def test_a_killed_rank_is_noticed_by_0_5_23_and_leaves_a_zombie_server_before(
    tmp_path: Path, version: str, status: int | None
) -> None:
    with launched(tmp_path, *SERVES, "--sglang-version", version) as standin:
        standin.await_line(READY)
        os.kill(standin.family()["sglang::scheduler_TP1"], signal.SIGKILL)
        if status is not None:
            assert standin.await_end() == status
            assert "Subprocess scheduler_1 (pid=" in standin.log
            assert "crashed with exit code -9" in standin.log
        else:
            assert standin.ask("/model_info")[0] == 200
            assert standin.process.poll() is None


def test_a_killed_parent_takes_its_ranks_with_it(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES) as standin:
        standin.await_line(READY)
        standin.process.kill()
        standin.await_end()
        end = time.monotonic() + 5
        while standin.family() and time.monotonic() < end:
            time.sleep(0.01)
        assert standin.family() == {}


def test_a_launch_of_eight_ranks_takes_about_a_second_at_a_hundredth(tmp_path: Path) -> None:
    began = time.monotonic()
    with launched(tmp_path, *SERVES, "--time-scale", "0.01", ranks=8) as standin:
        standin.await_line(READY)
        assert standin.generate(range(20), temperature=1.0)
    assert time.monotonic() - began < 8  # 1.1 s on a quiet machine of two cores
