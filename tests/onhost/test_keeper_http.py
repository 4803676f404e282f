"""Questions put to the server: at once, on time, answered whatever happens to it."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING

import pytest

from attempts import end, wait_until
from sglsweep.keeper_files import HttpRequest

if TYPE_CHECKING:
    from attempts import Attempts, Started


@pytest.fixture
def server(attempts: Attempts) -> Started:
    attempt = attempts.start("calm", env={"SECRET": "${TOKEN}"}, secrets={"TOKEN": "hf_q7Zz!x"})
    attempt.wait_for("ready to roll")
    return attempt


def test_a_question_is_answered_with_the_listener_it_was_put_to(server: Started) -> None:
    answer = server.ask(HttpRequest(id="a", path="/hello"))

    (response,) = answer.responses
    assert (response.status, response.body, response.error) == (200, "hello", None)
    assert response.is_ok
    assert answer.listener is not None
    assert answer.listener.is_ours
    assert answer.listener.pid == server.state.server_pid


def test_a_json_body_and_headers_arrive(server: Started) -> None:
    body = {"text": ["ü", None, 1.5]}
    request = HttpRequest(
        id="a",
        path="/echo",
        method="POST",
        body=body,
        headers={"Authorization": "Bearer ${TOKEN}"},
    )

    (response,) = server.ask(request).responses

    arrived = json.loads(response.body)
    assert json.loads(arrived["body"]) == body
    assert arrived["headers"]["content-type"] == "application/json"
    # The server got the value; what comes back is redacted again.
    assert arrived["headers"]["authorization"] == "Bearer ${TOKEN}"


def test_the_server_gets_the_value_of_a_secret_and_nobody_else_does(server: Started) -> None:
    (response,) = server.ask(HttpRequest(id="a", path="/secret")).responses

    assert response.body == "${TOKEN}"


def test_requests_are_in_flight_together(server: Started) -> None:
    requests = [HttpRequest(id=f"r{number}", path="/together") for number in range(8)]

    answer = server.ask(*requests, concurrency=8)

    assert [one.status for one in answer.responses] == [200] * 8
    assert [one.id for one in answer.responses] == [one.id for one in requests]


def test_no_more_are_in_flight_than_asked_for(server: Started) -> None:
    requests = [HttpRequest(id=f"r{number}", path="/events") for number in range(4)]

    answer = server.ask(*requests, concurrency=2)

    one, two, third, _ = sorted(answer.responses, key=lambda response: response.started_s)
    first_end = min(one.started_s + one.elapsed_s, two.started_s + two.elapsed_s)
    assert third.started_s >= first_end - 0.01


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/broken", 500)])
def test_the_body_of_a_refusal_is_kept(server: Started, path: str, status: int) -> None:
    (response,) = server.ask(HttpRequest(id="a", path=path)).responses

    assert response.status == status
    assert "error" in json.loads(response.body)
    assert not response.is_ok


def test_a_long_body_is_cut_and_marked(server: Started) -> None:
    (response,) = server.ask(HttpRequest(id="a", path="/big")).responses

    assert len(response.body) == 262_144
    assert response.is_truncated
    assert response.is_ok


def test_one_that_takes_too_long_times_out_and_the_others_do_not(server: Started) -> None:
    answer = server.ask(
        HttpRequest(id="slow", path="/never", timeout_s=0.5),
        HttpRequest(id="quick", path="/hello"),
    )

    slow, quick = answer.responses
    assert (slow.status, slow.error) == (None, "timeout")
    assert 0.4 < slow.elapsed_s < 5
    assert quick.is_ok


def test_the_whole_ask_has_a_limit_too(server: Started) -> None:
    answer = server.ask(
        HttpRequest(id="slow", path="/never", timeout_s=60),
        HttpRequest(id="behind", path="/hello"),
        concurrency=1,
        timeout_s=1,
    )

    assert [one.error for one in answer.responses] == ["timeout", "timeout"]


def test_a_stream_is_timed_event_by_event(server: Started) -> None:
    (response,) = server.ask(HttpRequest(id="a", path="/events", stream=True)).responses

    assert response.body.count("data:") == 4
    assert len(response.chunks) == 4
    assert response.chunks == tuple(sorted(response.chunks))
    assert response.chunks[-1] - response.chunks[0] > 0.15
    assert response.first_byte_s is not None
    assert response.first_byte_s <= response.chunks[0] < response.elapsed_s


@pytest.mark.parametrize("path", ["/half", "/reset"])
def test_a_connection_that_breaks_off_is_a_reset(server: Started, path: str) -> None:
    (response,) = server.ask(HttpRequest(id="a", path=path)).responses

    assert response.error == "reset"


def test_what_came_before_the_break_is_kept(server: Started) -> None:
    (response,) = server.ask(HttpRequest(id="a", path="/half")).responses

    assert (response.status, response.body) == (200, "half")


def test_nobody_listening_is_refused(attempts: Attempts) -> None:
    attempt = attempts.start("calm", "wait")

    answer = attempt.ask(HttpRequest(id="a", path="/hello"))

    assert answer.responses[0].error == "refused"
    assert answer.listener is None


def test_a_question_is_given_up_when_the_server_dies(server: Started) -> None:
    started = time.monotonic()
    number = server.launched.ask_http(
        [HttpRequest(id="a", path="/never")], concurrency=1, timeout_s=60
    )
    server.wait_for("request for never")

    end(server.state.server_pid)
    wait_until(lambda: server.launched.answer(number) is not None)

    answer = server.launched.answer(number)
    assert answer is not None
    assert answer.responses[0].error in {"server-gone", "reset"}
    assert time.monotonic() - started < 30


def test_a_server_that_dies_of_a_question_leaves_answer_and_status(server: Started) -> None:
    (response,) = server.ask(HttpRequest(id="a", path="/die")).responses

    assert response.error in {"server-gone", "reset"}
    assert server.wait_for_end().exit_status == -9


def test_stop_does_not_wait_for_a_question(server: Started) -> None:
    number = server.launched.ask_http(
        [HttpRequest(id="a", path="/never")], concurrency=1, timeout_s=600
    )
    server.wait_for("request for never")

    report = server.launched.stop(is_ready=True)

    answer = server.launched.answer(number)
    assert report.is_clean
    assert answer is not None
    assert answer.responses[0].error == "stopped"


def test_the_state_is_written_on_while_a_question_runs(server: Started) -> None:
    server.launched.ask_http([HttpRequest(id="a", path="/never")], concurrency=1, timeout_s=60)
    server.wait_for("request for never")

    beat = server.state.beat_at

    wait_until(lambda: server.state.beat_at > beat + 1.0, within_s=10)


def test_an_answer_of_a_stranger_on_the_port_is_told_as_such(attempts: Attempts) -> None:
    attempt = attempts.start("calm", "wait")
    with socket.create_server(("127.0.0.1", attempt.port)) as stranger:
        answer = attempt.ask(HttpRequest(id="a", path="/hello", timeout_s=0.5), timeout_s=5)

        assert stranger.getsockname()[1] == attempt.port
    assert answer.listener is not None
    assert not answer.listener.is_ours
    assert answer.listener.title


def test_proxies_of_the_environment_are_not_followed(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")

    assert attempt.ask(HttpRequest(id="a", path="/hello")).responses[0].is_ok


@pytest.mark.parametrize(
    "text", ["{}", "not json", '{"do": "dance"}', '{"do": "http", "requests": 1}']
)
def test_a_request_that_is_none_is_answered_and_the_next_one_worked_on(
    server: Started, text: str
) -> None:
    (server.folder / "ask" / "001.json").write_text(text)
    wait_until((server.folder / "answer" / "001.json").exists)

    answer = json.loads((server.folder / "answer" / "001.json").read_text())
    assert "not a request" in answer["error"]
    (server.folder / "ask" / "002.json").write_text(
        '{"do": "http", "requests": [{"id": "a", "path": "/hello"}]}'
    )
    wait_until((server.folder / "answer" / "002.json").exists)


def test_asking_what_has_ended_answers_with_that(attempts: Attempts) -> None:
    attempt = attempts.start("exit=1")
    attempt.wait_for_end()

    answer = attempt.ask(HttpRequest(id="a", path="/hello"))

    assert answer.error == "ended"
