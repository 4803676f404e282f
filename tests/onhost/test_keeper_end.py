"""Ending: in the right order, to the last process, whatever the server makes of it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from attempts import is_alive, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from attempts import Attempts, Started


def stop(attempt: Started, *, is_ready: bool, grace_s: float = 0.5) -> None:
    attempt.launched.stop(is_ready=is_ready, parent_grace_s=grace_s, group_grace_s=grace_s)


def signals_of(attempt: Started) -> list[tuple[str, str]]:
    report = attempt.state.stop
    assert report is not None
    return [(one.signal, one.to) for one in report.signals]


def test_a_ready_servers_parent_is_asked_alone(attempts: Attempts) -> None:
    attempt = attempts.start("rank", "calm")
    attempt.wait_for("ready to roll")
    (rank,) = attempt.pids_of("rank")

    stop(attempt, is_ready=True)

    assert "parent got TERM" in attempt.log
    assert signals_of(attempt)[0] == ("TERM", "parent")
    assert attempt.state.exit_status == 0
    assert attempt.state.end_reason == "stopped"
    assert not is_alive(rank)


def test_ranks_that_go_with_their_parent_never_hear_a_signal(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")

    stop(attempt, is_ready=True, grace_s=10)

    assert signals_of(attempt) == [("TERM", "parent")]


def test_before_ready_the_whole_group_is_asked(attempts: Attempts) -> None:
    attempt = attempts.start("rank", "calm", "say=loading", "wait")
    attempt.wait_for("loading")

    stop(attempt, is_ready=False, grace_s=10)

    assert signals_of(attempt) == [("TERM", "group")]
    assert "parent got TERM" in attempt.log
    assert "rank got TERM" in attempt.log


def test_who_ignores_term_is_killed_and_named(attempts: Attempts) -> None:
    attempt = attempts.start("deaf", "deaf-rank", "say=up", "wait")
    attempt.wait_for("up")
    (rank,) = attempt.pids_of("rank")

    stop(attempt, is_ready=False)

    report = attempt.state.stop
    assert report is not None
    assert signals_of(attempt) == [("TERM", "group"), ("KILL", "group")]
    assert {one.pid for one in report.ignored} == {rank, attempt.state.server_pid}
    assert report.is_clean
    assert attempt.state.exit_status == -signal.SIGKILL


@pytest.mark.parametrize("habit", ["lost-rank", "hidden-rank"])
def test_a_rank_that_left_the_session_is_ended_too(attempts: Attempts, habit: str) -> None:
    attempt = attempts.start(habit, "calm")
    attempt.wait_for("ready to roll")
    (rank,) = attempt.pids_of("rank")
    assert os.getsid(rank) != attempt.state.session

    stop(attempt, is_ready=True)

    assert not is_alive(rank)
    assert attempt.state.exit_status == 0


@pytest.mark.parametrize("habit", ["deaf-rank", "lost-rank", "hidden-rank"])
def test_ranks_orphaned_by_their_parents_end_are_ended(attempts: Attempts, habit: str) -> None:
    attempt = attempts.start(habit, "rest=1.2", "exit=1")
    attempt.wait_for("rank is")
    (rank,) = attempt.pids_of("rank")

    state = attempt.wait_for_end()

    assert not is_alive(rank)
    assert (state.end_reason, state.exit_status) == ("exited", 1)
    assert state.stop is not None
    assert state.stop.is_clean


def test_a_rank_orphaned_before_the_keeper_ever_saw_it_is_ended(attempts: Attempts) -> None:
    attempt = attempts.start("hidden-rank", "exit=1")

    attempt.wait_for_end()

    (rank,) = attempt.pids_of("rank")
    assert not is_alive(rank)


def test_children_born_after_term_are_found_by_looking_again(attempts: Attempts) -> None:
    attempt = attempts.start("breeds", "say=up", "wait")
    attempt.wait_for("up")

    stop(attempt, is_ready=False)

    late = attempt.pids_of("late child")
    assert len(late) == 3
    assert not [pid for pid in late if is_alive(pid)]


@pytest.mark.parametrize(("habit", "status"), [("exit=3", 3), ("exit=0", 0), ("kill-self", -9)])
def test_a_server_that_ends_by_itself_leaves_its_status(
    attempts: Attempts, habit: str, status: int
) -> None:
    attempt = attempts.start(habit)

    state = attempt.wait_for_end()

    assert (state.end_reason, state.exit_status) == ("exited", status)
    assert state.exited_at is not None
    wait_until(lambda: not is_alive(state.keeper_pid))


def test_the_exit_status_is_told_before_the_rest_is_cleared_away(attempts: Attempts) -> None:
    attempt = attempts.start("deaf-rank", "exit=1", graces={"orphan_grace_s": 60.0})

    wait_until(lambda: attempt.state.exit_status == 1)

    assert not attempt.state.has_ended


def test_a_zombie_is_not_alive(attempts: Attempts) -> None:
    attempt = attempts.start("zombie")
    attempt.wait_for("ready to roll")
    beat = attempt.state.beat_at
    wait_until(lambda: attempt.state.beat_at > beat)

    (zombie,) = attempt.pids_of("zombie")
    assert zombie not in [one.pid for one in attempt.state.processes]


def test_the_deadline_ends_everything_when_nobody_is_left_to_ask(attempts: Attempts) -> None:
    attempt = attempts.start("rank", "wait", deadline_s=1.0)

    state = attempt.wait_for_end()

    assert state.end_reason == "deadline"
    assert not is_alive(state.server_pid)
    assert not [pid for pid in attempt.pids_of("rank") if is_alive(pid)]


def test_the_deadline_holds_when_the_folder_is_gone(attempts: Attempts) -> None:
    attempt = attempts.start("wait", deadline_s=2.0)
    state = attempt.state

    shutil.rmtree(attempt.folder)

    wait_until(lambda: not is_alive(state.server_pid))
    wait_until(lambda: not is_alive(state.keeper_pid))


def test_a_log_beyond_its_limit_ends_the_attempt(attempts: Attempts) -> None:
    attempt = attempts.start("flood", max_log_bytes=1_000_000)

    state = attempt.wait_for_end()

    assert state.end_reason == "log-limit"
    assert not is_alive(state.server_pid)


def test_a_redacted_log_stops_at_its_limit(attempts: Attempts) -> None:
    attempt = attempts.start("flood", max_log_bytes=1_000_000, secrets={"TOKEN": "hf_123456"})

    attempt.wait_for_end()

    assert (attempt.folder / "log").stat().st_size == 1_000_000


def test_the_port_is_free_when_stop_returns(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")

    stop(attempt, is_ready=True, grace_s=5)

    assert attempt.state.stop is not None
    assert attempt.state.stop.port_free_s is not None
    with socket.create_server(("127.0.0.1", attempt.port)):
        pass


def test_stopping_what_has_ended_returns_how_it_ended(attempts: Attempts) -> None:
    attempt = attempts.start("exit=1")
    state = attempt.wait_for_end()

    assert attempt.launched.stop(is_ready=False) == state.stop


def test_a_neighbour_is_left_alone(attempts: Attempts) -> None:
    first = attempts.start("calm")
    second = attempts.start("calm", "rank")
    first.wait_for("ready to roll")
    second.wait_for("ready to roll")

    stop(first, is_ready=True)

    assert is_alive(second.state.server_pid)
    assert "got TERM" not in second.log


def test_a_marker_that_begins_like_ours_is_not_ours(attempts: Attempts) -> None:
    marker = f"test-{uuid.uuid4()}"
    short = attempts.start("lost-rank", "wait", marker=marker)
    long = attempts.start("lost-rank", "wait", marker=f"{marker}1")
    short.wait_for("rank is")
    long.wait_for("rank is")

    stop(short, is_ready=False)

    assert is_alive(long.pids_of("rank")[0])
    assert not is_alive(short.pids_of("rank")[0])


def fake_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, used: str) -> Path:
    """Put a stand-in for nvidia-smi into PATH; the file it prints is returned."""
    figures = folder / "figures"
    figures.write_text(used)
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {figures}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return figures


def test_stop_waits_until_the_gpus_memory_is_back(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = fake_nvidia_smi(tmp_path, monkeypatch, "400, 0, 90.51\n1, 0, [N/A]\n")
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    wait_until(lambda: attempt.state.life.gpu_used_mib == (400, 1))
    figures.write_text("70400, 100, 450.0\n1, 0, [N/A]\n")

    def give_back_once_stopping() -> None:
        if attempt.state.stop is None and not is_alive(attempt.state.server_pid):
            figures.write_text("410, 0, 90.51\n1, 0, [N/A]\n")

    report = attempt.launched.stop(is_ready=True, on_wait=give_back_once_stopping)

    assert report.gpu_free_s is not None
    assert report.gpu_left_mib is None
    assert attempt.state.life.gpu_used_mib == (410, 1)
    assert attempt.state.life.gpu_power_w == (90, 0)


def test_memory_is_not_waited_for_beside_another_attempt_on_the_same_card(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = fake_nvidia_smi(tmp_path, monkeypatch, "400, 0, 90.51\n")
    attempt, other = attempts.start("calm"), attempts.start("calm")
    attempt.wait_for("ready to roll")
    other.wait_for("ready to roll")
    wait_until(lambda: attempt.state.gpu_before is not None)
    (tmp_path / "bin" / "nvidia-smi").write_text(
        '#!/bin/sh\ncase "$*" in\n'
        f'*compute-apps*) echo "{other.state.server_pid}, 70000";;\n'
        f"*) cat {figures};;\nesac\n"
    )
    figures.write_text("70400, 100, 450.0\n")

    report = attempt.launched.stop(is_ready=True)

    assert (report.gpu_free_s, report.gpu_left_mib) == (None, None)
    assert report.total_s is not None
    assert report.total_s < 20


def test_who_had_the_gpus_memory_before_the_start_is_written_down(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, "")
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        f'*compute-apps*) echo "{os.getpid()}, 65000"; echo "4194305, [N/A]";;\n'
        '*) echo "66000, 0, 90.51";;\nesac\n'
    )
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    wait_until(lambda: attempt.state.gpu_before is not None)

    before = attempt.state.gpu_before

    assert before is not None
    assert before.used_mib == (66000,)
    assert [(h.pid, h.used_mib) for h in before.holders] == [
        (os.getpid(), 65000),
        (4194305, None),
    ]
    assert "python" in (before.holders[0].title or "")


def test_a_holder_that_has_our_secrets_is_written_down_without_them(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, "")
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)", "hf_q7Zz!x"]
    with subprocess.Popen(sleeps) as holder:
        smi = tmp_path / "bin" / "nvidia-smi"
        smi.write_text(
            f'#!/bin/sh\ncase "$*" in\n*compute-apps*) echo "{holder.pid}, 65000";;\n'
            '*) echo "66000, 0, 90.51";;\nesac\n'
        )
        attempt = attempts.start("calm", secrets={"TOKEN": "hf_q7Zz!x"})
        wait_until(lambda: attempt.state.gpu_before is not None)
        before = attempt.state.gpu_before
        holder.kill()
    assert before is not None
    (held,) = before.holders
    assert (held.title or "").endswith("time.sleep(600) ${TOKEN}")


def test_an_nvidia_smi_that_hangs_holds_nothing_up(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, "")
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 600\n")
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")

    report = attempt.launched.stop(is_ready=True)

    assert report.is_clean
    assert report.gpu_free_s is None
    assert report.total_s is not None
    assert report.total_s < 10
