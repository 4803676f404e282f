"""`sglsweep simulate`: play a strategy against worlds, in memory."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sglsweep.errors import ConfigError
from sglsweep.plan import strategies
from sglsweep.plan.goal import Goal
from sglsweep.rehearsal.world_file import load_world
from sglsweep.simulate import Play, Terms, plays

DEFAULT_BUDGET = {Goal.MAP: 60}
_BUDGET = 150


def simulate(
    worlds: Annotated[
        list[Path],
        typer.Argument(metavar="WORLD.yaml...", help="World files.", show_default=False),
    ],
    strategy: Annotated[
        str, typer.Option("--strategy", help=f"One of: {', '.join(strategies.NAMES)}.")
    ] = strategies.DEFAULT,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Plays a world, seeds 0 to N-1.")
    ] = 3,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Most attempts of a play (150; goal map: 60)."),
    ] = None,
    goal: Annotated[
        str, typer.Option("--goal", help=f"One of: {', '.join(Goal)}.")
    ] = Goal.FIRST_SERVING.value,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play a strategy against made-up worlds and count its attempts; launches nothing.

    Example: sglsweep simulate configs/worlds/glm5-sm120.yaml --strategy pairwise --seeds 20
    """
    wanted = _goal(goal)
    most = budget or DEFAULT_BUDGET.get(wanted, _BUDGET)
    terms = [Terms(wanted, most, seed) for seed in range(seeds)]
    read = [load_world(path) for path in worlds]
    played = [one for world in read for one in plays(strategy, world, terms)]
    if as_json:
        typer.echo(json.dumps(_document(strategy, played), ensure_ascii=True))
        return
    _print(strategy, played, wanted)


def _goal(name: str) -> Goal:
    if name not in list(Goal):
        raise ConfigError(
            f"there is no goal {name!r}", next_step=f"Use one of: {', '.join(Goal)}."
        )
    return Goal(name)


def _document(strategy: str, played: list[Play]) -> dict[str, object]:
    return {
        "schema": 1,
        "strategy": strategy,
        "results": [
            {
                "world": one.world,
                "seed": one.seed,
                "attempts_to_first_serving": one.attempts_to_first_serving,
                "attempts": one.attempts,
                "rules_recovered": one.rules_recovered,
            }
            for one in played
        ],
    }


def _print(strategy: str, played: list[Play], goal: Goal) -> None:
    table = Table(title=f"{strategy}, goal {goal}: attempts to the first serving cell")
    for heading in ("world", "attempts, by seed", "median", "faults named exactly"):
        table.add_column(heading)
    for world in dict.fromkeys(one.world for one in played):
        mine = [one for one in played if one.world == world]
        counts = [one.attempts_to_first_serving for one in mine]
        median = statistics.median(float("inf") if c is None else c for c in counts)
        table.add_row(
            world,
            " ".join("none" if c is None else str(c) for c in counts),
            "none" if median == float("inf") else f"{median:g}",
            f"{statistics.fmean(one.rules_recovered for one in mine):.0%}",
        )
    Console().print(table)
