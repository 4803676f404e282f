"""Launches that decide the user's hypotheses."""

from __future__ import annotations

from plan.history import cell, failed, product_of, served
from sglsweep.plan import strategies
from sglsweep.plan.hypotheses import Claim, is_decided, next_decision
from sglsweep.plan.strategy import Launch
from sglsweep.verdict import Phase

GRAPHS = Claim("graphs", {"disable-cuda-graph": (True,)})


def test_a_failed_attempt_is_launched_with_the_change_of_the_claim() -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 1, 1, 0, 0, phase=Phase.DECODE)]
    step = next_decision(product_of(), history, [GRAPHS])
    assert step == Launch(
        cell(1, 1, 0, 1), "decides graphs: attempt 2 with disable-cuda-graph=true"
    )


def test_an_attempt_that_has_it_is_launched_without() -> None:
    step = next_decision(product_of(), [served(1, 1, 1, 0, 1)], [GRAPHS])
    assert step is not None
    assert step.cell == cell(1, 1, 0, 0)


def test_a_pair_that_differs_in_just_this_decides_it() -> None:
    history = [failed(1, 0, 0, 0, 0), served(2, 0, 0, 0, 1)]
    assert is_decided(GRAPHS, history)
    assert next_decision(product_of(), history, [GRAPHS]) is None


def test_a_pair_that_differs_in_more_decides_nothing() -> None:
    assert not is_decided(GRAPHS, [failed(1, 0, 0, 0, 0), served(2, 1, 0, 0, 1)])


def test_a_claim_about_what_is_not_in_the_matrix_asks_for_nothing() -> None:
    unknown = Claim("tp", {"tp": (4,)})
    assert next_decision(product_of(), [failed(1, 0, 0, 0, 0)], [unknown]) is None


def test_goal_explain_decides_claims_before_it_takes_changes_back() -> None:
    history = [failed(1, 0, 0, 0, 0), served(2, 1, 1, 0, 0)]
    strategy = strategies.make("adaptive", goal="explain", claims=[GRAPHS])
    step = strategy.decide(product_of(), history)
    assert isinstance(step, Launch)
    assert step.why.startswith("decides graphs")
