"""Programs that the keeper runs beside the server: bounded, ours, ended with the attempt."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from attempts import is_alive, wait_until
from sglsweep.keeper_files import HttpRequest

if TYPE_CHECKING:
    from pathlib import Path

    from attempts import Attempts, Started
    from sglsweep.keeper_files import ToolAnswer

_SAYS_WHO_IT_IS = """
import os, pathlib, sys
print(os.environ["SGLSWEEP_MARKER"], os.environ["SECRET"], os.environ["MORE"])
pathlib.Path(sys.argv[1], "result.json").write_text('{"key": "%s"}' % os.environ["SECRET"])
"""
_LEAVES_ODD_FILES = """
import os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "dangling").symlink_to(folder / "nowhere")
(folder / "link").symlink_to(sys.argv[2])
os.mkfifo(folder / "pipe")
(folder / "binary").write_bytes(b"\\xff\\xfe " + os.environ["SECRET"].encode())
"""
_NEVER_ENDS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("workers", os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server(attempts: Attempts) -> Started:
    attempt = attempts.start("calm", env={"SECRET": "${TOKEN}"}, secrets={"TOKEN": "hf_q7Zz!x"})
    attempt.wait_for("ready to roll")
    return attempt


def run(server: Started, script: str, *words: str, timeout_s: float = 30.0) -> ToolAnswer:
    number = server.launched.run_tool(
        [sys.executable, "-c", script, *words],
        env={"MORE": "more"},
        timeout_s=timeout_s,
        read=["result.json", "absent.json"],
    )
    return answer_to(server, number)


def answer_to(server: Started, number: int) -> ToolAnswer:
    wait_until(lambda: server.launched.tool_answer(number) is not None)
    answer = server.launched.tool_answer(number)
    assert answer is not None
    return answer


def workers(output: str) -> list[int]:
    return [int(word) for word in output.split("workers")[1].split()[:2]]


def test_it_has_the_attempts_environment_marker_and_a_folder(server: Started) -> None:
    answer = run(server, _SAYS_WHO_IT_IS, "{folder}")
    assert (answer.exit_status, answer.error) == (0, None)
    assert answer.output == f"{server.marker} ${{TOKEN}} more\n"
    assert answer.files == {"result.json": '{"key": "${TOKEN}"}', "absent.json": None}


def test_a_secret_is_in_no_file_that_it_leaves(server: Started) -> None:
    run(server, _SAYS_WHO_IT_IS, "{folder}")
    kept = [p for p in server.folder.rglob("*") if p.is_file()]
    assert any(p.name == "result.json" for p in kept)
    assert [p for p in kept if b"hf_q7Zz!x" in p.read_bytes()] == []


def test_what_it_leaves_beside_plain_files_harms_nobody(server: Started, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"\xff hf_q7Zz!x")
    answer = run(server, _LEAVES_ODD_FILES, "{folder}", str(outside), timeout_s=10.0)
    assert (answer.exit_status, answer.error) == (0, None)
    assert outside.read_bytes() == b"\xff hf_q7Zz!x"
    (kept,) = server.folder.rglob("binary")
    assert kept.read_bytes() == b"\xff\xfe ${TOKEN}"
    server.launched.stop(is_ready=True)
    assert not is_alive(server.state.server_pid or 0)


def test_a_folder_that_a_tool_took_away_does_not_keep_the_attempt_from_its_end(
    server: Started,
) -> None:
    script = "import shutil, sys, time; shutil.rmtree(sys.argv[1]); time.sleep(600)"
    argv = [sys.executable, "-c", script, "{folder}"]
    number = server.launched.run_tool(argv, timeout_s=600.0)
    folder = server.folder / "tools"
    wait_until(lambda: folder.exists() and not any(folder.iterdir()))
    server.launched.stop(is_ready=True)
    assert not is_alive(server.state.server_pid or 0)
    assert answer_to(server, number).error == "stopped"


def test_it_is_ended_at_its_time_limit_with_its_workers(server: Started) -> None:
    answer = run(server, _NEVER_ENDS, timeout_s=1.0)
    assert answer.error == "timeout"
    assert answer.exit_status == -9
    wait_until(lambda: not any(map(is_alive, workers(answer.output))))
    assert server.launched.state().exited_at is None


def test_what_cannot_be_run_is_said(server: Started) -> None:
    number = server.launched.run_tool(["/no/such/program"], timeout_s=5.0)
    answer = answer_to(server, number)
    assert answer.exit_status is None
    assert "/no/such/program" in (answer.error or "")


def test_it_ends_with_the_attempt(server: Started) -> None:
    script = [sys.executable, "-c", _NEVER_ENDS]
    number = server.launched.run_tool(script, timeout_s=600.0)
    output = server.folder / "tools" / f"{number:03d}" / "output"
    wait_until(lambda: output.exists() and "workers" in output.read_text())
    server.launched.stop(is_ready=True)
    assert not any(map(is_alive, workers(output.read_text())))
    answer = server.launched.tool_answer(number)
    assert answer is not None
    assert answer.error == "stopped"


def test_it_is_given_up_when_the_server_dies(server: Started) -> None:
    number = server.launched.run_tool([sys.executable, "-c", _NEVER_ENDS], timeout_s=600.0)
    output = server.folder / "tools" / f"{number:03d}" / "output"
    wait_until(lambda: output.exists() and "workers" in output.read_text())
    pid = server.state.server_pid
    assert pid is not None
    os.kill(pid, 9)
    answer = answer_to(server, number)
    assert answer.error == "server-gone"
    wait_until(lambda: not any(map(is_alive, workers(output.read_text()))))


def test_one_that_nobody_waits_for_any_more_makes_room_for_the_next_question(
    server: Started,
) -> None:
    number = server.launched.run_tool([sys.executable, "-c", _NEVER_ENDS], timeout_s=600.0)
    output = server.folder / "tools" / f"{number:03d}" / "output"
    wait_until(lambda: output.exists() and "workers" in output.read_text())
    (response,) = server.ask(HttpRequest(id="a", path="/hello")).responses
    assert response.body == "hello"
    assert answer_to(server, number).error == "superseded"


def test_questions_can_be_asked_after_it(server: Started) -> None:
    run(server, "print('done')")
    (response,) = server.ask(HttpRequest(id="a", path="/hello")).responses
    assert response.body == "hello"
