"""What another process on the host did to an attempt says next to nothing about its flags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plan.outcomes import CELLS, QUESTION, cell, outcome, served
from sglsweep.attempt import Diagnosis, Outcome
from sglsweep.matrix import Cells
from sglsweep.plan.decide import decide
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.verdict import Phase, Verdict

ONE = Cells(CELLS.axes, [(0, 0)])
"""A matrix of one cell."""


def ended(number: int, cause: str, *codes: int, verdict: Verdict = Verdict.OOM) -> Outcome:
    found = Diagnosis(verdict=verdict, phase=Phase.WEIGHTS_DONE, cause=cause)
    return outcome(number, cell(*codes), found)


def step(*outcomes: Outcome, cells: Cells = CELLS) -> Launch | Finish:
    return decide(replace(QUESTION, cells=cells, outcomes=outcomes)).step


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [
        ("oom-gpu-held", Verdict.OOM),
        ("port-in-use", Verdict.ENV_ERROR),
        ("dist-port-in-use", Verdict.ENV_ERROR),
    ],
)
def test_its_cell_is_launched_once_more_but_no_third_time(cause: str, verdict: Verdict) -> None:
    first = ended(1, cause, 0, 0, verdict=verdict)
    again = step(first, cells=ONE)
    assert isinstance(again, Launch)
    assert again.cell == cell(0, 0)
    second = ended(2, cause, 0, 0, verdict=verdict)
    assert isinstance(step(first, second, cells=ONE), Finish)


def test_memory_that_no_other_process_had_is_not_asked_for_twice() -> None:
    assert isinstance(step(ended(1, "oom-kv-pool", 0, 0), cells=ONE), Finish)


def test_a_card_that_was_held_makes_no_flag_suspect() -> None:
    held = [ended(1, "oom-gpu-held", 0, 0), ended(2, "oom-gpu-held", 0, 1)]
    # Had the flag done it, the next cell would have to differ in attention-backend.
    after = step(*held, served(3, 1, 0), cells=CELLS)
    assert isinstance(after, Finish)
    chance = step(*held)
    assert isinstance(chance, Launch)
    assert "suspected" not in chance.why
