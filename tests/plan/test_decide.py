from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from plan.outcomes import outcome as finished
from plan.outcomes import passed_flags as launch_key
from sglsweep.attempt import Diagnosis, Ladder, Outcome, Rung, Timings
from sglsweep.matrix import Axis, Cell, Cells, Value
from sglsweep.plan.decide import decide
from sglsweep.plan.question import FRACTION, Auto, Question
from sglsweep.plan.stages import Budget
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AXES = (Axis("attention-backend", (None, "triton")), Axis("disable-cuda-graph", (None, True)))
CELLS = Cells(AXES, ((0, 0), (0, 1), (1, 0), (1, 1)))


class InOrder:
    """Launches the first cell that the history does not hold."""

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        known = {e.cell.key for e in history if e.verdict.is_evidence}
        cell = next((c for c in cells if c.key not in known), None)
        return Launch(cell, "next in order") if cell else Finish("every cell was launched")


def outcome(number: int, values: dict[str, Value], verdict: Verdict) -> Outcome:
    cell = Cell(values)
    diagnosis = Diagnosis(verdict=verdict, phase=Phase.DECODE, cause=None)
    return finished(number, cell, diagnosis, launch_key=launch_key(cell))


def question(outcomes: Sequence[Outcome], goals: Sequence[str] = ("first-serving",)) -> Question:
    return Question(
        cells=CELLS,
        includes=(),
        outcomes=outcomes,
        goals=goals,
        strategy=lambda _: InOrder(),
        launch_key=launch_key,
    )


def test_included_cells_come_before_the_strategy() -> None:
    asked = replace(question([]), includes=(Cell({"tp": 8}), Cell({"tp": 4})))
    first = decide(asked).step
    assert isinstance(first, Launch)
    assert first.cell == Cell({"tp": 8})
    second = decide(replace(asked, outcomes=[outcome(1, {"tp": 8}, Verdict.OOM)])).step
    assert isinstance(second, Launch)
    assert second.cell == Cell({"tp": 4})


@pytest.mark.parametrize("verdict", [Verdict.HOST_LOST, Verdict.INTERRUPTED])
def test_an_included_cell_that_the_host_lost_is_launched_again(verdict: Verdict) -> None:
    asked = replace(
        question([outcome(1, {"tp": 8}, verdict)]),
        includes=(Cell({"tp": 8}),),
    )
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.cell == Cell({"tp": 8})


def test_first_serving_ends_at_the_first_serving_attempt() -> None:
    assert isinstance(decide(question([outcome(3, {}, Verdict.OOM)])).step, Launch)
    step = decide(question([outcome(3, {}, Verdict.SERVING)])).step
    assert step == Finish("attempt 3 serves")


def test_map_goes_on_after_a_serving_attempt() -> None:
    step = decide(question([outcome(1, {}, Verdict.SERVING)], goals=("map",))).step
    assert isinstance(step, Launch)


def test_a_spent_budget_ends_the_run() -> None:
    asked = replace(question([outcome(1, {}, Verdict.OOM)]), budget=Budget(attempts=1))
    assert decide(asked).step == Finish("the budget of 1 attempts is spent")
    asked = replace(question([]), budget=Budget(hours=2.0), spent_hours=2.0)
    assert decide(asked).step == Finish("the budget of 2 hours is spent")


def test_what_was_reached_is_said_when_the_budget_ends() -> None:
    asked = replace(question([outcome(1, {}, Verdict.SERVING)]), budget=Budget(attempts=1))
    assert decide(asked).step == Finish("attempt 1 serves")
    step = decide(replace(asked, goals=("first-serving", "map"))).step
    assert step == Finish("attempt 1 serves; the budget of 1 attempts is spent")
    both = [outcome(n, {}, Verdict.SERVING) for n in (1, 2)]
    asked = replace(question(both, goals=("map",)), budget=Budget(attempts=2))
    assert decide(asked).step == Finish("2 attempts serve; the budget of 2 attempts is spent")


def test_a_cell_that_spells_a_launched_one_differently_is_not_launched() -> None:
    included = outcome(1, {"tp": None}, Verdict.OOM)
    decision = decide(question([included]))
    assert isinstance(decision.step, Launch)
    # The all-null cell of the product is the included launch again.
    assert decision.step.cell == Cell({"attention-backend": None, "disable-cuda-graph": True})


def test_cells_with_equal_launches_are_named_with_the_attempt_that_speaks_for_them() -> None:
    axes = (Axis("kv-cache-dtype", (None, "auto")),)
    asked = Question(
        cells=Cells(axes, ((0,), (1,))),
        includes=(),
        outcomes=[outcome(1, {"kv-cache-dtype": None}, Verdict.OOM)],
        goals=("map",),
        strategy=lambda _: InOrder(),
        launch_key=lambda _: "",
    )
    decision = decide(asked)
    assert isinstance(decision.step, Finish)
    assert decision.equal == {Cell({"kv-cache-dtype": "auto"}).key: 1}


def test_an_auto_fraction_starts_where_told_and_steps_after_out_of_memory() -> None:
    auto = Auto(start=0.85, next_fraction=lambda _: 0.88)
    asked = replace(question([]), auto=auto)
    first = decide(asked).step
    assert isinstance(first, Launch)
    assert first.cell.get(FRACTION) == 0.85
    failed = outcome(1, dict(first.cell.values), Verdict.OOM)
    second = decide(replace(asked, outcomes=[failed])).step
    assert isinstance(second, Launch)
    assert second.cell == first.cell.with_values({FRACTION: 0.88})
    assert "0.85 -> 0.88" in second.why
    again = outcome(2, dict(second.cell.values), Verdict.OOM)
    third = decide(replace(asked, outcomes=[failed, again])).step
    assert isinstance(third, Launch)
    assert third.cell.get(FRACTION) == 0.85
    assert third.cell != first.cell


A, B = {"attention-backend": None}, {"attention-backend": "triton"}


def raced(
    number: int, values: Mapping[str, Value], speed: float | None, *, meets: bool | None = None
) -> Outcome:
    """A serving attempt and the best rung of its ladder; None: not measured."""
    served = outcome(number, dict(values), Verdict.SERVING)
    if speed is None:
        return served
    rung = Rung(concurrency=8, requests=16, tokens_per_s=speed, meets_slo=meets)
    return replace(served, ladder=Ladder(rungs=(rung,)))


class Nothing:
    """Wants no further launch."""

    def decide(self, _: Cells, __: Sequence[Evidence]) -> Launch | Finish:
        return Finish("every cell was launched")


def race(*outcomes: Outcome) -> Launch | Finish:
    asked = question(outcomes, goals=("first-serving", "fastest"))
    return decide(replace(asked, strategy=lambda _: Nothing())).step


def test_the_fastest_so_far_is_launched_once_more_before_it_is_called_so() -> None:
    step = race(raced(1, A, 400.0), raced(2, B, 500.0))
    assert isinstance(step, Launch)
    assert step.cell == Cell(B)
    assert step.is_final
    assert step.relaunch_of == 2
    assert "500 tokens/s at 8 at once, the fastest so far" in step.why


def test_a_winner_that_was_as_fast_again_has_won_and_its_spread_is_said() -> None:
    step = race(raced(1, A, 400.0), raced(2, B, 500.0), raced(3, B, 490.0))
    assert step == Finish(
        "attempt 2 is the fastest: 495 tokens/s at 8 at once in 2 launches, 2% apart,"
        " 24% ahead of attempt 1 (400 tokens/s at 8 at once)"
    )


def test_a_winner_that_was_slower_again_gives_way() -> None:
    step = race(raced(1, A, 450.0), raced(2, B, 500.0), raced(3, B, 380.0))
    assert isinstance(step, Launch)
    assert step.cell == Cell(A)
    assert step.is_final


def test_a_second_that_comes_close_is_repeated_too_and_equal_is_called_equal() -> None:
    close = (raced(1, A, 490.0), raced(2, B, 500.0), raced(3, B, 500.0))
    step = race(*close)
    assert isinstance(step, Launch)
    assert step.cell == Cell(A)
    done = race(*close, raced(4, A, 494.0))
    assert isinstance(done, Finish)
    assert done.why.startswith("attempts 2 and 1 are equally fast within noise")


def test_a_measurement_that_was_cut_short_is_made_once_more() -> None:
    cut = raced(2, B, 900.0)
    assert cut.ladder is not None
    cut = replace(cut, ladder=replace(cut.ladder, is_cut=True))
    step = race(raced(1, A, 400.0), cut)
    assert isinstance(step, Launch)
    assert (step.cell, step.relaunch_of, step.is_final) == (Cell(B), 2, False)
    assert "cut short" in step.why
    after = race(raced(1, A, 400.0), cut, raced(3, B, 300.0))
    assert isinstance(after, Launch)
    assert after.cell == Cell(A)


def test_a_measurement_that_is_cut_short_each_time_is_not_repeated_for_ever() -> None:
    served = [raced(number, B, 900.0) for number in (1, 2, 3)]
    cut = [replace(o, ladder=replace(o.ladder, is_cut=True)) for o in served if o.ladder]
    assert isinstance(race(*cut[:2]), Launch)
    assert race(*cut) == Finish(
        "attempt 1 serves, but no speed was measured to the end, so nothing is the fastest"
    )


def test_what_serves_and_was_never_measured_is_not_said_not_to_serve() -> None:
    served = [outcome(1, dict(A), Verdict.SERVING), outcome(2, dict(B), Verdict.SERVING)]
    assert race(*served) == Finish(
        "attempts 1, 2 serve, but no speed was measured to the end, so nothing is the fastest"
    )


def test_a_cell_that_failed_when_repeated_does_not_win() -> None:
    step = race(raced(1, A, 400.0), raced(2, B, 500.0), outcome(3, dict(B), Verdict.CUDA_FAULT))
    assert isinstance(step, Launch)
    assert step.cell == Cell(A)


def test_a_rung_beyond_the_objectives_does_not_count() -> None:
    step = race(raced(1, A, 400.0, meets=True), raced(2, B, 500.0, meets=False))
    assert isinstance(step, Launch)
    assert step.cell == Cell(A)
    nobody = race(raced(1, A, 400.0, meets=False))
    assert nobody == Finish("no serving cell keeps the objectives of `workload: {slo: ...}`")


def test_the_last_of_the_budget_goes_to_the_winner_not_to_another_cell() -> None:
    asked = question([raced(1, A, 400.0), raced(2, B, 500.0)], goals=("fastest",))
    first = decide(asked).step
    assert isinstance(first, Launch)
    assert not first.is_final
    for budget in (Budget(attempts=4), Budget(hours=1.0)):
        slow = [replace(o, timings=Timings(total_s=1200.0)) for o in asked.outcomes]
        spent = replace(asked, outcomes=slow, budget=budget, spent_hours=2 / 3)
        step = decide(spent).step
        assert isinstance(step, Launch)
        assert (step.cell, step.is_final) == (Cell(B), True)


def confirming(*outcomes: Outcome) -> Launch | Finish:
    asked = replace(question(outcomes), nan_check=lambda _: {"env.NAN_CHECK": 1})
    return decide(asked).step


def test_garbage_is_launched_once_more_with_the_nan_check_if_that_is_wanted() -> None:
    garbage = outcome(4, dict(A), Verdict.GARBAGE_OUTPUT)
    step = confirming(garbage)
    assert isinstance(step, Launch)
    assert step.cell == Cell(A).with_values({"env.NAN_CHECK": 1})
    assert step.relaunch_of == 4
    again = outcome(5, dict(step.cell.values), Verdict.GARBAGE_OUTPUT)
    assert confirming(garbage, again) != step
    unwanted = decide(question([garbage])).step
    assert isinstance(unwanted, Launch)
    assert unwanted.relaunch_of is None


def test_a_wrong_answer_is_no_nan() -> None:
    wrong = outcome(4, dict(A), Verdict.GARBAGE_OUTPUT)
    wrong = replace(wrong, diagnosis=replace(wrong.diagnosis, cause="wrong-answer"))
    step = confirming(wrong)
    assert isinstance(step, Launch)
    assert step.relaunch_of is None
