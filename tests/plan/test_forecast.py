"""When a sweep should stop, and what to say then."""

from __future__ import annotations

from plan.history import AXES, cell, failed, product_of
from sglsweep.matrix import Cells
from sglsweep.plan import strategies
from sglsweep.plan.forecast import forecast
from sglsweep.plan.strategy import Evidence, Finish
from sglsweep.verdict import Phase


def test_more_attempts_make_a_serving_cell_likelier() -> None:
    history = [failed(1, 0, 0, 0, 0)]
    one = forecast(product_of(), history, attempts_left=1)
    ten = forecast(product_of(), history, attempts_left=10)
    assert one.any_serves == one.next_serves
    assert one.next_serves < ten.any_serves < 1


def test_cells_that_share_their_likely_fault_do_not_add_up() -> None:
    cells = Cells(AXES, [row for row in product_of().rows if row[0] == 0])
    history = [failed(n + 1, 0, n, 0, 0, blames=("attention-backend",)) for n in range(3)]
    seen = forecast(cells, history, attempts_left=9)
    assert seen.any_serves < 1 - (1 - seen.next_serves) ** 3


def test_a_spent_budget_brings_nothing() -> None:
    seen = forecast(product_of(), [failed(1, 0, 0, 0, 0)], attempts_left=0)
    assert seen.any_serves == 0
    assert seen.why.endswith("but the budget is spent")


def test_the_sentence_says_how_far_the_budget_reaches() -> None:
    history = [failed(1, 0, 0, 0, 0)]
    some = forecast(product_of(), history, attempts_left=7).why
    assert some.startswith("35 cells are left; the best serves with a chance of ")
    assert ", one of the next 7 with " in some
    assert ", any of them with " in forecast(product_of(), history, attempts_left=None).why


def test_the_same_attempts_foretell_the_same() -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 1, 1, 1, 1, cause="other")]
    one, other = (forecast(product_of(), history, attempts_left=5) for _ in range(2))
    assert one == other


def test_a_matrix_without_untried_cells_promises_nothing() -> None:
    done = forecast(Cells(AXES, [(0, 0, 0, 0)]), [failed(1, 0, 0, 0, 0)], attempts_left=9)
    assert (done.any_serves, done.cells_left) == (0.0, 0)


def test_a_value_that_every_cell_left_has_is_a_wall() -> None:
    cells = Cells(AXES, [row for row in product_of().rows if row[0] == 0])
    history = [
        failed(n + 1, 0, n % 3, n % 2, n // 2, blames=("attention-backend",)) for n in range(4)
    ]
    seen = forecast(cells, history, attempts_left=9)
    (wall, *_) = seen.walls
    assert wall.values == {"attention-backend": "flashinfer"}
    assert wall.attempts == (1, 2, 3, 4)
    assert "try a build with a fix" in seen.why


def test_a_culprit_that_is_not_told_apart_is_a_wall_where_every_cell_left_has_all_of_it() -> None:
    cells = Cells(AXES, [row for row in product_of().rows if row[0] == 0 and row[2] == 1])
    history = [failed(n + 1, 0, n % 3, 1, n // 2) for n in range(4)]
    (wall, *_) = forecast(cells, history, attempts_left=9).walls
    assert wall.values == {"attention-backend": "flashinfer", "moe-runner-backend": "triton"}
    wider = Cells(AXES, [*cells.rows, (1, 0, 0, 0)])
    assert not forecast(wider, history, attempts_left=9).walls


def test_the_same_end_whatever_is_launched_points_outside_the_matrix() -> None:
    rows = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1)]
    history = [failed(n, *row, cause="deep-gemm-arch") for n, row in enumerate(rows, 1)]
    assert not forecast(product_of(), history[:4], attempts_left=9).walls
    walls = forecast(product_of(), history, attempts_left=9).walls
    assert [wall.values for wall in walls] == [{}]
    step = strategies.make().decide(product_of(), history)
    assert isinstance(step, Finish)
    assert step.why.startswith("1, 2, 3, 4 and 5 ended with deep-gemm-arch")
    assert "no setting of the matrix in common" in walls[0].why


def test_what_something_got_past_is_no_wall() -> None:
    rows = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (2, 1, 1, 0)]
    history = [failed(n, *row) for n, row in enumerate(rows, 1)]
    further = Evidence(
        number=7,
        cell=cell(2, 0, 1, 0),
        verdict=history[0].verdict,
        phase=Phase.DECODE,
        cause="nan-in-probs",
    )
    assert not forecast(product_of(), [*history, further], attempts_left=9).walls
