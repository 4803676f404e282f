"""Listed memory fractions are ordered, and one log's figures foretell the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from plan.outcomes import QUESTION, outcome
from sglsweep.attempt import Diagnosis, Outcome
from sglsweep.matrix import Axis, Cell, Cells
from sglsweep.plan import strategies
from sglsweep.plan.by_memory import BY_FIGURES, BY_MARGIN, BY_SIDE, memory_hints
from sglsweep.plan.decide import decide
from sglsweep.plan.strategy import Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.matrix import Value

FRACTIONS = Axis("mem-fraction-static", (0.95, 0.9, 0.85, 0.8))
BACKENDS = Axis("attention-backend", ("flashinfer", "triton"))
AXES = (BACKENDS, FRACTIONS)
FIGURES = {
    "avail_before_weights_gb": 94.0,
    "avail_after_weights_gb": 15.5,
    "avail_after_graphs_gb": 5.0,
    "kv_gb": 6.1,
    "kv_tokens": 61_000,
}


def launched(
    number: int, fraction: float, *, cause: str, verdict: Verdict = Verdict.OOM, **metrics: float
) -> Outcome:
    values: dict[str, Value] = {
        "attention-backend": "flashinfer",
        "mem-fraction-static": fraction,
    }
    diagnosis = Diagnosis(verdict=verdict, phase=Phase.GRAPH_CAPTURE, cause=cause, metrics=metrics)
    return outcome(number, Cell(values), diagnosis)


def foretold(*outcomes: Outcome, tokens: int | None = None) -> dict[str, float]:
    hints = memory_hints(AXES, outcomes, tokens)
    return {next(iter(hint.values)): hint.chance for hint in hints}


def test_without_figures_what_was_too_high_speaks_against_higher_ones() -> None:
    assert foretold(launched(1, 0.85, cause="oom-graph-capture")) == {
        "0.95": BY_SIDE,
        "0.9": BY_SIDE,
    }


def test_without_figures_what_was_too_low_speaks_against_lower_ones() -> None:
    assert foretold(launched(1, 0.9, cause="oom-kv-pool")) == {"0.85": BY_SIDE, "0.8": BY_SIDE}


def test_figures_of_a_failure_of_another_kind_foretell_too() -> None:
    nan = launched(1, 0.9, cause="nan-in-probs", verdict=Verdict.NAN_IN_PROBS, **FIGURES)
    assert foretold(nan) == {"0.95": BY_MARGIN, "0.8": BY_FIGURES}


def test_a_pool_too_small_for_what_is_needed_is_foretold() -> None:
    nan = launched(1, 0.9, cause="nan-in-probs", verdict=Verdict.NAN_IN_PROBS, **FIGURES)
    assert foretold(nan, tokens=50_000)["0.85"] == BY_FIGURES


def test_a_value_with_which_a_server_got_ready_is_not_spoken_against() -> None:
    small = launched(1, 0.85, cause="oom-graph-capture")
    ready = launched(2, 0.95, cause="nan-in-probs", verdict=Verdict.NAN_IN_PROBS)
    ready = replace(ready, timings=replace(ready.timings, ready_s=60.0))
    assert set(foretold(small, ready)) == {"0.9"}


@pytest.mark.parametrize("axis", [Axis("mem-fraction-static", (0.9,)), BACKENDS])
def test_where_no_fractions_are_listed_nothing_is_foretold(axis: Axis) -> None:
    assert not memory_hints([axis], [launched(1, 0.85, cause="oom-graph-capture")], None)


def test_the_next_launch_leaves_what_does_not_fit_and_says_by_which_attempt() -> None:
    cells = Cells(AXES, [(b, f) for f in range(4) for b in range(2)])
    nan = launched(1, 0.9, cause="nan-in-probs", verdict=Verdict.NAN_IN_PROBS, **FIGURES)
    asked = replace(
        QUESTION, cells=cells, outcomes=(nan,), strategy=lambda goal: strategies.make(goal=goal)
    )
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.cell.get("mem-fraction-static") in {0.85, 0.9}
    only = Cells(AXES, [(0, 1), (1, 3)])
    last = decide(replace(asked, cells=only)).step
    assert isinstance(last, Launch)
    assert (
        "memory speaks against it (mem-fraction-static 0.8: the memory figures of attempt 1)"
        in (last.why)
    )
