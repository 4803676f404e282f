"""Play a strategy against a world, in memory: no server, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.matrix import spell
from sglsweep.plan import blame, strategies
from sglsweep.plan.goal import Goal, goal_reached
from sglsweep.plan.strategy import Evidence, Finish
from sglsweep.rehearsal.whole import deciding_rules, effective_cells
from sglsweep.rehearsal.world import evaluate
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.matrix import Cells, Value
    from sglsweep.plan.blame import BlameRow
    from sglsweep.plan.strategy import Strategy
    from sglsweep.rehearsal.world import World

Combination = frozenset[tuple[str, str]]
"""Axis name and spelled value of everything that a failing combination needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One strategy against one world with one seed.

    Attributes:
        attempts_to_first_serving: None if the budget or the strategy ended first.
        rules_recovered: share of the minimal failing combinations that decide at least one
            cell which the final blame table names exactly; 1.0 where there is none.
    """

    world: str
    seed: int
    attempts_to_first_serving: int | None
    attempts: int
    rules_recovered: float


@dataclass(frozen=True, slots=True)
class Terms:
    """What a play is played for, and how long."""

    goal: Goal = Goal.FIRST_SERVING
    budget: int = 150
    seed: int = 0


def plays(name: str, world: World, every: Sequence[Terms]) -> list[Play]:
    """Play a strategy against a world under each of the terms."""
    cells = effective_cells(world)
    return [play(name, world, cells, terms) for terms in every]


def play(name: str, world: World, cells: Cells, terms: Terms) -> Play:
    """Launch what a strategy decides until the goal, the budget or the strategy ends it.

    `cells` are the effective cells of the world, made once for all of its plays.
    """
    strategy = strategies.make(name, seed=terms.seed, goal=terms.goal)
    history = attempts(strategy, world, cells, terms)
    served = (e.number for e in history if e.verdict is Verdict.SERVING)
    return Play(
        world=world.name,
        seed=terms.seed,
        attempts_to_first_serving=next(served, None),
        attempts=len(history),
        rules_recovered=rules_recovered(world, cells, blame.table(cells.axes, history)),
    )


def attempts(strategy: Strategy, world: World, cells: Cells, terms: Terms) -> list[Evidence]:
    """Return the history of one play."""
    history: list[Evidence] = []
    launches: dict[str, int] = {}
    while len(history) < terms.budget and not goal_reached(terms.goal, history):
        step = strategy.decide(cells, history)
        if isinstance(step, Finish):
            break
        launch = launches[step.cell.key] = launches.get(step.cell.key, 0) + 1
        truth = evaluate(world, step.cell, launch=launch, seed=terms.seed)
        history.append(
            Evidence(
                number=len(history) + 1,
                cell=step.cell,
                verdict=truth.verdict,
                phase=truth.phase,
                cause=truth.cause,
                blames=truth.blames,
            )
        )
    return history


def minimal_failing(world: World, cells: Cells) -> set[Combination]:
    """Return what the rules hold that decide a cell and need no more than another rule."""
    places = {int(place) for place in deciding_rules(world, cells)} - {-1}
    deciding = {_combination(world.rules[place].when) for place in places}
    every = [_combination(rule.when) for rule in world.rules]
    return {one for one in deciding if not any(other < one for other in every)}


def rules_recovered(world: World, cells: Cells, table: Sequence[BlameRow]) -> float:
    """Return the share of the minimal failing combinations that the table names exactly."""
    wanted = minimal_failing(world, cells)
    named = {_combination(row.values) for row in table if row.status is not blame.Status.REFUTED}
    return len(wanted & named) / len(wanted) if wanted else 1.0


def _combination(values: Mapping[str, Value]) -> Combination:
    return frozenset((name, spell(value)) for name, value in values.items())
