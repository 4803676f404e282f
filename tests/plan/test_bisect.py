"""From a failing attempt to the smallest set of flags that makes the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plan.history import AXES, cell, failed, served
from sglsweep.matrix import Cell
from sglsweep.plan.bisect import Case, Culprit, nearest_serving, next_step
from sglsweep.plan.strategy import Evidence, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable


BAD, GOOD = (0, 0, 0, 0), (1, 1, 1, 1)


def bisect(
    history: list[Evidence], outcome: Callable[[Cell, int], Evidence]
) -> tuple[Culprit, list[Cell]]:
    """Launch what is asked for until there is a culprit."""
    bad, good = history[0], history[1]
    launched: list[Cell] = []
    while len(launched) < 20:
        step = next_step(Case(AXES, bad, good, history))
        if isinstance(step, Culprit):
            return step, launched
        launched.append(step.cell)
        history.append(outcome(step.cell, len(history) + 1))
    raise AssertionError("no end")


def codes(one: Cell) -> list[int]:
    return [list(axis.values).index(one.get(axis.name)) for axis in AXES]


def world(*faulty: int) -> Callable[[Cell, int], Evidence]:
    """A world in which a cell fails that has BAD's values on all of these axes."""

    def outcome(one: Cell, number: int) -> Evidence:
        found = codes(one)
        if all(found[axis] == BAD[axis] for axis in faulty):
            return failed(number, *found)
        return served(number, *found)

    return outcome


def names(*axes: int) -> set[str]:
    return {AXES[axis].name for axis in axes}


def test_one_differing_flag_needs_no_launch() -> None:
    culprit, launched = bisect([failed(1, 0, 0, 0, 0), served(2, 1, 0, 0, 0)], world(0))
    assert launched == []
    assert set(culprit.values) == {"attention-backend"}
    assert (culprit.serving, culprit.failing, culprit.is_proven) == (2, 1, True)
    assert culprit.why == (
        'attention-backend="flashinfer" makes the difference: 2 serves, 1 fails, the rest being '
        "equal"
    )


def test_every_single_flag_is_found_within_four_launches() -> None:
    for axis in range(4):
        culprit, launched = bisect([failed(1, *BAD), served(2, *GOOD)], world(axis))
        assert set(culprit.values) == names(axis)
        assert culprit.is_proven
        assert len(launched) <= 4


def test_two_flags_that_fail_only_together_are_both_named() -> None:
    culprit, launched = bisect([failed(1, *BAD), served(2, *GOOD)], world(1, 3))
    assert set(culprit.values) == names(1, 3)
    assert culprit.is_proven
    assert len(launched) <= 6
    assert "together make the difference" in culprit.why


def test_a_right_blame_saves_launches() -> None:
    bad = failed(1, *BAD, blames=("moe-runner-backend",))
    culprit, launched = bisect([bad, served(2, *GOOD)], world(2))
    assert set(culprit.values) == names(2)
    assert len(launched) == 1


def test_a_wrong_blame_costs_launches_but_not_the_truth() -> None:
    bad = failed(1, *BAD, blames=("moe-runner-backend",))
    culprit, _ = bisect([bad, served(2, *GOOD)], world(0))
    assert set(culprit.values) == names(0)


def test_what_the_run_knows_already_is_not_launched_again() -> None:
    history = [
        failed(1, *BAD),
        served(2, *GOOD),
        failed(3, 0, 1, 1, 1),
    ]
    culprit, launched = bisect(history, world(0))
    assert launched == []
    assert set(culprit.values) == names(0)


def test_a_later_failure_of_another_cause_counts_as_past_the_fault() -> None:
    def outcome(one: Cell, number: int) -> Evidence:
        found = codes(one)
        if found[0] == 0:
            return failed(number, *found)
        if found[1] == 0:
            return failed(number, *found, cause="oom-runtime", phase=Phase.DECODE)
        return served(number, *found)

    culprit, _ = bisect([failed(1, *BAD), served(2, *GOOD)], outcome)
    assert set(culprit.values) == names(0)
    assert culprit.is_proven


def test_an_earlier_failure_of_another_cause_decides_nothing() -> None:
    def outcome(one: Cell, number: int) -> Evidence:
        found = codes(one)
        if found not in ([*BAD], [*GOOD]):
            return failed(number, *found, cause="bad-kernel", phase=Phase.ARGS)
        return world(0)(one, number)

    culprit, _ = bisect([failed(1, *BAD), served(2, *GOOD)], outcome)
    assert not culprit.is_proven
    assert "as far as launches could tell" in culprit.why


def test_a_third_value_proves_where_the_good_value_runs_into_another_fault() -> None:
    def outcome(one: Cell, number: int) -> Evidence:
        found = codes(one)
        if found[0] == 1 and found[1:] != [1, 1, 1]:
            return failed(number, *found, cause="bad-kernel", phase=Phase.ARGS)
        return world(0)(one, number)

    culprit, launched = bisect([failed(1, *BAD), served(2, *GOOD)], outcome)
    assert set(culprit.values) == names(0)
    assert culprit.is_proven
    assert len(launched) <= 6


def third_values_are_as_bad(faulty: int) -> Callable[[Cell, int], Evidence]:
    """A world in which only GOOD's value of one axis serves: null resolves to the failing one."""

    def outcome(one: Cell, number: int) -> Evidence:
        found = codes(one)
        return served(number, *found) if found[faulty] == GOOD[faulty] else failed(number, *found)

    return outcome


@pytest.mark.parametrize("faulty", [0, 1])
def test_a_third_value_that_fails_alike_clears_no_flag(faulty: int) -> None:
    outcome = third_values_are_as_bad(faulty)
    thirds = [cell(2, 0, 0, 0), cell(0, 2, 0, 0), cell(2, 2, 0, 0), cell(2, 2, 1, 1)]
    for count in range(1, len(thirds) + 1):
        more = [outcome(one, 3 + n) for n, one in enumerate(thirds[:count])]
        culprit, launched = bisect([failed(1, *BAD), served(2, *GOOD), *more], outcome)
        assert set(culprit.values) == names(faulty)
        assert culprit.is_proven
        assert len(launched) <= 6


def test_third_values_that_all_fail_alike_leave_one_to_blame() -> None:
    outcome = third_values_are_as_bad(0)
    known = [failed(1, *BAD), served(2, 1, 1, 0, 0), failed(3, 2, 0, 0, 0), failed(4, 0, 2, 0, 0)]
    culprit, launched = bisect(known, outcome)
    assert set(culprit.values) == names(0)
    assert len(launched) <= 2


def test_a_flake_is_found_out() -> None:
    history = [
        failed(1, *BAD, cause="unknown:1", phase=Phase.DECODE),
        served(2, *GOOD),
        served(3, 0, 0, 1, 1),
        served(4, 1, 0, 0, 0),
        served(5, 0, 1, 0, 0),
        served(6, 0, 0, 0, 1),
        served(7, 0, 0, 1, 0),
    ]
    culprit, launched = bisect(history, lambda one, number: served(number, *codes(one)))
    assert launched == [cell(*BAD)]
    assert culprit.values == {}
    assert "was a flake" in culprit.why


def test_a_cell_that_may_not_be_launched_is_not_asked_for() -> None:
    forbidden = {cell(0, 1, 1, 1), cell(1, 0, 0, 0)}
    history = [failed(1, *BAD), served(2, *GOOD)]
    for _ in range(8):
        case = Case(
            AXES, history[0], history[1], history, may_launch=lambda one: one not in forbidden
        )
        step = next_step(case)
        if isinstance(step, Culprit):
            break
        assert isinstance(step, Launch)
        assert step.cell not in forbidden
        history.append(world(0)(step.cell, len(history) + 1))


def test_flags_outside_the_matrix_can_be_the_culprit() -> None:
    bad = Evidence(
        number=1,
        cell=cell(*GOOD).with_values({"tp": 4}),
        verdict=failed(1, *BAD).verdict,
        phase=Phase.WEIGHTS,
        cause="oom-weights",
    )
    good = Evidence(
        number=2,
        cell=cell(*GOOD).with_values({"tp": 8}),
        verdict=served(2, *GOOD).verdict,
        phase=Phase.DECODE,
    )
    step = next_step(Case(AXES, bad, good, [bad, good]))
    assert isinstance(step, Culprit)
    assert step.values == {"tp": 4}


def test_a_flag_that_is_not_named_is_one_that_is_not_passed() -> None:
    bare = {n: v for n, v in cell(*BAD).values.items() if n != "kv-cache-dtype"}
    bad = Evidence(
        number=1,
        cell=Cell(bare),
        verdict=Verdict.CRASH,
        phase=Phase.DECODE,
        cause="unknown:1",
    )
    good = [served(2, *GOOD), served(3, 1, 0, 0, 0), served(4, 0, 1, 0, 0)]
    more = [served(5, 0, 0, 1, 0), served(6, 0, 0, 0, 1), served(7, 0, 1, 1, 1)]
    step = next_step(Case(AXES, bad, good[0], [bad, *good, *more]))
    assert isinstance(step, Launch)
    assert step.why == "attempt 1 again: its failure may be a flake"


def test_the_nearest_serving_attempt_differs_in_fewest_flags() -> None:
    bad = failed(1, *BAD)
    history = [bad, served(2, *GOOD), served(3, 1, 0, 0, 0), served(4, 0, 1, 0, 0)]
    nearest = nearest_serving(bad, history)
    assert nearest is not None
    assert nearest.number == 4
    assert nearest_serving(bad, [bad]) is None
