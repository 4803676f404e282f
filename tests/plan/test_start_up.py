"""Between cells that are as likely to serve, the one that is ready soonest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plan.history import AXES, cell, failed, served
from sglsweep.catalogue import startup
from sglsweep.matrix import Axis, Cells
from sglsweep.plan import strategies
from sglsweep.plan.start_up import seconds
from sglsweep.plan.strategy import Launch
from sglsweep.plan.table import table_of

CELLS = Cells(AXES, [(0, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0), (1, 0, 0, 1), (2, 0, 0, 0)])
TABLE = table_of(CELLS)


def later(*known: tuple[tuple[int, int, int, int], float], published: bool = False) -> list[float]:
    history = [
        replace(served(number, *codes), ready_s=took)
        for number, (codes, took) in enumerate(known, start=1)
    ]
    return list(seconds(TABLE, TABLE.codes, history, startup.load() if published else ()).round(1))


def test_without_timings_and_catalogue_all_cells_take_as_long() -> None:
    assert later() == [0.0] * 5


def test_the_catalogue_knows_that_no_capture_starts_sooner() -> None:
    assert later(published=True) == [0.0, -40.0, 0.0, -40.0, 0.0]


def test_this_runs_own_timings_count_before_the_catalogue() -> None:
    known = (((0, 0, 0, 0), 60.0), ((0, 0, 0, 1), 50.0))
    assert later(*known, published=True) == [5.0, -5.0, 5.0, -5.0, 5.0]


def test_few_timings_count_for_less() -> None:
    one = later(((0, 0, 0, 0), 100.0), ((1, 0, 0, 0), 40.0))
    two = later(
        *(((0, 0, 0, 0), 100.0), ((1, 0, 0, 0), 40.0), ((0, 0, 0, 0), 100.0), ((1, 0, 0, 0), 40.0))
    )
    assert one[0] - one[2] == pytest.approx(60.0)
    assert two[0] - two[2] == pytest.approx(80.0)


def test_of_cells_that_are_as_good_the_one_that_starts_sooner_is_launched() -> None:
    axes = (Axis("disable-radix-cache", (False, True)), Axis("disable-cuda-graph", (False, True)))
    cells = Cells(axes, [(0, 0), (1, 0), (0, 1)])
    history = [replace(failed(1, 0, 0, 0, 0), cell=cells[0])]
    for seed in range(5):
        step = strategies.make(seed=seed, start_ups=startup.load()).decide(cells, history)
        assert isinstance(step, Launch)
        assert step.cell == cells[2]
        assert step.why.endswith("; as good as others, and ready some 40 s sooner")


def test_a_likelier_cell_is_launched_however_long_it_takes() -> None:
    known = [
        replace(served(1, 0, 0, 0, 0), ready_s=900.0),
        replace(served(2, 1, 1, 1, 1), ready_s=9.0),
    ]
    step = strategies.make(goal="map", start_ups=startup.load()).decide(CELLS, known)
    plain = strategies.make(goal="map").decide(CELLS, known)
    assert isinstance(step, Launch)
    assert isinstance(plain, Launch)
    assert step.chance == pytest.approx(plain.chance or 0.0, rel=0.01)


def test_every_entry_of_the_catalogue_says_where_it_is_from() -> None:
    entries = startup.load()
    assert entries
    assert all(entry.source and entry.seconds for entry in entries)
    assert cell(0, 0, 0, 1).get("disable-cuda-graph") in {entry.value for entry in entries}
