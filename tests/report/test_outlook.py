"""What the planner expects of the rest, and what would help outside the matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from report.conftest import HISTORIES
from sglsweep.report.findings import render
from sglsweep.report.status import status_json, status_text
from sglsweep.report.view import view_of

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.report.view import RunView

WHY = "281 cells are left; the best serves with a chance of 31 %, one of 12 more with 72 %"
REMEDY = "kv-cache-dtype=bf16: the catalogue's remedy of nan-in-probs (attempts 2 to 5)"
BUILD = "a build with FlashInfer PR 2716"
FORECAST = {
    "after": 5,
    "next_serves": 0.31,
    "any_serves": 0.72,
    "cells_left": 281,
    "attempts_left": 12,
    "why": WHY,
    "walls": [],
    "helps": [
        {
            "kind": "remedy",
            "cause": "nan-in-probs",
            "set": {"kv-cache-dtype": "bf16"},
            "why": REMEDY,
        },
        {
            "kind": "build",
            "cause": "nan-in-probs",
            "url": "https://example.org/2716",
            "why": BUILD,
        },
    ],
}


@pytest.fixture
def stuck(tmp_path: Path) -> RunView:
    """A sweep in which nothing serves, at its end."""
    return replace(view_of(HISTORIES["nothing-serves"](tmp_path / "night")), forecast=FORECAST)


def test_where_nothing_serves_the_bottom_line_says_what_would_help(stuck: RunView) -> None:
    text = render(stuck)
    assert f"- Outside the matrix: {REMEDY}" in text
    assert f"- Outside the matrix: {BUILD} ([known issue](<https://example.org/2716>))" in text
    assert f"a larger budget goes on here ({WHY})" in text


def test_a_remedy_is_not_said_twice(stuck: RunView) -> None:
    bottom = render(stuck).split("## Hardware")[0]
    launches = [line for line in bottom.splitlines() if "--set kv-cache-dtype=bf16" in line]
    assert launches == []


def test_a_sweep_that_goes_on_forecasts(stuck: RunView) -> None:
    going = replace(stuck, finish="")
    assert f"Forecast: {WHY}." in render(going)
    said = status_text(going, [], holder="pid 1")
    assert f"forecast: {WHY}\n" in said
    assert f"outside the matrix: {REMEDY}\n" in said
    assert status_json(going, [], holder="")["forecast"] == FORECAST


def test_a_forecast_of_fewer_attempts_says_so(stuck: RunView) -> None:
    old = replace(stuck, finish="", forecast={**FORECAST, "after": 3})
    assert "(as of 3 attempts)" in status_text(old, [], holder="")


def test_where_something_serves_and_all_is_over_nobody_waits(lead_case_run: RunView) -> None:
    run = replace(lead_case_run, forecast=FORECAST)
    assert WHY not in render(run)
    assert "forecast" not in status_text(run, [], holder="")


@pytest.mark.parametrize("rubbish", [{}, {"why": 3, "helps": "no"}, {"helps": [1, {"set": 2}]}])
def test_a_forecast_that_nobody_understands_is_left_out(
    stuck: RunView, rubbish: dict[str, object]
) -> None:
    assert "forecast:" not in status_text(replace(stuck, forecast=rubbish), [], holder="")
    render(replace(stuck, forecast=rubbish))


def test_that_no_cell_is_foretold_is_not_said_while_an_included_one_is_left(
    stuck: RunView,
) -> None:
    none_left = {**FORECAST, "cells_left": 0, "why": "no cell is left", "helps": []}
    going_on = replace(stuck, forecast=none_left, finish="")
    tried = len({o.attempt.cell.key for o in stuck.evidence})
    assert "no cell is left" in render(replace(going_on, cells=tried))
    assert "no cell is left" not in render(replace(going_on, cells=tried + 2))
