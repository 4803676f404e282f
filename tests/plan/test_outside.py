"""What would help outside the matrix: named always, launched where the user allows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plan.outcomes import CELLS, QUESTION, cell, failed, outcome, served
from sglsweep.matrix import Cells
from sglsweep.plan.decide import Decision, decide
from sglsweep.plan.outside import to_json
from sglsweep.plan.question import Beforehand
from sglsweep.plan.strategy import Finish, Launch

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome

REMEDY = {"disable-custom-all-reduce": True}
KNOWN = Beforehand(source=lambda _: "log grammar 3.3")


def ask(*outcomes: Outcome, remedies: bool = True, cells: Cells = CELLS) -> Decision:
    return decide(
        replace(
            QUESTION,
            cells=cells,
            outcomes=outcomes,
            beforehand=KNOWN,
            remedy=(lambda _, __: True) if remedies else None,
        )
    )


def only(*rows: tuple[int, int]) -> Cells:
    return Cells(CELLS.axes, rows)


def test_a_remedy_is_launched_where_it_is_likelier_to_serve_than_any_cell() -> None:
    fails = [failed(n, *row, remedy=REMEDY) for n, row in enumerate([(0, 0), (0, 1)], start=1)]
    step = ask(*fails, cells=only((0, 0), (0, 1))).step
    assert isinstance(step, Launch)
    assert step.cell == fails[0].attempt.cell.with_values(REMEDY)
    assert step.relaunch_of == 1
    assert step.why.startswith(
        "outside the matrix: the remedy of custom-allreduce, from log grammar 3.3: attempt 1 with "
        "disable-custom-all-reduce; chance to serve "
    )


def test_a_remedy_waits_while_a_cell_of_the_matrix_is_likelier() -> None:
    step = ask(failed(1, 0, 0, remedy=REMEDY)).step
    assert isinstance(step, Launch)
    assert step.chance is not None
    remedy = ask(failed(1, 0, 0, remedy=REMEDY), cells=only((0, 0))).step
    assert isinstance(remedy, Launch)
    assert remedy.chance is not None
    assert (step.cell in CELLS) == (step.chance >= remedy.chance)


def test_a_remedy_is_tried_once_whatever_came_of_it() -> None:
    tried = outcome(2, cell(0, 0).with_values(REMEDY), failed(1, 0, 0).diagnosis)
    step = ask(failed(1, 0, 0, remedy=REMEDY), tried, cells=only((0, 0))).step
    assert isinstance(step, Finish)


def test_a_remedy_that_the_matrix_lists_is_left_to_the_strategy() -> None:
    inside = {"disable-cuda-graph": True}
    step = ask(failed(1, 0, 0, remedy=inside), cells=only((0, 0))).step
    assert isinstance(step, Finish)
    assert "most likely to help" not in step.why


def test_a_remedy_that_may_not_be_launched_is_not() -> None:
    asked = replace(
        QUESTION,
        cells=only((0, 0)),
        outcomes=[failed(1, 0, 0, remedy=REMEDY)],
        remedy=lambda _, one: "disable-custom-all-reduce" not in one.values,
    )
    assert isinstance(decide(asked).step, Finish)


def test_nothing_is_tried_outside_the_matrix_once_something_serves() -> None:
    history = [failed(1, 0, 0, remedy=REMEDY), served(2, 0, 1)]
    assert ask(*history, cells=only((0, 0), (0, 1))).step == Finish("attempt 2 serves")


def test_without_leave_the_end_names_the_remedy_and_its_source() -> None:
    step = ask(failed(1, 0, 0, remedy=REMEDY), remedies=False, cells=only((0, 0))).step
    assert step == Finish(
        "every cell of the matrix has been tried; most likely to help: disable-custom-all-reduce "
        "(the catalogue's remedy; source: log grammar 3.3)"
    )


def test_the_end_names_the_build_that_has_a_fix() -> None:
    step = ask(failed(1, 0, 0, fixed_in="sglang 0.5.23"), cells=only((0, 0))).step
    assert "most likely to help: a build with sglang 0.5.23 (it fails: https://x/1)" in step.why


def test_what_blocks_more_of_what_is_left_is_named_first() -> None:
    history = [
        failed(1, 0, 0, cause="rare", remedy={"page-size": 64}),
        failed(2, 2, 0, cause="often", fixed_in="sglang 0.5.23"),
    ]
    found = ask(*history, cells=only((0, 0), (2, 0), (2, 1))).helps
    assert [one.cause for one in found] == ["often", "rare"]
    shares = [one.blocks or 0.0 for one in found]
    assert shares[0] > shares[1]


def test_a_pass_with_a_remedy_does_not_clear_the_cell_without_it() -> None:
    tried = replace(
        served(3, 0, 0),
        attempt=replace(served(3, 0, 0).attempt, cell=cell(0, 0).with_values(REMEDY)),
    )
    fails = [failed(1, 0, 0, remedy=REMEDY), failed(2, 0, 1, remedy=REMEDY)]
    asked = replace(QUESTION, goals=("map",), outcomes=(*fails, tried))
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.cell not in {cell(0, 0), cell(0, 1)}
    assert set(step.cell.values) == {axis.name for axis in CELLS.axes}


def test_the_forecast_stands_beside_every_decision_that_rests_on_attempts() -> None:
    assert ask().forecast is None
    decision = ask(failed(1, 0, 0, remedy=REMEDY))
    assert decision.forecast is not None
    told = to_json(decision.forecast, decision.helps)
    assert told["cells_left"] == 5
    assert told["attempts_left"] is None
    assert str(told["why"]).startswith("5 cells are left; the best serves with a chance of ")
    (remedy,) = told["helps"]  # type: ignore[misc]  # one dictionary
    assert remedy["set"] == REMEDY  # type: ignore[has-type]  # as above
