"""The first decisions of a strategy when nothing serves, for `plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.plan import strategies
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Cell
    from sglsweep.plan.effective import EffectiveCells


def decisions_if_all_fail(
    seen: EffectiveCells, includes: Sequence[Cell], goal: str, how: tuple[str, int], count: int
) -> list[Launch]:
    """Return the first launches if every attempt fails of a cause of its own, blaming nothing.

    Args:
        seen: the matrix, by what SGLang makes of its cells where that is known.
        includes: cells that come first.
        goal: the first stage.
        how: strategy and seed.
        count: how many launches to return at most.
    """
    name, seed = how
    strategy = strategies.make(name, seed=seed, goal=goal)
    steps = [Launch(cell, "listed under include") for cell in includes[:count]]
    history = [_failed(number, seen.of(step.cell)) for number, step in enumerate(steps, start=1)]
    while len(steps) < count:
        step = strategy.decide(seen.cells, history)
        if isinstance(step, Finish):
            break
        asked = seen.asked_for(step.cell)
        steps.append(Launch(asked, seen.told(step.why, asked)))
        history.append(_failed(len(steps), step.cell))
    return steps


def _failed(number: int, cell: Cell) -> Evidence:
    return Evidence(
        number=number,
        cell=cell,
        verdict=Verdict.CRASH,
        phase=Phase.DECODE,
        cause=f"unknown:{number}",
    )
