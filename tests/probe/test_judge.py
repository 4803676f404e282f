from __future__ import annotations

import pytest

from probe.recording import CASES, Case, load
from sglsweep.attempt import StepState
from sglsweep.probe.proof import prove


def _case(path: str) -> Case:
    return load(CASES / path)


@pytest.mark.parametrize("name", sorted(p.name for p in CASES.glob("*.json")))
def test_a_server_is_judged_by_its_answers(name: str) -> None:
    case = _case(name)
    proof = prove(case.target, case.ask).proof
    states = {s.name: str(s.state) for s in proof.steps}
    wanted = case.expected

    assert proof.holds is wanted["holds"], states
    failed = proof.first_failure
    assert (failed.name if failed else None) == wanted["failed"], states
    for step, state in wanted.get("states", {}).items():
        assert states[step] == state, step
    for step in proof.steps:
        assert wanted.get("detail_of", {}).get(step.name, "") in step.detail
    if failed is not None:
        assert failed.verdict == wanted["verdict"]
        assert failed.cause == wanted.get("cause")
        assert wanted.get("detail", "") in failed.detail
        assert wanted.get("evidence", "") in failed.evidence


@pytest.mark.parametrize("name", sorted(p.name for p in CASES.glob("*.json")))
def test_nothing_is_asked_after_a_failure(name: str) -> None:
    case = _case(name)
    states = [s.state for s in prove(case.target, case.ask).proof.steps]
    if StepState.FAILED in states:
        after = states[states.index(StepState.FAILED) + 1 :]
        assert set(after) <= {StepState.NOT_RUN}


def test_the_proof_tells_the_speed_of_its_load() -> None:
    case = _case("healthy.json")
    proof = prove(case.target, case.ask).proof
    assert proof.concurrency == 8
    assert proof.tokens_per_s is not None
    load_step = next(s for s in proof.steps if s.name == "load")
    assert load_step.numbers["ttft_p50_s"] <= load_step.numbers["ttft_p99_s"]
    assert load_step.numbers["tpot_p50_s"] > 0


def test_a_server_too_small_for_the_need_keeps_its_speed_on_record() -> None:
    case = _case("need-exceeds-kv-pool.json")
    proof = prove(case.target, case.ask).proof
    assert proof.tokens_per_s is not None
    assert proof.first_failure is not None
    assert "mem-fraction-static" in proof.first_failure.next_step


def test_what_the_server_says_of_itself_is_kept_without_secrets() -> None:
    case = _case("healthy.json")
    words = prove(case.target, case.ask).server_info
    assert words["max_total_num_tokens"] == 8192
    assert words["version"] == "0.5.23"
    assert not [name for name in words if "key" in name]
