"""What is decided while other attempts run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scenes import attempt
from sglsweep.attempt import (
    BESIDE_OTHERS,
    Attempt,
    Diagnosis,
    End,
    EndKind,
    Ladder,
    Outcome,
    Rung,
)
from sglsweep.matrix import Axis, Cell, Cells, Value
from sglsweep.plan import strategies
from sglsweep.plan.decide import decide
from sglsweep.plan.question import FRACTION, Auto, Question
from sglsweep.plan.race import next_heat
from sglsweep.plan.stages import Budget
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

AXES = (Axis("backend", ("a", "b")), Axis("graph", (None, True)), Axis("dtype", ("x", "y", "z")))
CELLS = Cells(AXES, [(i, j, k) for i in range(2) for j in range(2) for k in range(3)])


def key_of(cell: Cell) -> str:
    return ",".join(sorted(f"{n}={v}" for n, v in cell.values.items() if v is not None))


def running(number: int, cell: Cell) -> Attempt:
    return replace(attempt(number), cell=cell, launch_key=key_of(cell))


def over(
    of: Attempt, verdict: Verdict, cause: str | None = None, beside: tuple[int, ...] = ()
) -> Outcome:
    diagnosis = Diagnosis(verdict=verdict, phase=Phase.DECODE, cause=cause)
    end = End(kind=EndKind.EXITED, beside=beside)
    return Outcome(attempt=of, end=end, diagnosis=diagnosis)


def question(
    outcomes: Sequence[Outcome] = (),
    begun: Sequence[Attempt] = (),
    *,
    strategy: str = "grid",
    goal: str = "map",
    cells: Cells = CELLS,
) -> Question:
    return Question(
        cells=cells,
        includes=(),
        outcomes=outcomes,
        running=begun,
        goals=(goal,),
        strategy=lambda wanted: strategies.make(strategy, seed=1, goal=wanted),
        launch_key=key_of,
    )


@pytest.mark.parametrize("strategy", sorted(strategies.NAMES))
def test_no_cell_is_chosen_twice_whatever_chooses(strategy: str) -> None:
    begun: list[Attempt] = []
    while isinstance(step := decide(question((), begun, strategy=strategy)).step, Launch):
        begun.append(running(len(begun) + 1, step.cell))
        assert len(begun) <= len(CELLS)
    assert {a.cell.key for a in begun} == {cell.key for cell in CELLS}


def test_the_sentence_says_whom_the_choice_does_not_wait_for() -> None:
    step = decide(question((), [running(1, CELLS[0]), running(2, CELLS[1])])).step
    assert isinstance(step, Launch)
    assert step.why.endswith("(not waiting for attempts 1, 2)")
    assert step.cell == CELLS[2]


def test_another_spelling_of_what_runs_waits_for_it() -> None:
    cells = Cells((Axis("a", (None, 1)), Axis("b", (None,))), [(0, 0), (1, 0)])
    asked = replace(question((), [running(1, Cell({"c": None}))], cells=cells))
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.cell.get("a") == 1


def test_included_cells_fill_the_slots_first() -> None:
    includes = (Cell({"tp": 8}), Cell({"tp": 4}))
    asked = replace(question(), includes=includes)
    first = decide(asked).step
    second = decide(replace(asked, running=[running(1, includes[0])])).step
    third = decide(replace(asked, running=[running(1, includes[0]), running(2, includes[1])])).step
    assert [s.cell for s in (first, second, third) if isinstance(s, Launch)] == [
        *includes,
        CELLS[0],
    ]


def test_an_included_cell_that_runs_takes_no_cell_of_the_matrix() -> None:
    step = decide(question((), [running(1, CELLS[0].with_values({"tp": 8}))])).step
    assert isinstance(step, Launch)
    assert step.cell == CELLS[0]


def test_running_attempts_are_paid_for() -> None:
    begun = [running(2, CELLS[1])]
    asked = replace(question([over(running(1, CELLS[0]), Verdict.OOM)], begun))
    assert isinstance(decide(replace(asked, budget=Budget(attempts=3))).step, Launch)
    assert isinstance(decide(replace(asked, budget=Budget(attempts=2))).step, Finish)


def test_what_lacked_a_neighbour_s_memory_comes_again_and_once() -> None:
    first, other = running(1, CELLS[0]), running(2, CELLS[1])
    lacking = over(first, Verdict.INTERRUPTED, BESIDE_OTHERS, (2,))
    step = decide(question([lacking], [other])).step
    assert isinstance(step, Launch)
    assert (step.cell, step.relaunch_of) == (CELLS[0], 1)
    again = replace(running(3, CELLS[0]), relaunch_of=1)
    then = decide(question([lacking], [other, again])).step
    assert isinstance(then, Launch)
    assert then.cell == CELLS[2]
    after = decide(question([lacking, over(again, Verdict.OOM)], [other])).step
    assert isinstance(after, Launch)
    assert after.cell == CELLS[2]


def test_a_nan_is_looked_into_though_a_later_attempt_ended_before() -> None:
    nan = over(running(1, CELLS[0]), Verdict.GARBAGE_OUTPUT, None, (2,))
    later = over(running(2, CELLS[1]), Verdict.SERVING, None, (1,))
    asked = replace(question([nan, later]), nan_check=lambda _: {"check": True})
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.relaunch_of == 1
    check = running(3, step.cell)
    rest = decide(replace(asked, running=[check])).step
    assert isinstance(rest, Launch)
    assert rest.relaunch_of is None


def test_memory_steps_of_one_cell_come_one_after_another() -> None:
    def cell(fraction: Value) -> Cell:
        return CELLS[0].with_values({FRACTION: fraction})

    low = over(running(1, cell(0.5)), Verdict.OOM, "oom-kv-pool", (2,))
    later = over(running(2, CELLS[1].with_values({FRACTION: 0.5})), Verdict.SERVING, None, (1,))
    auto = Auto(start=0.5, next_fraction=lambda _: 0.6)
    asked = replace(question([low, later]), auto=auto)
    step = decide(asked).step
    assert isinstance(step, Launch)
    assert step.cell == cell(0.6)
    then = decide(replace(asked, running=[running(3, cell(0.6))])).step
    assert isinstance(then, Launch)
    assert then.cell == CELLS[2].with_values({FRACTION: 0.5})


def test_the_end_is_not_the_end_while_something_runs() -> None:
    begun = [running(n, cell) for n, cell in enumerate(CELLS, start=1)]
    assert isinstance(decide(question((), begun)).step, Finish)
    rest = [over(a, Verdict.SERVING) for a in begun[:-1]]
    assert isinstance(decide(question(rest, begun[-1:])).step, Finish)
    assert isinstance(decide(question(rest)).step, Launch)


def heat(number: int, cell: Cell, speed: float, beside: tuple[int, ...] = ()) -> Outcome:
    rung = Rung(concurrency=8, requests=16, tokens_per_s=speed)
    served = over(running(number, cell), Verdict.SERVING, None, beside)
    return replace(served, ladder=Ladder(rungs=(rung,)))


def test_speeds_beside_others_are_compared_with_no_speed_alone() -> None:
    first, second = heat(1, CELLS[0], 400.0, (2,)), heat(2, CELLS[1], 300.0, (1,))
    leader = next_heat([first, second])
    assert isinstance(leader, Launch)
    assert (leader.cell, leader.relaunch_of) == (CELLS[0], 1)
    alone = heat(3, CELLS[0], 500.0)
    other = next_heat([first, second, alone])
    assert isinstance(other, Launch)
    assert (other.cell, other.relaunch_of) == (CELLS[1], 2)
    assert "beside others: alone, to compare" in other.why
    done = next_heat([first, second, alone, heat(4, CELLS[1], 450.0)])
    assert isinstance(done, Finish)
    assert "attempt 1 is the fastest: 500 tokens/s" in done.why
    assert "11% ahead of attempt 2 (450 tokens/s" in done.why
