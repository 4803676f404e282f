from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglsweep.probe import steps
from sglsweep.probe.plan import plan
from sglsweep.probe.proof import ProbeSettings, ProofStepPlan, from_launch
from sglsweep.probe.target import Need, Target
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.keeper_files import HttpRequest

COMMON = Target(
    version="0.5.23", context=65_536, chunk=8192, kv_tokens=270_000, max_running=64, vocab=150_000
)


def step_of(target: Target, name: str) -> ProofStepPlan:
    return next(s for s in plan(target) if s.name == name)


def body_of(request: HttpRequest) -> dict[str, Any]:
    assert isinstance(request.body, dict)
    return request.body


targets = st.builds(
    Target,
    version=st.sampled_from([None, "0.3.6", "0.4.6.post5", "0.5.9", "0.5.23"]),
    context=st.none() | st.integers(32, 30_000),
    chunk=st.none() | st.sampled_from([-1, 0, 16, 512, 8192]),
    kv_tokens=st.none() | st.integers(32, 60_000),
    dp_size=st.integers(1, 8),
    page_size=st.sampled_from([1, 16, 64]),
    max_running=st.none() | st.integers(1, 4096),
    vocab=st.none() | st.integers(4, 200_000),
    special_ids=st.frozensets(st.integers(0, 300), max_size=5),
    has_tokenizer=st.booleans(),
    is_generation=st.booleans(),
    need=st.builds(Need, context=st.none() | st.integers(1, 5000), concurrent=st.integers(1, 8)),
)


@given(targets)
def test_no_request_is_longer_than_the_server_takes(target: Target) -> None:
    for step in plan(target):
        for request in step.requests:
            ids = body_of(request).get("input_ids") if request.body else None
            if ids is None or target.longest is None:
                continue
            tokens = body_of(request)["sampling_params"]["max_new_tokens"]
            assert len(ids) + tokens <= target.longest, step.name


@given(targets)
def test_no_prompt_holds_an_id_that_the_model_lacks(target: Target) -> None:
    # 0.5.23 on CPU died of one: "index out of range in self" in the scheduler.
    end = 256 if target.vocab is None else target.vocab
    for step in plan(target):
        for request in step.requests:
            ids = body_of(request).get("input_ids", []) if request.body else []
            assert all(0 <= i < end for i in ids)


@given(targets)
def test_every_step_says_what_it_asks_or_why_it_does_not(target: Target) -> None:
    for step in plan(target):
        assert step.says
        assert bool(step.requests) + bool(step.not_applicable) + bool(step.unmet) == 1
        assert step.concurrency >= 1
        assert len({r.id for r in step.requests}) == len(step.requests)
        for request in step.requests:
            assert request.timeout_s is not None
            assert request.timeout_s < step.timeout_s
            json.dumps(request.as_json())


@given(targets)
def test_prompts_of_a_sampled_step_differ(target: Target) -> None:
    if (target.vocab or 999) < 100 or (target.longest or 999) < 60:
        return
    for step in plan(target):
        if step.is_sampled:
            prompts = [
                json.dumps(body_of(r).get("input_ids") or body_of(r)["text"])
                for r in step.requests
            ]
            assert len(set(prompts)) == len(prompts)


def test_the_gentle_questions_come_first_and_the_need_last() -> None:
    names = [s.name for s in plan(COMMON)]
    assert names[:4] == [steps.ANSWERS, steps.SERVER_INFO, steps.GREEDY, steps.SAMPLED]
    assert names[-1] == steps.NEED
    assert names.index(steps.CHUNKED_PREFILL) > names.index(steps.TWO_AT_ONCE)


def test_all_that_a_common_server_can_be_asked_is_asked() -> None:
    skipped = {s.name for s in plan(COMMON) if s.not_applicable}
    assert skipped == {steps.TOOLS, steps.KNOWN_ANSWERS, steps.REQUESTS, steps.NEED}


def test_a_chunk_longer_than_the_context_is_said_to_be_why() -> None:
    step = step_of(replace(COMMON, context=2048), steps.CHUNKED_PREFILL)
    assert step.not_applicable == "a request holds 2,040 tokens, one chunk is 8,192"


def test_the_prompt_is_longer_than_one_chunk_and_says_so() -> None:
    step = step_of(COMMON, steps.CHUNKED_PREFILL)
    assert len(body_of(step.requests[0])["input_ids"]) == 9216
    assert step.says == "a prefill of 9,216 tokens (one chunk is 8,192)"


def test_the_long_context_is_a_share_of_what_the_pool_holds() -> None:
    step = step_of(COMMON, steps.LONG_CONTEXT)
    assert step.says == "a prompt of 32,764 tokens (12 % of the KV pool)"


def test_more_than_forty_tokens_are_decoded() -> None:
    request = step_of(COMMON, steps.LONG_DECODE).requests[0]
    assert body_of(request)["sampling_params"]["max_new_tokens"] > 40


def test_the_batch_is_as_large_as_the_server_runs_at_once() -> None:
    assert step_of(replace(COMMON, max_running=24), steps.BATCH).concurrency == 24
    assert step_of(replace(COMMON, max_running=4), steps.BATCH).not_applicable
    assert step_of(replace(COMMON, max_running=4), steps.LOAD).concurrency == 4


def test_a_time_out_waits_until_the_servers_own_watchdog_has_spoken() -> None:
    step = step_of(replace(COMMON, watchdog_s=900.0), steps.TWO_AT_ONCE)
    assert all((r.timeout_s or 0) > 900.0 for r in step.requests)


@pytest.mark.parametrize(
    ("version", "paths"),
    [
        ("0.4.6.post5", ["/get_model_info", "/get_server_info"]),
        ("0.5.4", ["/get_model_info", "/get_server_info"]),
        ("0.5.9", ["/model_info", "/server_info"]),
        (None, ["/model_info", "/server_info"]),
    ],
)
def test_endpoints_are_those_of_the_version(version: str | None, paths: list[str]) -> None:
    target = replace(COMMON, version=version)
    asked = [step_of(target, n).requests[0].path for n in (steps.ANSWERS, steps.SERVER_INFO)]
    assert asked == paths


def test_where_answers_hold_no_ids_logprobs_are_asked_for() -> None:
    old = step_of(replace(COMMON, version="0.4.6.post5"), steps.SAMPLED).requests[0]
    new = step_of(COMMON, steps.SAMPLED).requests[0]
    assert body_of(old)["return_logprob"] is True
    assert "return_logprob" not in body_of(new)


def test_the_api_key_goes_along_by_its_name() -> None:
    target = from_launch({}, settings=ProbeSettings(api_key="${SGLANG_API_KEY}"))
    for step in plan(target):
        for request in step.requests:
            assert request.headers == {"Authorization": "Bearer ${SGLANG_API_KEY}"}


def test_a_parser_that_a_flag_names_is_exercised() -> None:
    step = step_of(replace(COMMON, tool_parser="glm47", reasoning_parser="glm45"), steps.TOOLS)
    assert step.says == "the parsers glm47, glm45"
    assert body_of(step.requests[0])["tools"]


def test_a_server_without_tokenizer_is_asked_in_ids_only() -> None:
    for step in plan(replace(COMMON, has_tokenizer=False)):
        for request in step.requests:
            assert request.body is None or "input_ids" in body_of(request)


def test_the_need_counts_the_pools_of_all_data_parallel_ranks() -> None:
    target = replace(COMMON, kv_tokens=100_000, need=Need(context=65_536, concurrent=4))
    assert step_of(target, steps.NEED).unmet_verdict is Verdict.OOM
    assert not step_of(replace(target, dp_size=4), steps.NEED).unmet


def test_the_need_is_asked_for_real_where_arithmetic_allows_it() -> None:
    target = replace(COMMON, need=Need(context=65_536, concurrent=4))
    step = step_of(target, steps.NEED)
    assert step.concurrency == 4
    assert [len(body_of(r)["input_ids"]) for r in step.requests] == [65_512] * 4
