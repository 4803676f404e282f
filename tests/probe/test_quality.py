"""Questions of quality: what is asked, and what counts as right."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sglsweep.attempt import QualityAnswer, StepState
from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.proof import Asked
from sglsweep.probe.quality import (
    HIDDEN_NUMBER,
    NEEDLE,
    USUAL_QUESTIONS,
    Questioning,
    holds,
)
from sglsweep.probe.target import QualityQuestion, QualitySettings, Target

if TYPE_CHECKING:
    from sglsweep.probe.steps import ProofStepPlan

TARGET = Target(context=32_768, kv_tokens=100_000, max_running=64, tool_parser="glm45")
TWO_PLUS_TWO = QualityQuestion("What is 2 + 2?", ("4", "four"))


def chat_body(
    text: str | None, *, calls: list[Any] | None = None, finish: str = "stop", prompt: int = 100
) -> str:
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    usage = {"prompt_tokens": prompt, "completion_tokens": 5}
    return json.dumps({
        "object": "chat.completion",
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": usage,
    })  # fmt: skip


def ask_all(questioning: Questioning, bodies: dict[str, str]) -> list[ProofStepPlan]:
    """Answer each request by its id, else rightly empty; returns what was asked."""
    had = []
    while (plan := questioning.next()) is not None:
        had.append(plan)
        responses = [
            HttpResponse(id=r.id, status=200, body=bodies.get(r.id, chat_body("no idea")))
            for r in plan.requests
        ]
        questioning.judge(plan, Asked(responses=responses))
    return had


def only(text: str | None, finish: str = "stop") -> QualityAnswer:
    questioning = Questioning(TARGET, QualitySettings(questions=(TWO_PLUS_TWO,)))
    ask_all(questioning, {"q1": chat_body(text, finish=finish)})
    (answer,) = questioning.quality.answers
    return answer


@pytest.mark.parametrize("text", ["4", "It is 4.", "Four!", "<think>5? no</think>The answer: 4"])
def test_a_right_answer_has_one_of_the_words(text: str) -> None:
    assert only(text).right is True


@pytest.mark.parametrize("text", ["14", "It is 5.", "", None, "<think>4</think>It is 5"])
def test_a_word_inside_another_or_inside_a_thought_is_not_right(text: str | None) -> None:
    assert only(text).right is False


@pytest.mark.parametrize(
    ("text", "word", "is_held"),
    [
        ("\u9996\u90fd\u662f\u4e1c\u4eac\u3002", "\u4e1c\u4eac", True),
        ("\u7b49\u4e8e43\u3002", "43", True),
        ("\u7b49\u4e8e143\u3002", "43", False),
        ("Stra\u00dfe", "stra\u00dfe", True),
        (
            "\u041f\u0430\u0440\u0438\u0436\u0430\u043d\u0435",
            "\u041f\u0430\u0440\u0438\u0436",
            False,
        ),
        ("snake_43", "43", False),
        ("143, no: 43", "43", True),
    ],
)
def test_a_word_ends_where_its_script_ends_words(text: str, word: str, is_held: bool) -> None:  # noqa: FBT001 - a case's answer
    assert holds(text, (word,)) is is_held


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"choices": []}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": ["4"]}}]}',
        '{"choices": [{"message": {"tool_calls": ["4"]}}]}',
    ],
)
def test_an_answer_that_cannot_be_read_is_not_judged(body: str) -> None:
    questioning = Questioning(TARGET, QualitySettings(questions=(TWO_PLUS_TWO,)))
    ask_all(questioning, {"q1": body})
    (answer,) = questioning.quality.answers
    assert (answer.right, answer.detail) == (None, "the answer cannot be read")


def test_an_answer_that_was_cut_off_is_not_called_wrong() -> None:
    answer = only("<think>Let me see", finish="length")
    assert (answer.right, answer.detail) == (None, "unfinished after 5 tokens")
    assert only("It is 4, because", finish="length").right is True


def test_a_refused_question_is_not_judged_and_says_why() -> None:
    questioning = Questioning(
        TARGET, QualitySettings(questions=(TWO_PLUS_TWO, QualityQuestion("3 + 3?", ("6",))))
    )
    refusal = '{"object": "error", "message": "no such role", "code": 400}'
    plan = questioning.next()
    assert plan is not None
    good = HttpResponse(id="q1", status=200, body=chat_body("4"))
    bad = HttpResponse(id="q2", status=400, body=refusal)
    questioning.judge(plan, Asked(responses=[good, bad]))
    assert [a.right for a in questioning.quality.answers] == [True, None]
    assert "no such role" in questioning.quality.answers[1].detail


def test_without_questions_of_its_own_a_dozen_are_asked() -> None:
    questioning = Questioning(TARGET, QualitySettings())
    (plan,) = ask_all(questioning, {})
    assert len(plan.requests) == len(USUAL_QUESTIONS) == 12
    assert questioning.step.state is StepState.SUSPECT
    assert questioning.step.detail == "0 of 12 right"


def test_every_usual_question_is_right_when_answered_with_its_own_word() -> None:
    for question in USUAL_QUESTIONS:
        assert holds(f"It is {question.contains[0]}.", question.contains)
        assert not holds(question.prompt, question.contains), question.prompt


def test_a_needle_is_hidden_at_three_depths_of_the_stated_context() -> None:
    questioning = Questioning(TARGET, QualitySettings(questions=(TWO_PLUS_TWO,), needle=8192))
    bodies = {
        "size": chat_body("x", prompt=150),  # 600 letters: four for each token
        "needle-10": chat_body(HIDDEN_NUMBER, prompt=7800),
        "needle-50": chat_body(f"It is {HIDDEN_NUMBER}.", prompt=7800),
        "needle-90": chat_body("It is 12345.", prompt=7800),
    }
    *_, plan = ask_all(questioning, bodies)
    places = []
    for request in plan.requests:
        assert isinstance(request.body, dict)
        text = request.body["messages"][0]["content"]
        assert 4 * 7000 < len(text) < 4 * 8192
        places.append(round(text.index(NEEDLE) / len(text), 1))
    assert places == [0.1, 0.5, 0.9]
    needles = [a for a in questioning.quality.answers if a.kind == "needle"]
    assert [a.right for a in needles] == [True, True, False]
    assert needles[0].detail == "7,800 tokens"
    assert len(needles[0].prompt) < 100


def test_a_needle_longer_than_a_request_may_be_is_not_asked_and_says_so() -> None:
    small = replace(TARGET, context=4096)
    questioning = Questioning(small, QualitySettings(needle=8192))
    ask_all(questioning, {"size": chat_body("x", prompt=150)})
    assert not [a for a in questioning.quality.answers if a.kind == "needle"]
    assert questioning.quality.note == "needle: 8,192 tokens asked for, a request holds 4,088"


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(("calls", "right"), [
    ([call("get_weather", '{"city": "Paris"}')], True),
    ([call("get_weather", '{"city": "Paris, France"}')], True),
    ([call("get_weather", '{"city": "Rome"}')], False),
    ([call("get_weather", "{broken")], False),
    ([call("search", '{"city": "Paris"}')], False),
    ([], False),
])  # fmt: skip
def test_a_tool_call_must_name_the_tool_and_the_city(calls: list[Any], *, right: bool) -> None:
    questioning = Questioning(TARGET, QualitySettings(questions=(TWO_PLUS_TWO,), tools=True))
    ask_all(questioning, {"tool-call": chat_body(None, calls=calls)})
    found = {a.id: a.right for a in questioning.quality.answers}
    assert found["tool-call"] is right


def test_a_call_where_none_is_wanted_is_wrong() -> None:
    questioning = Questioning(TARGET, QualitySettings(questions=(TWO_PLUS_TWO,), tools=True))
    body = chat_body("5", calls=[call("get_weather", '{"city": "Paris"}')])
    ask_all(questioning, {"tool-unneeded": body})
    assert {a.id: a.right for a in questioning.quality.answers}["tool-unneeded"] is False


def test_without_a_parser_no_tool_call_is_asked_for() -> None:
    questioning = Questioning(replace(TARGET, tool_parser=None), QualitySettings(tools=True))
    ask_all(questioning, {})
    assert questioning.quality.note == "tool calls: no --tool-call-parser"
    assert not [a for a in questioning.quality.answers if "tool" in a.kind]


def test_random_weights_are_asked_nothing() -> None:
    questioning = Questioning(replace(TARGET, has_random_weights=True), QualitySettings())
    assert questioning.next() is None
    assert questioning.step.state is StepState.NOT_APPLICABLE
    assert questioning.step.detail == "the weights are random"


def test_a_server_that_dies_of_a_question_has_failed_at_this_step() -> None:
    questioning = Questioning(TARGET, QualitySettings())
    plan = questioning.next()
    assert plan is not None
    dead = [HttpResponse(id=r.id, error="reset") for r in plan.requests]
    questioning.judge(plan, Asked(responses=dead, server_alive=False))
    assert questioning.next() is None
    assert (questioning.step.name, questioning.step.state) == ("quality", StepState.FAILED)
