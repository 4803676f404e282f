"""Goal explain: taking back changes that were not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plan.history import AXES, cell, failed, product_of, served
from sglsweep.matrix import Cells
from sglsweep.plan import strategies
from sglsweep.plan.strategy import Finish, Launch

if TYPE_CHECKING:
    from sglsweep.plan.strategy import Evidence

START = (0, 0, 0, 0)


def explained(history: list[Evidence], *needed: int, cells: Cells | None = None) -> Finish:
    """Launch what explain asks for in a world where START fails for these axes' values."""
    strategy = strategies.make("adaptive", goal="explain")
    for _ in range(20):
        step = strategy.decide(cells or product_of(), history)
        if isinstance(step, Finish):
            return step
        codes = [list(axis.values).index(step.cell.get(axis.name)) for axis in AXES]
        number = len(history) + 1
        if any(codes[axis] == START[axis] for axis in needed):
            history.append(failed(number, *codes))
        else:
            history.append(served(number, *codes))
    raise AssertionError("no end")


def test_before_anything_serves_it_searches() -> None:
    step = strategies.make("adaptive", goal="explain").decide(product_of(), [failed(1, *START)])
    assert isinstance(step, Launch)


def test_changes_that_were_not_needed_are_taken_back() -> None:
    history = [failed(1, *START), served(2, 1, 1, 1, 1)]
    end = explained(history, 2)
    assert "moe-runner-backend; every one" in end.why
    assert cell(0, 0, 1, 0) in [entry.cell for entry in history]
    assert len(history) <= 7


def test_several_needed_changes_are_all_kept() -> None:
    history = [failed(1, *START), served(2, 1, 1, 1, 1)]
    end = explained(history, 0, 3)
    assert "attention-backend and disable-cuda-graph" in end.why


def test_one_change_needs_no_launch() -> None:
    history = [failed(1, *START), served(2, 1, 0, 0, 0)]
    explained(history, 0)
    assert len(history) == 2


def test_a_start_that_serves_needs_no_change() -> None:
    end = explained([served(1, *START)])
    assert end.why == "attempt 1, the first, serves as it is"


def test_only_listed_cells_are_launched() -> None:
    listed = Cells(AXES, [START, (1, 1, 1, 1), (1, 1, 0, 0), (0, 1, 1, 1)])
    history = [failed(1, *START), served(2, 1, 1, 1, 1)]
    explained(history, 0, cells=listed)
    assert {entry.cell.key for entry in history} <= {one.key for one in listed}
