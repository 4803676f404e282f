"""Attempts that the rehearsal takes when SGLang is asked first, and when it is not.

    python bench/ask_first.py [SEEDS] [SWEEP.yaml]

The sweep's own loop decides, launch after launch; what a launch comes to is read from the world,
in memory, so that dozens of sweeps take a minute. Besides the sweep as it stands, its bare matrix
is played: nothing included, nothing excluded, as if the operator knew nothing yet.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep import catalogue
from sglsweep.attempt import Attempt, Blame, Diagnosis, End, EndKind, Outcome
from sglsweep.clock import SystemClock
from sglsweep.expand import expand
from sglsweep.journal import Journal, RunIdentity
from sglsweep.plan.goal import Goal
from sglsweep.plan.strategy import Finish
from sglsweep.prepare import Ground, prepare
from sglsweep.rehearsal.arguments import parse, requested_cell
from sglsweep.rehearsal.foretell import Foreteller
from sglsweep.rehearsal.world import deciding_rule
from sglsweep.rehearsal.world_file import load_world
from sglsweep.sweep import Settings, Sweeping, ask_first, command_for, next_step
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.events import Event
    from sglsweep.matrix import Cell
ROOT = Path(__file__).parent.parent
GOALS = ((Goal.FIRST_SERVING,), (Goal.FIRST_SERVING, Goal.EXPLAIN), (Goal.MAP,))
MOST = 150


@dataclass(frozen=True)
class Silent:
    """Hears of a sweep, and says nothing."""

    def tell(self, event: Event) -> None:
        """Take an event of the sweep."""


def main() -> None:
    """Print a table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    path = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "configs/rehearsal.yaml"
    ground = prepare(path)
    print(f"{path.name}: mean attempts over {seeds} seeds (smallest to largest)\n")
    print(
        "| matrix | goal | cells | asked first | attempts | asked first | without known issues |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, own in (("as it stands", ground), ("bare", bare(ground))):
        asked = ask_first(own)
        for goals in GOALS:
            counts = [
                told([play(g, goals, seed) for seed in range(seeds)])
                for g in (own, asked, unwarned(asked))
            ]
            row = [name, ", ".join(goals), str(cells(own)), str(cells(asked)), *counts]
            print(f"| {' | '.join(row)} |")


def bare(ground: Ground) -> Ground:
    """Return a sweep without what the operator knew."""
    sweep = replace(ground.sweep, includes=(), excludes=())
    return replace(ground, sweep=sweep, expanded=expand(sweep, ground.tables))


def unwarned(ground: Ground) -> Ground:
    """Return a sweep that was resolved, and knows nothing of what is published not to work."""
    if ground.settled is None:
        return ground
    return replace(ground, settled=replace(ground.settled, suspects=()))


def cells(ground: Ground) -> int:
    """Return how many cells there are to launch."""
    return len({c.key for c in (*ground.expanded.includes, *ground.expanded.cells)})


def told(counts: list[int]) -> str:
    """Write a mean and its range."""
    return f"{statistics.mean(counts):.1f} ({min(counts)} to {max(counts)})"


def play(ground: Ground, goals: tuple[Goal, ...], seed: int) -> int:
    """Return how many attempts a sweep takes until it ends by itself."""
    sweep = replace(ground.sweep, goal=goals, budget=replace(ground.sweep.budget, hours=None))
    truth = teller(ground)
    identity = RunIdentity(
        name=sweep.name, model="", launch={}, sweep_text="", host="", catalogue=""
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal.create_or_resume(Path(folder) / "run", identity) as journal,
    ):
        sweeping = Sweeping(
            ground=replace(ground, sweep=sweep),
            journal=journal,
            catalogue=catalogue.load(),
            clock=SystemClock(),
            listener=Silent(),
            settings=Settings(seed=seed),
        )
        outcomes: list[Outcome] = []
        while len(outcomes) < MOST:
            step = next_step(sweeping, supposing=tuple(outcomes), is_budgeted=False).step
            if isinstance(step, Finish):
                break
            outcomes.append(truth(len(outcomes) + 1, step.cell))
    return len(outcomes)


def teller(ground: Ground) -> Callable[[int, Cell], Outcome]:
    """Return what a launch of a cell comes to, with what it would print of itself."""
    build = ground.sweep.build.rehearsal
    if build is None:
        raise SystemExit("only a rehearsal can be played: a build with `rehearsal: WORLD.yaml`")
    world, asked = load_world(build), Foreteller(build)
    known: dict[str, Diagnosis] = {}

    def diagnosis(words: tuple[str, ...], env: dict[str, str]) -> Diagnosis:
        arguments = parse(words, asked.version, world.axes)
        rule = deciding_rule(world, world.effective(requested_cell(arguments, world.axes, env)))
        args = asked.server_args(words, env)
        plain = {n.replace("_", "-"): v for n, v in args.items() if n != "random_seed"}
        return Diagnosis(
            verdict=rule.verdict if rule else Verdict.SERVING,
            phase=rule.phase if rule else Phase.DECODE,
            cause=rule.cause if rule else None,
            blames=tuple(Blame(flag) for flag in rule.blames) if rule else (),
            effective={n: v for n, v in plain.items() if v is None or isinstance(v, str | float)},
        )

    def outcome(number: int, cell: Cell) -> Outcome:
        command = command_for(ground, cell)
        key = command.launch_key
        if key not in known:
            known[key] = diagnosis(command.argv[4:], dict(command.env))
        attempt = Attempt(
            number=number,
            cell=cell,
            build=ground.sweep.build_of(cell).name,
            model=ground.sweep.model_of(cell).name,
            python="python3",
            argv=command.argv,
            env=command.env,
            launch_key=key,
            host="local",
            port=30000,
            why="",
            started_at="",
            keeper_dir="",
        )
        return Outcome(attempt=attempt, end=End(kind=EndKind.EXITED), diagnosis=known[key])

    return outcome


if __name__ == "__main__":
    main()
