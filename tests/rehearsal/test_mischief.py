"""Each bad behaviour is done for real."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rehearsal.launching import READY, launched

SERVES = (
    "--kv-cache-dtype",
    "bf16",
    "--mem-fraction-static",
    "0.88",
    "--attention-backend",
    "flashinfer",
)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def session_of(pid: int) -> int:
    return int(
        Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()[3]
    )


def test_ignoring_term_takes_a_kill(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "ignores-term") as standin:
        standin.await_line(READY)
        os.killpg(standin.process.pid, signal.SIGTERM)
        assert standin.generate(range(9), temperature=1.0)
        assert len(standin.family()) == 4


def test_an_orphan_leaves_the_session_and_outlives_the_tree(tmp_path: Path) -> None:
    marker = f"orphan-{os.getpid()}"
    env = {"SGLSWEEP_TEST_MARKER": marker, "SPT_NOENV": "1"}
    with launched(tmp_path, *SERVES, "--mischief", "orphan-rank", env=env) as standin:
        standin.await_line(READY)
        standin.process.terminate()
        standin.await_end()
        orphans = [
            int(folder.name)
            for folder in Path("/proc").glob("[0-9]*")
            if os.access(folder / "environ", os.R_OK)
            and marker.encode() in read(folder / "environ")
        ]
    try:
        assert len(orphans) == 1
        assert session_of(orphans[0]) == orphans[0] != standin.process.pid
    finally:
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_silent_hang_says_nothing_more_and_uses_no_cpu(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "silent-hang") as standin:
        standin.await_line("Capture cuda graph begin")
        ranks = [pid for title, pid in standin.family().items() if "scheduler" in title]
        time.sleep(0.3)
        size, before = len(standin.log), sum(map(cpu_s, ranks))
        time.sleep(0.6)
        assert len(standin.log) == size
        assert sum(map(cpu_s, ranks)) - before < 0.1
        assert READY not in standin.log


def test_a_busy_hang_burns_a_core(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "busy-hang") as standin:
        standin.await_line("Capture cuda graph begin")
        rank = standin.family()["sglang::scheduler_TP0"]
        before = cpu_s(rank)
        time.sleep(0.8)
        assert cpu_s(rank) - before > 0.1


def test_half_lines_and_junk_do_not_stop_a_server(tmp_path: Path) -> None:
    words = ("--mischief", "half-lines", "--mischief", "binary-junk")
    with launched(tmp_path, *SERVES, *words) as standin:
        standin.await_line("Application startup complete.")
        end = time.monotonic() + 10
        while not standin.generate(range(9), temperature=1.0) and time.monotonic() < end:
            time.sleep(0.05)
        assert b"\xff\xfe" in standin.log_file.read_bytes()


def test_a_flood_writes_megabytes_a_second(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "flood") as standin:
        standin.await_line(READY)
        before = standin.log_file.stat().st_size
        time.sleep(0.6)
        assert standin.log_file.stat().st_size - before > 4_000_000


def test_a_taken_port_ends_with_errno_98_and_then_says_ready(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "port-taken") as standin:
        assert standin.await_end() == 3
        log = standin.log
    assert log.index("[Errno 98]") < log.index(READY)


def test_a_wrong_owner_answers_although_the_log_says_ready(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "wrong-owner") as standin:
        standin.await_line(READY)
        status, answer = standin.ask("/server_info")
        assert status == 200
        assert "rehearsal" not in answer


def test_dying_at_a_step_waits_for_that_request(tmp_path: Path) -> None:
    with launched(tmp_path, *SERVES, "--mischief", "dies-at-step=2") as standin:
        standin.await_line(READY)
        assert standin.generate(range(9), temperature=1.0)
        assert standin.generate(range(9), temperature=1.0) == {}
        assert standin.await_end() == -signal.SIGKILL


def test_lingering_makes_the_end_take_65_seconds_of_the_story(tmp_path: Path) -> None:
    words = ("--mischief", "lingers", "--time-scale", "0.01")
    with launched(tmp_path, *SERVES, *words) as standin:
        standin.await_line(READY)
        began = time.monotonic()
        standin.process.terminate()
        standin.await_end()
        assert time.monotonic() - began >= 0.65


def test_a_rule_can_ask_for_mischief(tmp_path: Path) -> None:
    world = tmp_path / "world.yaml"
    world.write_text(
        "axes: {attention-backend: [null, triton]}\n"
        "rules:\n"
        "- {when: {attention-backend: triton}, verdict: hang, cause: silent,\n"
        "   phase: weights-done, mischief: busy-hang}\n"
    )
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line("Load weight end")
        rank = standin.family()["sglang::scheduler_TP0"]
        before = cpu_s(rank)
        time.sleep(0.6)
        assert cpu_s(rank) - before > 0.1
        assert "KV Cache is allocated" not in standin.log


def test_a_cell_that_serves_can_behave_badly(tmp_path: Path) -> None:
    world = tmp_path / "world.yaml"
    world.write_text(
        "axes: {attention-backend: [null, triton]}\n"
        "rehearsal:\n"
        "  mischief: [{when: {attention-backend: triton}, does: dies-at-step=1}]\n"
    )
    for flags, survives in ((("--attention-backend", "triton"), False), ((), True)):
        with launched(tmp_path, *flags, world=world) as standin:
            standin.await_line(READY)
            assert bool(standin.generate(range(9), temperature=1.0)) is survives
