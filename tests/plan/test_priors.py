"""Earlier runs and what is published: they weigh, they never decide alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plan.history import cell, failed, product_of, served
from sglsweep.plan import strategies
from sglsweep.plan.belief import believe
from sglsweep.plan.forecast import forecast
from sglsweep.plan.hints import Hint
from sglsweep.plan.hypotheses import Claim
from sglsweep.plan.outlook import outlook
from sglsweep.plan.prior import trusted
from sglsweep.plan.strategy import Evidence, Launch
from sglsweep.plan.table import table_of
from sglsweep.verdict import Verdict


def earlier(entry: Evidence, weight: float = 0.9) -> Evidence:
    """The same attempt, as one of another run."""
    source = f"run k2, attempt {entry.number}"
    return replace(entry, number=-entry.number, weight=weight, source=source)


def decide(
    *history: Evidence,
    priors: tuple[Evidence, ...] = (),
    hints: tuple[Hint, ...] = (),
    goal: str = "first-serving",
) -> Launch:
    step = strategies.make(priors=priors, hints=hints, goal=goal).decide(product_of(), history)
    assert isinstance(step, Launch)
    return step


def chance(*known: Evidence, of: tuple[int, ...]) -> float:
    cells = product_of()
    table = table_of(cells)
    chances = outlook(table.split, believe(table, known)).chances
    index = table.find(cell(*of))
    assert index is not None
    return float(chances[index])


def test_a_cell_that_served_in_an_earlier_run_comes_first_and_the_run_is_named() -> None:
    step = decide(priors=(earlier(served(3, 2, 2, 1, 1)),))
    assert step.cell == cell(2, 2, 1, 1)
    assert step.why.startswith("known from run k2, attempt 3: it served there; chance to serve ")


def test_a_weaker_prior_moves_less() -> None:
    start = chance(failed(9, 0, 0, 0, 0), of=(2, 2, 1, 1))
    weights = (0.2, 0.5, 0.9)
    passes = [
        chance(failed(9, 0, 0, 0, 0), earlier(served(3, 2, 2, 1, 1), w), of=(2, 2, 1, 1))
        for w in weights
    ]
    fails = [
        chance(failed(9, 0, 0, 0, 0), earlier(failed(3, 2, 2, 1, 1), w), of=(2, 2, 1, 1))
        for w in weights
    ]
    assert start < passes[0] < passes[1] < passes[2]
    assert start > fails[0] > fails[1] > fails[2]


@pytest.mark.parametrize("weight", [0.2, 0.95])
def test_an_earlier_pass_does_not_clear_what_fails_here(weight: float) -> None:
    here = [failed(n, 0, n % 3, n % 2, n // 2, blames=("attention-backend",)) for n in range(4)]
    there = earlier(served(3, 0, 0, 1, 1), weight)
    table = table_of(product_of())
    belief = believe(table, [there, *[replace(e, number=e.number + 1) for e in here]])
    assert belief.failing[0][0] > 0.5


def test_earlier_failures_rule_nothing_out() -> None:
    there = tuple(
        earlier(failed(n + 1, 0, n % 3, n % 2, n // 2, blames=("attention-backend",)), 0.4)
        for n in range(4)
    )
    assert chance(*there, of=(0, 0, 0, 0)) > 0.02
    cells = [row for row in product_of().rows if row[0] == 0]
    only = type(product_of())(product_of().axes, cells)
    assert not forecast(only, there, attempts_left=5).walls
    assert isinstance(strategies.make(priors=there).decide(only, []), Launch)


def test_what_an_earlier_run_accuses_is_said_with_its_name() -> None:
    there = tuple(
        earlier(failed(n, 0, n % 3, n % 2, 0, blames=("attention-backend",))) for n in (4, 5)
    )
    step = decide(failed(1, 0, 0, 0, 0), priors=there)
    assert step.cell.get("attention-backend") != "flashinfer"
    assert "suspected after 1, known from run k2, attempt 4 and run k2, attempt 5" in step.why


def test_an_attempt_of_an_earlier_run_is_not_counted_as_tried() -> None:
    step = decide(priors=(earlier(served(3, 0, 0, 0, 0)),))
    assert step.cell == cell(0, 0, 0, 0)


FP8 = Hint(
    "dsa-packed-fp8",
    "issue 7",
    0.9,
    Verdict.NAN_IN_PROBS,
    frozenset(c.key for c in product_of() if c.get("kv-cache-dtype") is None),
)


def test_the_first_cell_is_one_that_nothing_published_speaks_against() -> None:
    step = decide(hints=(FP8,))
    assert step.cell == cell(0, 1, 0, 0)
    assert "dsa-packed-fp8: issue 7" in step.why


def test_a_published_condition_costs_chance_and_the_decision_names_the_source() -> None:
    known = failed(1, 0, 1, 0, 0)
    plain = decide(known)
    step = decide(known, hints=(replace(FP8, cells=frozenset({plain.cell.key})),))
    assert step.cell != plain.cell
    assert step.why.endswith(
        "; leaves what the catalogue knows not to work (dsa-packed-fp8: issue 7)"
    )


def test_a_published_condition_is_launched_all_the_same_where_nothing_else_is_left() -> None:
    everywhere = frozenset(c.key for c in product_of())
    step = decide(failed(1, 0, 0, 0, 0), hints=(replace(FP8, cells=everywhere),))
    assert "the catalogue speaks against it (dsa-packed-fp8: issue 7)" in step.why
    assert step.chance is not None
    assert 0 < step.chance < 0.2


def test_a_pass_refutes_a_published_condition_and_a_failure_as_foretold_confirms_it() -> None:
    there = served(1, 0, 0, 1, 1)
    nan = failed(1, 0, 0, 1, 1, cause="nan", verdict=Verdict.NAN_IN_PROBS)
    other = failed(1, 0, 0, 1, 1, cause="oom", verdict=Verdict.OOM)
    assert FP8.believed([there]) < 0.25
    assert FP8.believed([earlier(there, 0.5)]) > 0.7
    assert FP8.believed([nan]) > 0.95
    assert FP8.believed([other, served(2, 0, 1, 1, 1)]) == pytest.approx(FP8.chance)


def test_map_decides_an_open_hypothesis_first() -> None:
    claim = Claim("graphs", {"disable-cuda-graph": (True,)})
    strategy = strategies.make(goal="map", claims=(claim,))
    step = strategy.decide(product_of(), [failed(1, 0, 0, 0, 0)])
    assert isinstance(step, Launch)
    assert step.cell == cell(0, 0, 0, 1)
    assert step.why.startswith("decides graphs")


def test_without_earlier_runs_nothing_changes() -> None:
    history = [failed(n, n % 3, n % 2, n % 2, 0) for n in range(1, 5)]
    table = table_of(product_of())
    assert np.array_equal(believe(table, history).clues.weight, np.ones(4))


def test_a_run_that_this_one_contradicts_counts_for_less_as_a_whole() -> None:
    there = [earlier(served(1, 2, 2, 1, 1)), earlier(served(2, 1, 1, 1, 1))]
    other = replace(there[0], number=-9, source="run k3, attempt 1", cell=cell(0, 0, 1, 1))
    weights = [e.weight for e in trusted([*there, other], [failed(1, 2, 2, 1, 1)])]
    assert weights == [0.45, 0.45, 0.9]
    agreed = trusted([*there, other], [served(1, 2, 2, 1, 1), failed(2, 0, 1, 0, 0)])
    assert [e.weight for e in agreed] == [0.9, 0.9, 0.9]
