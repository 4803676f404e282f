"""What every strategy must do, and what each is for."""

from __future__ import annotations

from itertools import combinations

import pytest

from plan.history import AXES, cell, failed, lost, product_of, served
from sglsweep.errors import ConfigError
from sglsweep.matrix import Cells
from sglsweep.plan import strategies
from sglsweep.plan.pairwise import combinations_shown, covering_rows, rows_to_launch
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.plan.table import table_of
from sglsweep.verdict import Phase, Verdict

EVERY = pytest.mark.parametrize("name", strategies.NAMES)


def launches(name: str, cells: Cells, *, seed: int = 0, most: int = 100) -> list[str]:
    """Keys of what a strategy launches while everything fails, each for its own reason."""
    strategy = strategies.make(name, seed=seed)
    history: list[Evidence] = []
    while len(history) < most:
        step = strategy.decide(cells, history)
        if isinstance(step, Finish):
            break
        number = len(history) + 1
        history.append(
            Evidence(
                number=number,
                cell=step.cell,
                verdict=Verdict.CRASH,
                phase=Phase.WARMUP,
                cause=f"unknown:{number}",
            )
        )
    return [entry.cell.key for entry in history]


@EVERY
def test_same_arguments_give_the_same_answer(name: str) -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 1, 1, 1, 1, cause="oom-runtime")]
    first = strategies.make(name, seed=4).decide(product_of(), history)
    assert strategies.make(name, seed=4).decide(product_of(), history) == first


@EVERY
def test_every_cell_is_launched_before_a_strategy_gives_up(name: str) -> None:
    cells = product_of()
    assert set(launches(name, cells, most=200)) == {one.key for one in cells}


@EVERY
def test_a_serving_attempt_ends_the_search_for_the_first(name: str) -> None:
    history = [failed(1, 0, 0, 0, 0), served(2, 1, 1, 1, 1)]
    assert strategies.make(name).decide(product_of(), history) == Finish("attempt 2 serves")


@EVERY
def test_a_lost_host_leaves_the_cell_untried(name: str) -> None:
    only = Cells(AXES, [(0, 0, 0, 0)])
    step = strategies.make(name).decide(only, [lost(1, 0, 0, 0, 0)])
    assert isinstance(step, Launch)
    assert step.cell == cell(0, 0, 0, 0)


@EVERY
def test_captured_graphs_without_a_ready_server_are_no_pass(name: str) -> None:
    entry = Evidence(
        number=1,
        cell=cell(0, 0, 0, 0),
        verdict=Verdict.GRAPH_CAPTURE_OK,
        phase=Phase.GRAPH_CAPTURE_DONE,
    )
    assert isinstance(strategies.make(name).decide(product_of(), [entry]), Launch)


@EVERY
def test_a_matrix_without_cells_is_finished(name: str) -> None:
    assert isinstance(strategies.make(name).decide(Cells(AXES, []), []), Finish)


@EVERY
def test_a_cell_of_the_history_that_is_not_listed_does_no_harm(name: str) -> None:
    foreign = cell(0, 0, 0, 0).with_values({"kv-cache-dtype": "fp4", "tp": 4})
    entry = Evidence(
        number=1, cell=foreign, verdict=Verdict.OOM, phase=Phase.KV_CACHE, cause="oom-kv-pool"
    )
    assert isinstance(strategies.make(name).decide(product_of(), [entry]), Launch)


@EVERY
def test_every_decision_says_why_in_one_line(name: str) -> None:
    step = strategies.make(name).decide(product_of(), [failed(1, 0, 0, 0, 0)])
    assert isinstance(step, Launch)
    assert step.why
    assert "\n" not in step.why


def test_grid_follows_the_order_of_the_matrix() -> None:
    cells = product_of()
    assert launches("grid", cells) == [one.key for one in cells]


def test_seeds_draw_different_orders() -> None:
    assert launches("random", product_of(), seed=1) != launches("random", product_of(), seed=2)


@pytest.mark.parametrize("left_out", [0, 9])
def test_pairwise_shows_every_pair_that_exists_before_anything_twice(left_out: int) -> None:
    whole = product_of()
    cells = Cells(AXES, [row for row in whole.rows if row[:2] != (left_out, 0)])
    wanted = {pair for one in cells for pair in pairs(one.key)}
    shown: set[tuple[str, ...]] = set()
    keys = launches("pairwise", cells)
    needed = 0
    while shown != wanted:
        shown.update(pairs(keys[needed]))
        needed += 1
    assert needed <= 12


def pairs(key: str) -> list[tuple[str, ...]]:
    return list(combinations(key.split(","), 2))


def test_one_at_a_time_changes_one_flag_of_the_first_cell() -> None:
    first, *later = launches("one-at-a-time", product_of(), most=7)
    base = cell(0, 0, 0, 0)
    assert first == base.key
    by_key = {one.key: one for one in product_of()}
    assert all(len(by_key[key].difference(base)) == 1 for key in later)


def test_one_at_a_time_builds_on_the_change_that_got_furthest() -> None:
    history = [
        failed(1, 0, 0, 0, 0, phase=Phase.WEIGHTS),
        failed(2, 1, 0, 0, 0, phase=Phase.WARMUP),
    ]
    step = strategies.make("one-at-a-time").decide(product_of(), history)
    assert isinstance(step, Launch)
    assert len(step.cell.difference(cell(1, 0, 0, 0))) == 1
    assert "attempt 2" in step.why


def test_an_unknown_strategy_or_goal_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="no strategy 'greedy'") as refused:
        strategies.make("greedy")
    assert "adaptive" in refused.value.next_step
    with pytest.raises(ConfigError, match="no goal 'fame'"):
        strategies.make("adaptive", goal="fame")


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_covering_array_shows_every_combination_of_its_order(order: int) -> None:
    cells = product_of()
    table = table_of(cells)
    rows = covering_rows(table, order)
    wanted = {c for one in cells for c in combinations(one.key.split(","), order)}
    shown = {c for row in rows for c in combinations(cells[row].key.split(","), order)}
    assert shown == wanted
    assert combinations_shown(table, order) == len(wanted)
    assert order == len(AXES) or len(rows) < len(cells)


def test_what_was_launched_beside_the_array_is_not_shown_again() -> None:
    cells = Cells(AXES[2:], [(a, b) for a in range(2) for b in range(2)])
    table = table_of(cells)
    assert len(rows_to_launch(table, 2, [])) == 4
    rows = covering_rows(table_of(product_of()), 2)
    beside = [
        failed(n, *codes)
        for n, codes in enumerate(
            (codes for i, codes in enumerate(product_of().rows) if i not in rows), start=1
        )
    ]
    assert rows_to_launch(table_of(product_of()), 2, beside) == ()


def test_a_higher_order_begins_with_its_own_rows() -> None:
    strategy = strategies.make("pairwise", order=3)
    step = strategy.decide(product_of(), [])
    assert isinstance(step, Launch)
    assert "that show all triples of values" in step.why
    four = strategies.make("pairwise", order=4).decide(product_of(), [])
    assert "all combinations of 4 of values" in four.why


@pytest.mark.parametrize("order", [0, 1, 7])
def test_an_order_that_makes_no_array_is_refused(order: int) -> None:
    with pytest.raises(ConfigError, match=f"order {order}"):
        strategies.make("pairwise", order=order)
