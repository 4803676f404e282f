"""Stages and what first-serving may not spend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plan.outcomes import QUESTION, failed, served
from sglsweep.plan import strategies
from sglsweep.plan.decide import decide
from sglsweep.plan.stages import Budget, Spent, attempts_left, share_spent
from sglsweep.plan.strategy import Finish, Launch

STAGES = ("first-serving", "explain", "fastest")
CELLS = [(0, 0), (1, 1), (2, 0), (0, 1), (1, 0), (2, 1)]


def goals(*names: str, budget: Budget, fails: int, hours: float = 0.0) -> Launch | Finish:
    outcomes = [
        failed(n, *codes, cause=f"cause-{n}") for n, codes in enumerate(CELLS[:fails], start=1)
    ]
    asked = replace(
        QUESTION,
        goals=names,
        budget=budget,
        outcomes=outcomes,
        spent_hours=hours,
        strategy=lambda goal: strategies.make(goal=goal),
    )
    return decide(asked).step


def test_first_serving_searches_as_long_as_its_share_lasts() -> None:
    step = goals(*STAGES, budget=Budget(attempts=8, keep=0.5), fails=3)
    assert isinstance(step, Launch)
    assert "chance to serve" in step.why
    assert "kept" not in step.why


def test_what_is_kept_goes_into_telling_what_fails_where_nothing_serves() -> None:
    step = goals(*STAGES, budget=Budget(attempts=8, keep=0.5), fails=4)
    assert isinstance(step, Launch)
    assert step.why.startswith(
        "first-serving has spent its 4 of 8 attempts (50 % is kept for explain and fastest); to "
        "tell what fails: "
    )


@pytest.mark.parametrize(("keep", "attempts", "most"), [(0.8, 20, 4), (0.9, 10, 1), (0.3, 10, 7)])
def test_a_share_of_whole_attempts_is_not_one_less(keep: float, attempts: int, most: int) -> None:
    budget = Budget(attempts=attempts, keep=keep)
    assert share_spent(STAGES, budget, Spent(most - 1, 0.0)) == ""
    assert f"its {most} of {attempts} attempts" in share_spent(STAGES, budget, Spent(most, 0.0))


def test_hours_are_kept_like_attempts() -> None:
    budget = Budget(hours=4.0, keep=0.25)
    assert isinstance(goals(*STAGES, budget=budget, fails=2, hours=2.9), Launch)
    step = goals(*STAGES, budget=budget, fails=2, hours=3.0)
    assert "first-serving has spent its 3 of 4 hours" in step.why


def test_a_share_that_is_asked_for_is_kept_even_from_a_search_that_found_nothing() -> None:
    budget = Budget(attempts=8, keep=0.5)
    step = goals("first-serving", "fastest", budget=budget, fails=4)
    assert isinstance(step, Finish)
    assert step.why.startswith("first-serving has spent its 4 of 8 attempts (50 % is kept for")


@pytest.mark.parametrize(
    ("names", "spent", "is_over"),
    [
        (("first-serving", "explain"), 6, True),
        (("first-serving", "explain"), 5, False),
        # Without a serving cell nothing can be the fastest: the search goes on.
        (("first-serving", "fastest"), 7, False),
        (("first-serving",), 7, False),
        (("map",), 7, False),
        (("explain", "first-serving"), 7, False),
    ],
)
def test_a_quarter_is_kept_unasked_where_a_later_goal_can_use_it(
    names: tuple[str, ...],
    spent: int,
    is_over: bool,  # noqa: FBT001 - pytest passes it by name
) -> None:
    assert bool(share_spent(names, Budget(attempts=8), Spent(spent, 0.0))) is is_over


def test_nothing_is_kept_where_the_file_says_so() -> None:
    assert not share_spent(STAGES, Budget(attempts=8, keep=0.0), Spent(7, 0.0))


def test_a_first_attempt_is_always_made() -> None:
    assert not share_spent(STAGES, Budget(attempts=1, keep=0.9), Spent(0, 0.0))


def test_once_something_serves_the_next_goals_may_spend_all() -> None:
    outcomes = [failed(1, 0, 0), failed(2, 1, 0), failed(3, 2, 0), served(4, 2, 1)]
    asked = replace(
        QUESTION,
        goals=("first-serving", "explain"),
        budget=Budget(attempts=5, keep=0.5),
        outcomes=outcomes,
        strategy=lambda goal: strategies.make(goal=goal),
    )
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert "was that change needed" in step.why


def test_attempts_left_are_by_whichever_limit_comes_first() -> None:
    took = [
        replace(failed(n, 0, 0), timings=replace(failed(1, 0, 0).timings, total_s=1800.0))
        for n in (1, 2)
    ]
    assert attempts_left(Budget(attempts=9), took, Spent(2, 1.0)) == 7
    assert attempts_left(Budget(attempts=9, hours=2.0), took, Spent(2, 1.0)) == 2
    assert attempts_left(Budget(), took, Spent(2, 1.0)) is None
    assert attempts_left(Budget(hours=1.0), took, Spent(3, 1.5)) == 0
