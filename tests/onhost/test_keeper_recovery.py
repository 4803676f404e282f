"""When the keeper itself is gone, stopped or doubted: nothing of the attempt may stay behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from attempts import KEEPER, end, is_alive, start_of, wait_until
from sglsweep import launch
from sglsweep.hosts.local import LocalHost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attempts import Attempts, Started


def kill_keeper(attempt: Started) -> None:
    keeper = attempt.state.keeper_pid
    end(keeper)
    wait_until(lambda: not is_alive(keeper))


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is nobody's attempt."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_killed_keeper_costs_the_server_nothing_and_is_noticed(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")

    kill_keeper(attempt)

    state = attempt.launched.check()
    assert state.is_keeper_alive is False
    assert [one.pid for one in state.alive] == [state.server_pid]


@pytest.mark.parametrize("habit", ["rank", "deaf-rank", "lost-rank", "hidden-rank"])
def test_stop_ends_the_tree_of_a_killed_keeper(attempts: Attempts, habit: str) -> None:
    attempt = attempts.start(habit, "calm")
    attempt.wait_for("ready to roll")
    (rank,) = attempt.pids_of("rank")
    wait_until(lambda: rank in [one.pid for one in attempt.state.processes])
    kill_keeper(attempt)

    said = attempt.keeper("stop")

    state = attempt.state
    assert said["exit"] == 0
    assert not is_alive(state.server_pid)
    assert not is_alive(rank)
    assert (state.end_reason, state.exit_status) == ("keeper-lost", None)
    assert state.has_ended


def test_the_controllers_stop_does_without_a_keeper(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    kill_keeper(attempt)
    back = launch.adopt(LocalHost(), sys.executable, attempt.launched.directory)
    assert back is not None

    report = back.stop(is_ready=True)

    assert report.is_clean
    assert not is_alive(attempt.state.server_pid)


def test_stop_by_hand_goes_through_a_living_keeper(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    wait_until(lambda: attempt.state.listener is not None)

    said = attempt.keeper("stop")

    assert said["exit"] == 0
    assert attempt.state.end_reason == "stopped"
    assert attempt.state.exit_status == 0
    assert said["signals"][0]["to"] == "parent"


def test_stop_does_without_a_keeper_that_stands_still(attempts: Attempts) -> None:
    attempt = attempts.start("calm", "wait")
    keeper = attempt.state.keeper_pid
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)

    said = attempt.keeper("stop")

    assert said["exit"] == 0
    assert not is_alive(attempt.state.server_pid)
    assert not is_alive(keeper)


def test_a_keeper_that_is_asked_to_end_ends_its_server_first(attempts: Attempts) -> None:
    attempt = attempts.start("calm", "wait")
    keeper = attempt.state.keeper_pid
    assert keeper is not None

    os.kill(keeper, signal.SIGTERM)

    state = attempt.wait_for_end()
    assert state.end_reason == "stopped"
    assert not is_alive(state.server_pid)


def test_a_pid_that_now_is_somebody_elses_is_not_touched(
    attempts: Attempts, bystander: subprocess.Popen[bytes]
) -> None:
    attempt = attempts.start("exit=0")
    attempt.wait_for_end()
    wait_until(lambda: not is_alive(attempt.state.keeper_pid))
    path = attempt.folder / "state.json"
    stale = json.loads(path.read_text())
    reused = {"pid": bystander.pid, "start": 1, "title": "sglang::scheduler", "state": "S"}
    stale.update(state="running", keeper_pid=bystander.pid, processes=[reused])
    path.write_text(json.dumps(stale))

    said = attempt.keeper("stop")

    assert said["exit"] == 0
    assert is_alive(bystander.pid)


def make_stale(attempt: Started, **changes: object) -> None:
    """Make the folder of an ended attempt tell that it still runs."""
    wait_until(lambda: not is_alive(attempt.state.keeper_pid))
    path = attempt.folder / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "running", **changes}))


def test_a_session_that_now_is_somebody_elses_is_not_touched(attempts: Attempts) -> None:
    attempt = attempts.start("exit=0")
    attempt.wait_for_end()
    with subprocess.Popen(["/bin/sleep", "600"], start_new_session=True) as leader:
        make_stale(attempt, session=leader.pid, server_pid=leader.pid, server_start=1)

        assert attempt.keeper("stop")["exit"] == 0

        assert is_alive(leader.pid)
        leader.kill()


def test_a_session_without_its_leader_proves_nothing_later(attempts: Attempts) -> None:
    attempt = attempts.start("exit=0")
    attempt.wait_for_end()
    script = "sleep 600 >/dev/null & echo $!"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE
    ) as leader:
        member = int(leader.communicate()[0])
    make_stale(attempt, session=leader.pid, server_pid=leader.pid, server_start=1)

    assert attempt.keeper("stop")["exit"] == 0

    assert is_alive(member)
    end(member)


def test_pids_of_another_boot_mean_nothing(
    attempts: Attempts, bystander: subprocess.Popen[bytes]
) -> None:
    attempt = attempts.start("exit=0")
    attempt.wait_for_end()
    path = attempt.folder / "state.json"
    stale = json.loads(path.read_text())
    mine = {
        "pid": bystander.pid,
        "start": start_of(bystander.pid),
        "title": "sglang::scheduler",
        "state": "S",
    }
    stale.update(state="running", boot_id="another", processes=[mine])
    stale.update(keeper_pid=bystander.pid, keeper_start=start_of(bystander.pid))
    stale.update(session=os.getsid(bystander.pid))
    path.write_text(json.dumps(stale))

    said = attempt.keeper("stop")

    assert said["exit"] == 0
    assert is_alive(bystander.pid)


def test_reap_ends_what_carries_a_marker_when_the_folder_is_gone(attempts: Attempts) -> None:
    attempt = attempts.start("moved-rank", "calm")
    attempt.wait_for("ready to roll")
    server, (rank,) = attempt.state.server_pid, attempt.pids_of("rank")
    kill_keeper(attempt)
    shutil.rmtree(attempt.folder)

    root = PurePosixPath(attempts.folder)
    report = launch.reap(LocalHost(), sys.executable, root, attempt.marker)

    assert report.is_clean
    assert not is_alive(server)
    assert not is_alive(rank)


def test_find_tells_attempts_and_marked_processes(attempts: Attempts) -> None:
    running = attempts.start("calm")
    ended = attempts.start("exit=0")
    running.wait_for("ready to roll")
    ended.wait_for_end()
    wait_until(lambda: not is_alive(ended.state.keeper_pid))

    found = launch.find(LocalHost(), sys.executable, PurePosixPath(attempts.folder))

    by_marker = {one["marker"]: one for one in found["attempts"]}
    assert by_marker[running.marker]["keeper_alive"]
    assert [p["pid"] for p in by_marker[running.marker]["processes"]] == [running.state.server_pid]
    assert not by_marker[ended.marker]["keeper_alive"]
    assert by_marker[ended.marker]["processes"] == []
    marked = {one["pid"]: one for one in found["processes"]}
    server = running.state.server_pid
    assert server is not None
    assert marked[server]["directory"] == str(running.folder)


def test_a_folder_without_an_attempt_cannot_be_stopped(attempts: Attempts) -> None:
    words = [sys.executable, "-I", str(KEEPER), "stop", str(attempts.folder)]

    said = subprocess.run(words, capture_output=True, check=False, timeout=30)

    assert said.returncode == 1
    assert b"no attempt" in said.stdout


def test_adopt_finds_nothing_where_nothing_was_started(attempts: Attempts) -> None:
    folder = PurePosixPath(attempts.folder) / "never"

    assert launch.adopt(LocalHost(), sys.executable, folder) is None
