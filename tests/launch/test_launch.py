"""Driving a keeper, on this machine and over SSH."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from attempts import Attempts, Started, is_alive, marked_by, wait_until
from sglsweep import launch
from sglsweep.errors import HostError
from sglsweep.keeper_files import HttpRequest, RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.hosts.base import Host
    from sglsweep.hosts.ssh import SshHost
    from sshd import Gate


@pytest.fixture
def gated_attempts(tmp_path: Path, gated_host: SshHost) -> Iterator[Attempts]:
    made = Attempts(tmp_path / "attempts", gated_host)
    yield made
    made.end_all()


def test_an_attempt_from_start_to_end(attempts: Attempts) -> None:
    attempt = attempts.start("rank", "calm")
    attempt.wait_for("ready to roll")
    wait_until(lambda: attempt.state.listener is not None)

    answer = attempt.ask(
        HttpRequest(id="a", path="/hello"), HttpRequest(id="b", path="/events", stream=True)
    )
    length = len(attempt.launched.read_log(0))
    wait_until(lambda: attempt.state.life.log_bytes == length)
    state = attempt.state
    report = attempt.launched.stop(is_ready=True)

    assert [one.status for one in answer.responses] == [200, 200]
    assert state.state is RunState.RUNNING
    assert report.is_clean
    assert (attempt.state.exit_status, attempt.state.end_reason) == (0, "stopped")


def test_the_log_is_read_on_at_its_offset(attempts: Attempts) -> None:
    attempt = attempts.start("both", "rest=1", "say=later")
    attempt.wait_for("line 19")
    first = attempt.launched.read_log(0)
    attempt.wait_for("later")

    rest = attempt.launched.read_log(len(first))

    assert rest.startswith(b"later")
    assert first + rest == attempt.launched.read_log(0)[: len(first + rest)]


def test_an_attempt_is_adopted_by_a_later_controller(attempts: Attempts, host: Host) -> None:
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    attempt.ask(HttpRequest(id="a", path="/hello"))
    host.close()

    back = launch.adopt(host, sys.executable, attempt.launched.directory)

    assert back is not None
    again = Started(back, attempt.port, attempt.marker)
    assert again.ask(HttpRequest(id="b", path="/hello")).responses[0].id == "b"
    assert back.stop(is_ready=True).is_clean
    assert again.state.exit_status == 0


def test_an_ended_attempt_is_adopted_with_its_end(attempts: Attempts, host: Host) -> None:
    attempt = attempts.start("exit=4")
    attempt.wait_for_end()

    back = launch.adopt(host, sys.executable, attempt.launched.directory)

    assert back is not None
    assert (back.state().end_reason, back.state().exit_status) == ("exited", 4)


def test_waiting_for_the_end_calls_back(attempts: Attempts) -> None:
    attempt = attempts.start("deaf", "say=up", "wait")
    attempt.wait_for("up")
    calls: list[str] = []

    attempt.launched.stop(is_ready=False, on_wait=lambda: calls.append("still there"))

    assert len(calls) > 2


def test_a_missing_keeper_file_is_copied_again(attempts: Attempts) -> None:
    attempt = attempts.start("calm")
    for path in attempts.folder.glob("keeper-*.py"):
        path.write_text("")
        path.unlink()

    assert attempt.launched.check().is_keeper_alive


def test_the_keeper_is_copied_once_for_all_attempts(attempts: Attempts) -> None:
    attempts.start("wait")
    (copy,) = attempts.folder.glob("keeper-*.py")
    written = copy.stat().st_mtime_ns
    attempts.start("wait")

    assert [one.stat().st_mtime_ns for one in attempts.folder.glob("keeper-*.py")] == [written]


def test_a_python_that_is_not_there_is_named(attempts: Attempts) -> None:
    with pytest.raises(HostError, match="/no/such/python"):
        attempts.start("wait", python="/no/such/python")


def test_a_python_that_cannot_run_the_keeper_says_so(attempts: Attempts) -> None:
    with pytest.raises(HostError, match="cannot run the keeper") as refusal:
        attempts.start("wait", python="false")

    assert "3.8" in refusal.value.next_step


@pytest.mark.parametrize("cut_after", [1, 400, 900, 1300, 1800, 2400])
def test_a_start_that_is_cut_off_starts_exactly_one_server(
    gated_attempts: Attempts, gated_host: SshHost, gate: Gate, cut_after: int
) -> None:
    gated_host.run(["true"])
    gate.cut_after(cut_after)

    attempt = gated_attempts.start("calm")
    attempt.wait_for("ready to roll")

    assert marked_by(attempt.marker) == [attempt.state.server_pid]


def test_a_cut_link_costs_an_attempt_nothing(gated_attempts: Attempts, gate: Gate) -> None:
    attempt = gated_attempts.start("calm", "both")
    attempt.wait_for("ready to roll")

    gate.cut()
    log = attempt.log
    gate.cut()
    number = attempt.launched.ask_http(
        [HttpRequest(id="a", path="/events")], concurrency=1, timeout_s=20
    )
    gate.cut()
    wait_until(lambda: attempt.launched.answer(number) is not None)
    gate.cut()
    report = attempt.launched.stop(is_ready=True, on_wait=gate.cut)

    assert log.count("ready to roll") == 1
    assert report.is_clean
    assert attempt.state.exit_status == 0


def test_reap_over_a_host_leaves_others_alone(attempts: Attempts, host: Host) -> None:
    one = attempts.start("calm", "wait")
    other = attempts.start("calm", "wait")

    report = launch.reap(host, sys.executable, PurePosixPath(attempts.folder), one.marker)

    assert report.is_clean
    assert is_alive(other.state.server_pid)
    assert one.wait_for_end().end_reason == "exited"
