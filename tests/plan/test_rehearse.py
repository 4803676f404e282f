"""The first decisions of a sweep in which nothing serves."""

from __future__ import annotations

import pytest

from plan.history import AXES, cell, product_of
from sglsweep.matrix import NO_EFFECT, Axis, Cell, Cells
from sglsweep.plan import strategies
from sglsweep.plan.effective import as_requested
from sglsweep.plan.rehearse import Rehearsed, Suppose, rehearse


def rehearsed(
    suppose: Suppose,
    count: int = 10,
    *,
    includes: tuple[Cell, ...] = (),
    strategy: str = "adaptive",
) -> Rehearsed:
    """Return the first launches over the small matrix."""
    chooses = strategies.make(strategy)
    return rehearse(chooses, as_requested(product_of()), includes, suppose, count)


@pytest.mark.parametrize("suppose", list(Suppose))
def test_what_is_included_comes_first_and_is_numbered(suppose: Suppose) -> None:
    outside = Cell({"tp": 4})
    steps = rehearsed(suppose, 3, includes=(outside, cell(1, 1, 1, 1))).steps
    assert [s.cell for s in steps[:2]] == [outside, cell(1, 1, 1, 1)]
    assert steps[1].why == "listed under include (2 of 2)"
    assert len(steps) == 3


def test_one_cause_for_all_ends_where_no_flag_can_be_behind_it() -> None:
    found = rehearsed(Suppose.ALIKE, 30)
    assert len(found.steps) < 30
    assert "ended with one cause" in found.end
    assert "another value to the matrix" in found.end


def test_right_blames_leave_the_blamed_value_at_once() -> None:
    first, second = rehearsed(Suppose.BLAMED, 2).steps
    assert first.cell.get("attention-backend") == "flashinfer"
    assert second.cell.get("attention-backend") != "flashinfer"
    assert "suspected after 1" in second.why


def test_blames_end_where_every_flag_has_one_value_left() -> None:
    found = rehearsed(Suppose.BLAMED, 100, strategy="grid")
    guilty = sum(len(axis.values) - 1 for axis in AXES)
    assert found.end == f"attempt {len(found.steps)} has no value left to blame"
    assert len(found.steps) > guilty


def test_a_flag_without_effect_is_never_blamed() -> None:
    axes = (Axis("nsa", (NO_EFFECT, "sparse")), Axis("kv", ("fp8", "bf16")))
    cells = Cells(axes, [(0, 0), (0, 1)])
    seen = as_requested(cells)
    found = rehearse(strategies.make("grid"), seen, (), Suppose.BLAMED, 9)
    assert [s.cell.get("kv") for s in found.steps] == ["fp8", "bf16"]
    assert found.end == "attempt 2 has no value left to blame"


def test_no_launch_is_shown_where_none_is_asked_for() -> None:
    assert rehearsed(Suppose.ALIKE, 0) == Rehearsed(())


def test_an_included_cell_of_which_nothing_can_be_blamed_ends_nothing() -> None:
    cells = Cells((Axis("mem", (0.9, 0.95)),), [(0,)])
    includes = tuple(Cell({"mem": 0.88, "tp": n}) for n in (2, 4))
    chooses = strategies.make("grid")
    found = rehearse(chooses, as_requested(cells), includes, Suppose.BLAMED, 9)
    assert [s.cell for s in found.steps[:2]] == list(includes)
    assert [s.cell.get("mem") for s in found.steps] == [0.88, 0.88, 0.9]
