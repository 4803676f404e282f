"""Starting: what the server gets, what it does not get, and what keeps it from starting."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attempts import KEEPER, is_alive, wait_until
from sglsweep.errors import HostError
from sglsweep.launch import PortTaken

if TYPE_CHECKING:
    from attempts import Attempts


def find_old_python() -> str | None:
    """Return a Python 3.8 that runs; pyenv's shim alone is none."""
    installed = Path.home().glob(".pyenv/versions/3.8*/bin/python")
    for python in filter(None, [shutil.which("python3.8"), *map(str, installed)]):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None


OLD_PYTHON = find_old_python()


def environment_of(pid: int | None) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def test_the_server_leads_a_session_of_its_own_and_carries_the_marker(attempts: Attempts) -> None:
    attempt = attempts.start("rank", env={"MINE": "yes"})
    attempt.wait_for("ready to roll")

    server = attempt.state.server_pid
    assert server is not None
    (rank,) = attempt.pids_of("rank")
    environment = environment_of(server)
    assert os.getsid(rank) == os.getsid(server) == server == attempt.state.session
    assert environment["SGLSWEEP_MARKER"] == attempt.marker
    assert (environment["SPT_NOENV"], environment["PYTHONUNBUFFERED"]) == ("1", "1")
    assert environment["MINE"] == "yes"


def test_both_outputs_go_into_one_log_in_their_order(attempts: Attempts) -> None:
    attempt = attempts.start("both")
    attempt.wait_for("ready to roll")

    lines = attempt.log.splitlines()
    assert lines[:20] == [f"line {number}" for number in range(20)]


def test_bytes_that_are_no_text_stand_in_the_log_as_they_came(attempts: Attempts) -> None:
    attempt = attempts.start("junk")
    attempt.wait_for("ready to roll")

    assert attempt.launched.read_log(0, 256) == bytes(range(256))


def test_the_server_inherits_nothing_of_the_keeper(attempts: Attempts) -> None:
    attempt = attempts.start("wait")
    server = attempt.state.server_pid

    held = {int(fd.name): str(fd.readlink()) for fd in Path(f"/proc/{server}/fd").iterdir()}

    assert held[0] == "/dev/null"
    assert held[1] == held[2] == str(attempt.folder / "log")
    assert not [path for number, path in held.items() if number > 2 and "pipe" in path]
    assert not [path for number, path in held.items() if number > 2 and "/log" in path]


def test_start_lets_go_of_its_callers_pipes_while_the_server_runs(attempts: Attempts) -> None:
    spec = attempts.spec("wait")
    folder = attempts.folder / "by-hand"
    folder.mkdir()
    (folder / "spec.json").write_bytes(spec.as_json())
    command = [sys.executable, "-I", str(KEEPER), "start", str(folder)]

    # Without its pipes closed by everyone, this would wait as long as the server lives.
    said = subprocess.run(command, input=b"", capture_output=True, timeout=30, check=True)

    assert b"server_pid" in said.stdout
    stopped = subprocess.run(
        [*command[:-2], "stop", str(folder)], capture_output=True, timeout=60, check=False
    )
    assert stopped.returncode == 0, stopped


def test_a_second_start_of_the_same_attempt_starts_nothing(attempts: Attempts) -> None:
    attempt = attempts.start("wait")

    again = attempt.keeper("start")

    assert again["exit"] == 0
    assert again["server_pid"] == attempt.state.server_pid
    assert len(attempt.state.processes) == 1


def test_another_attempt_in_the_same_folder_is_refused(attempts: Attempts) -> None:
    attempts.start("wait", name="one")

    with pytest.raises(HostError, match="another attempt"):
        attempts.start("wait", name="one")


def test_a_taken_port_names_its_owner_and_nothing_starts(attempts: Attempts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        port = owner.getsockname()[1]

        with pytest.raises(PortTaken) as refusal:
            attempts.start("say=started", port=port, name="one")

    assert refusal.value.pid == os.getpid()
    assert refusal.value.title
    assert str(port) in str(refusal.value)
    assert not (attempts.folder / "one" / "log").exists()
    attempts.start("wait", port=port, name="one")


def test_a_port_taken_on_any_address_is_taken(attempts: Attempts) -> None:
    with socket.create_server(("0.0.0.0", 0)) as owner, pytest.raises(PortTaken):  # noqa: S104 - that is the case
        attempts.start("wait", port=owner.getsockname()[1])


def test_a_port_bound_by_somebody_who_does_not_listen_is_taken(attempts: Attempts) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))

        with pytest.raises(PortTaken):
            attempts.start("wait", port=owner.getsockname()[1])


def test_a_port_held_by_an_attempt_of_ours_is_told_as_such(attempts: Attempts) -> None:
    first = attempts.start()
    first.wait_for("ready to roll")

    with pytest.raises(PortTaken) as refusal:
        attempts.start("wait", port=first.port)

    assert refusal.value.marker == first.marker
    assert "sglsweep clean" in refusal.value.next_step


def test_a_program_that_is_not_there_is_named(attempts: Attempts) -> None:
    with pytest.raises(HostError, match="/no/such/python"):
        attempts.start(argv=("/no/such/python", "-m", "sglang.launch_server"))


def test_a_working_folder_that_is_not_there_is_named(attempts: Attempts) -> None:
    with pytest.raises(HostError, match="/no/such/folder"):
        attempts.start("wait", cwd="/no/such/folder")


def test_a_spec_that_lacks_something_is_refused(attempts: Attempts) -> None:
    with pytest.raises(HostError, match="marker"):
        attempts.start("wait", marker="")


def test_the_keeper_outlives_the_hangup_of_its_terminal(attempts: Attempts) -> None:
    attempt = attempts.start("wait")
    keeper = attempt.state.keeper_pid
    assert keeper is not None
    beat = attempt.state.beat_at

    os.kill(keeper, 1)

    wait_until(lambda: attempt.state.beat_at > beat)
    assert is_alive(keeper)


def test_the_keeper_is_python_3_8_and_needs_no_package() -> None:
    tree = ast.parse(KEEPER.read_text(), feature_version=(3, 8))

    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)


@pytest.mark.skipif(OLD_PYTHON is None, reason="no python3.8 on this machine")
def test_python_3_8_itself_keeps_an_attempt(attempts: Attempts) -> None:
    assert OLD_PYTHON is not None
    attempt = attempts.start("calm", python=OLD_PYTHON)
    attempt.wait_for("ready to roll")

    report = attempt.launched.stop(is_ready=True)

    assert report.is_clean
    assert attempt.state.exit_status == 0
