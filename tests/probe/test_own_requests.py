"""The user's own requests as a step of the proof."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, StepState
from sglsweep.keeper_files import HttpRequest, HttpResponse
from sglsweep.probe import steps
from sglsweep.probe.judge import judge
from sglsweep.probe.plan import plan
from sglsweep.probe.refusals import Context
from sglsweep.probe.target import ProbeSettings, from_launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = (
    HttpRequest(id="1", path="/generate", method="POST", body={"input_ids": [5, 7]}),
    HttpRequest(id="2 health", path="/health_generate"),
)
TEXT = json.dumps(
    {
        "text": "one two three",
        "output_ids": [4, 9, 12, 3],
        "meta_info": {"prompt_tokens": 2, "completion_tokens": 4},
    }
)


def asked(responses: Sequence[HttpResponse], own: tuple[HttpRequest, ...] = OWN) -> ProofStep:
    target = from_launch({}, settings=ProbeSettings(requests=own, api_key="${KEY}"))
    step = next(s for s in plan(target) if s.name == steps.REQUESTS)
    return judge(step, responses, Context(target=target))


def test_requests_carry_the_servers_api_key() -> None:
    target = from_launch({}, settings=ProbeSettings(requests=OWN, api_key="${KEY}"))
    step = next(s for s in plan(target) if s.name == steps.REQUESTS)
    assert [r.headers["Authorization"] for r in step.requests] == ["Bearer ${KEY}"] * 2
    assert [r.body for r in step.requests] == [r.body for r in OWN]


def test_answered_requests_pass_whatever_they_are_about() -> None:
    step = asked(
        [HttpResponse(id="1", status=200, body=TEXT), HttpResponse(id="2 health", status=200)]
    )
    assert (step.state, step.detail) == (StepState.OK, "2 of 2 answered")


def test_a_request_that_the_server_refuses_is_no_fault_of_the_server() -> None:
    refused = HttpResponse(id="2 health", status=400, body='{"error": {"message": "too long"}}')
    step = asked([HttpResponse(id="1", status=200, body=TEXT), refused])
    assert step.state is StepState.SUSPECT
    assert step.detail == "1 of 2 refused; request 2 health: HTTP 400"


def test_a_request_that_kills_the_server_leaves_the_verdict_to_the_log() -> None:
    step = asked([HttpResponse(id="1", error="reset")])
    assert (step.state, step.verdict) == (StepState.FAILED, None)
    assert step.detail == "died in your own requests: reset"


def test_a_server_error_is_a_crash() -> None:
    gone = HttpResponse(id="1", status=500, body="Internal Server Error")
    step = asked([gone, HttpResponse(id="2 health", status=200)])
    assert (step.state, step.verdict) == (StepState.FAILED, Verdict.CRASH)


def test_without_requests_there_is_no_such_step() -> None:
    assert asked([], own=()).state is StepState.NOT_APPLICABLE
