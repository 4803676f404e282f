"""The keeper and the real SGLang, on this machine's CPU."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attempts import Attempts, Started, is_alive, marked_by, wait_until
from sglsweep.keeper_files import HttpRequest
from sshd import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.timeout(480)]

READY = "The server is fired up and ready to roll!"
# 13 s on a quiet machine; with every core busy ten times that.
READY_S = 360.0


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[Attempts]:
    made = Attempts(tmp_path)
    yield made
    made.end_all()


def start(attempts: Attempts, python: Path, model: Path) -> Started:
    port = free_port()
    argv = (
        *(str(python), "-m", "sglang.launch_server", "--model-path", str(model)),
        *("--device", "cpu", "--port", str(port), "--max-total-tokens", "8192"),
        "--sleep-on-idle",
    )
    return attempts.start(argv=argv, port=port, graces={}, deadline_s=450.0)


def pid_of(attempt: Started, title: str) -> int:
    def found() -> list[int]:
        return [one.pid for one in attempt.state.processes if one.title.startswith(title)]

    wait_until(lambda: bool(found()), READY_S)
    return found()[0]


def test_a_server_is_asked_and_stopped_without_a_trace(
    attempts: Attempts, sglang_python: Path, tiny_gpt2: Path
) -> None:
    attempt = start(attempts, sglang_python, tiny_gpt2)
    wait_until(lambda: READY in attempt.log or attempt.state.has_ended, READY_S)
    assert READY in attempt.log
    tree = [one.pid for one in attempt.state.processes]
    scheduler = pid_of(attempt, "sglang::scheduler")
    body = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 16}}

    answer = attempt.ask(
        HttpRequest(id="whole", path="/generate", method="POST", body=body),
        HttpRequest(id="stream", path="/generate", method="POST", stream=True,
                    body={**body, "stream": True}),
        HttpRequest(id="bad", path="/generate", method="POST", body={}),
        timeout_s=60,
    )  # fmt: skip
    is_marked = attempt.marker.encode() in Path(f"/proc/{scheduler}/environ").read_bytes()
    report = attempt.launched.stop(is_ready=True)

    whole, stream, bad = answer.responses
    assert answer.listener is not None
    assert answer.listener.is_ours
    assert json.loads(whole.body)["meta_info"]["completion_tokens"] == 16
    assert len(stream.chunks) > 2
    assert bad.status == 400
    assert bad.body
    assert is_marked
    assert [(one.signal, one.to) for one in report.signals] == [("TERM", "parent")]
    assert attempt.state.exit_status == 0
    assert report.is_clean
    assert not [pid for pid in tree if is_alive(pid)]


def test_a_loading_server_is_stopped_with_its_ranks(
    attempts: Attempts, sglang_python: Path, tiny_gpt2: Path
) -> None:
    attempt = start(attempts, sglang_python, tiny_gpt2)
    scheduler = pid_of(attempt, "sglang::scheduler")
    assert READY not in attempt.log

    report = attempt.launched.stop(is_ready=False)

    assert report.is_clean
    assert not is_alive(scheduler)
    assert marked_by(attempt.marker) == []


def test_a_killed_rank_takes_its_server_along(
    attempts: Attempts, sglang_python: Path, tiny_gpt2: Path
) -> None:
    attempt = start(attempts, sglang_python, tiny_gpt2)
    wait_until(lambda: READY in attempt.log or attempt.state.has_ended, READY_S)

    os.kill(pid_of(attempt, "sglang::scheduler"), signal.SIGKILL)

    state = attempt.wait_for_end(within_s=90)
    assert (state.end_reason, state.exit_status) == ("exited", -signal.SIGKILL)
    assert marked_by(attempt.marker) == []
