"""How the default strategy reads the evidence."""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from plan.history import AXES, cell, failed, product_of, served
from sglsweep.matrix import Axis, Cells
from sglsweep.plan import strategies
from sglsweep.plan.belief import believe
from sglsweep.plan.outlook import outlook
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.plan.table import table_of
from sglsweep.verdict import Phase, Verdict


def decide(*history: Evidence, seed: int = 0, priors: tuple[Evidence, ...] = ()) -> Launch:
    step = strategies.make("adaptive", seed=seed, priors=priors).decide(product_of(), history)
    assert isinstance(step, Launch)
    return step


def chance(history: list[Evidence], *codes: int) -> float:
    table = table_of(product_of())
    index = table.index_of(np.asarray(codes, dtype=np.int16))
    assert index is not None
    return float(outlook(table.split, believe(table, history)).chances[index])


def test_it_starts_with_the_first_cell_as_listed() -> None:
    assert decide().cell == cell(0, 0, 0, 0)


def test_a_blamed_value_is_changed_and_the_sentence_says_by_whom() -> None:
    step = decide(
        failed(1, 0, 0, 0, 0, blames=("attention-backend",), phase=Phase.DECODE),
        failed(2, 0, 1, 1, 1, blames=("attention-backend",), phase=Phase.DECODE),
    )
    assert step.cell.get("attention-backend") != "flashinfer"
    assert "attention-backend (suspected after 1 and 2)" in step.why


def test_failures_of_one_cause_point_at_what_they_share() -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 0, 1, 1, 1)]
    assert chance(history, 1, 0, 0, 1) > 3 * chance(history, 0, 2, 0, 1)


def test_failures_of_two_causes_share_no_culprit() -> None:
    together = [failed(1, 0, 0, 0, 0), failed(2, 0, 1, 1, 1)]
    apart = [failed(1, 0, 0, 0, 0), failed(2, 0, 1, 1, 1, cause="oom-runtime")]
    assert chance(apart, 0, 2, 0, 1) > chance(together, 0, 2, 0, 1)


def test_a_pass_clears_every_value_it_contains() -> None:
    suspected = [failed(1, 0, 0, 0, 0, blames=("kv-cache-dtype",))]
    cleared = [*suspected, served(2, 1, 0, 0, 0)]
    assert chance(cleared, 2, 0, 0, 0) > chance(suspected, 2, 0, 0, 0)


def test_a_late_failure_clears_more_than_an_early_one() -> None:
    late = [failed(1, 0, 0, 0, 0, phase=Phase.DECODE)]
    early = [failed(1, 0, 0, 0, 0, phase=Phase.ARGS)]
    assert chance(late, 1, 0, 0, 0) > chance(early, 1, 0, 0, 0)


def test_one_kind_of_failure_may_hide_two_faults() -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 1, 1, 1, 1), failed(3, 0, 2, 1, 0)]
    assert chance(history, 2, 2, 0, 1) > chance(history, 0, 1, 0, 1)


def test_nothing_is_ruled_out_by_one_failure() -> None:
    history = [failed(1, 0, 0, 0, 0, blames=("attention-backend",))]
    table = table_of(product_of())
    assert outlook(table.split, believe(table, history)).chances.min() > 0


def test_both_values_of_a_flag_are_not_held_guilty_at_once() -> None:
    one_side = [failed(1, 0, 0, 0, 0), failed(2, 1, 1, 1, 0), failed(3, 2, 2, 0, 0)]
    both = [*one_side, failed(4, 0, 0, 0, 1, cause="oom-runtime", phase=Phase.WARMUP)]
    table = table_of(product_of())
    guilty = believe(table, both).failing[3]
    assert guilty[0] > 0.8
    assert guilty[1] < 0.6 * believe(table, both[3:]).failing[3][1]


def test_a_failure_that_contradicts_everything_else_is_repeated() -> None:
    clean = [served(1, 0, 0, 0, 0), served(2, 1, 1, 1, 1), served(3, 2, 2, 0, 1)]
    strange = failed(4, 0, 1, 0, 1, cause="unknown:9", phase=Phase.DECODE, verdict=Verdict.CRASH)
    table = table_of(product_of())
    belief = believe(table, [*clean, strange])
    (readings,) = belief.readings.values()
    assert sum(r.weight for r in readings if r.flakes) > 0.1
    again = believe(table, [*clean, strange, strange])
    assert sum(r.weight for (rs,) in [again.readings.values()] for r in rs if r.flakes) < 0.1


def test_wrong_blames_are_trusted_less() -> None:
    right = [failed(n, 0, n % 3, n % 2, 0, blames=("attention-backend",)) for n in (1, 2, 3)]
    wrong = [
        *(failed(n, 0, n % 3, n % 2, 0, blames=("moe-runner-backend",)) for n in (1, 2, 3)),
        served(4, 1, 1, 1, 0),
        served(5, 2, 2, 0, 0),
    ]
    table = table_of(product_of())
    assert believe(table, wrong).honesty < believe(table, right).honesty


def test_earlier_runs_are_evidence_but_their_cells_are_not_tried() -> None:
    step = decide(priors=(served(1, 2, 2, 1, 1),))
    assert step.cell == cell(2, 2, 1, 1)


def test_an_axis_of_one_value_is_never_the_culprit() -> None:
    axes = (*AXES, Axis("tp", (8,)))
    cells = Cells(axes, [(*row, 0) for row in product_of().rows])
    table = table_of(cells)
    belief = believe(table, [failed(1, 0, 0, 0, 0)])
    assert belief.failing[4][0] < 0.01


def test_deciding_among_many_cells_is_quick() -> None:
    axes = tuple(
        Axis(f"flag-{i}", tuple(range(size))) for i, size in enumerate([5, 5, 5, 5, 4, 4, 10])
    )
    cells = Cells(axes, list(product(*(range(len(axis.values)) for axis in axes))))
    rng = np.random.default_rng(0)
    history = [
        Evidence(
            number=n + 1,
            cell=cells[int(rng.integers(len(cells)))],
            verdict=failed(1, 0, 0, 0, 0).verdict,
            phase=list(Phase)[int(rng.integers(1, 10))],
            cause=f"cause-{rng.integers(25)}",
        )
        for n in range(200)
    ]
    strategy = strategies.make("adaptive")
    strategy.decide(cells, history[:1])
    start = time.process_time()
    strategy.decide(cells, history)
    assert time.process_time() - start < 1.0


def test_what_a_second_launch_cannot_change_is_not_launched_again() -> None:
    only = Cells(AXES, [(0, 0, 0, 0)])
    refused = failed(1, 0, 0, 0, 0)
    step = strategies.make("adaptive").decide(only, [refused])
    assert step == Finish("every cell of the matrix has been tried")


def test_no_cell_is_launched_more_than_twice() -> None:
    cells = Cells(AXES, [(0, 0, 0, 0), (1, 0, 0, 0)])
    history: list[Evidence] = []
    strategy = strategies.make("adaptive")
    while isinstance(step := strategy.decide(cells, history), Launch):
        number = len(history) + 1
        codes = table_of(cells).encode([step.cell])[0]
        history.append(
            failed(number, *codes, cause="unknown:1", verdict=Verdict.CRASH, phase=Phase.DECODE)
        )
        assert number <= 4


def test_goal_map_asks_what_is_open_and_leaves_what_is_known() -> None:
    known = [
        failed(1, 0, 0, 0, 0),
        served(2, 1, 0, 0, 0),
        failed(3, 0, 1, 1, 1),
        failed(4, 0, 2, 0, 1),
    ]
    step = strategies.make("adaptive", goal="map").decide(product_of(), known)
    assert isinstance(step, Launch)
    assert step.cell.get("attention-backend") != "flashinfer"


def test_goal_fastest_looks_for_more_cells_that_serve_and_ends() -> None:
    history: list[Evidence] = [served(1, 0, 0, 0, 0)]
    strategy = strategies.make("adaptive", goal="fastest")
    while isinstance(step := strategy.decide(product_of(), history), Launch):
        codes = [list(a.values).index(step.cell.get(a.name)) for a in AXES]
        number = len(history) + 1
        history.append(served(number, *codes) if codes[0] == 0 else failed(number, *codes))
    assert (
        len({e.cell.key for e in history if e.cell.get("attention-backend") == "flashinfer"}) > 6
    )
    assert "no other cell" in step.why


def test_a_failure_that_no_cell_left_can_avoid_ends_the_search() -> None:
    rows = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (2, 1, 1, 0)]
    history = [failed(n, *row, cause="deep-gemm-arch") for n, row in enumerate(rows, 1)]
    step = strategies.make("adaptive").decide(product_of(), history)
    assert isinstance(step, Finish)
    assert "try a build with a fix" in step.why
