"""Measure the strategies on generated worlds and write the table of docs/strategies.md.

    python bench/planner/measure.py --write docs/strategies.md

Worlds come from bench/worlds/generate.py with a seed that was not used to set the rates. TPE is
Optuna's sampler, told how far each attempt got; without optuna installed its column is left out.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.worlds.generate import FAMILIES, world_text

from sglsweep.matrix import Axis, Cell, Cells
from sglsweep.plan import strategies
from sglsweep.plan.bisect import Case, nearest_serving, next_step
from sglsweep.plan.goal import Goal
from sglsweep.plan.strategy import Evidence, Launch
from sglsweep.plan.table import table_of
from sglsweep.rehearsal.whole import effective_cells
from sglsweep.rehearsal.world import World, deciding_rule, evaluate
from sglsweep.rehearsal.world_file import load_world, parse_world
from sglsweep.simulate import Terms, attempts, plays
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sglsweep.plan.strategy import Finish, Strategy

BUDGET = 150
MAP_BUDGET = 60
LEAD_CASE = Path(__file__).parents[2] / "configs" / "worlds" / "glm5-sm120.yaml"
LEAD_SEEDS = 20
TIMED_WORLDS = 10
CELLS = 34_560
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
HARD = {
    "clear": "blames are right in 80 %, else absent",
    "coarse": "most faults share one cause, no blames",
    "misled": "half of the blames name an innocent flag",
    "flaky": "5 % of serving cells fail once",
    "rare": "0.05 to 1 % of the cells serve",
    "dependent": "flags that rewrite each other",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: worlds of each family, seeds of each world, seed of the worlds."""

    worlds: int
    seeds: int
    seed: int

    def each(self, family: str) -> list[tuple[World, int]]:
        """Return every play of a family: a world and a seed."""
        made = [_world(family, number, self.seed) for number in range(self.worlds)]
        return [(world, seed) for world in made for seed in range(self.seeds)]


def main() -> None:
    """Print the tables; with --write, put them between the markers of a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    effort = Effort(worlds=options.worlds, seeds=options.seeds, seed=options.seed)
    parts = [first_serving(effort), lead_case(), mapping(effort), bisecting(effort), speed(effort)]
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        document = options.write.read_text(encoding="utf-8")
        between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
        block = f"{BEGIN}\n{text}\n{END}"
        options.write.write_text(between.sub(lambda _: block, document), encoding="utf-8")


@cache
def _world(family: str, number: int, seed: int) -> World:
    text = world_text(family, number, seed)
    return parse_world(text, name=f"{family}-{number:02}", where=family)


@lru_cache(maxsize=64)
def _cells(family: str, number: int, seed: int) -> Cells:
    return effective_cells(_world(family, number, seed))


def first_serving(effort: Effort) -> str:
    """Return the table of attempts to the first serving cell."""
    ways: dict[str, Callable[[World, Cells, int], int]] = {
        name: _by_strategy(name) for name in strategies.NAMES
    }
    if find_spec("optuna"):
        ways["TPE (Optuna)"] = _by_tpe
    rows = [
        [
            family,
            HARD[family],
            *(_median_and_p90(_counts(effort, family, way)) for way in ways.values()),
        ]
        for family in FAMILIES
    ]
    plays = effort.worlds * effort.seeds
    return (
        f"Attempts to the first serving cell, median / p90 of {plays} plays a family "
        f"({effort.worlds} worlds, {effort.seeds} seeds, budget {BUDGET}):\n\n"
        + _markdown(["family", "what is hard", *ways], rows)
    )


def lead_case() -> str:
    """Return how soon the strategies find the corner of the lead case that serves."""
    world = load_world(LEAD_CASE)
    terms = [Terms(seed=seed) for seed in range(LEAD_SEEDS)]
    found = {}
    for name in (strategies.DEFAULT, "random", "pairwise"):
        counts = [p.attempts_to_first_serving or BUDGET + 1 for p in plays(name, world, terms)]
        found[name] = _median_and_p90(counts)
    return (
        f"The lead case (`configs/worlds/glm5-sm120.yaml`, {LEAD_SEEDS} seeds), attempts to the "
        f"first serving cell, median / p90: "
        + ", ".join(f"{name} {word}" for name, word in found.items())
        + "."
    )


def speed(effort: Effort) -> str:
    """Return how long decisions take, in processor time of one core."""
    decisions: list[float] = []
    started = time.process_time()
    for family in FAMILIES:
        for number in range(TIMED_WORLDS):
            text = world_text(family, number, effort.seed)
            world = parse_world(text, name=family, where=family)
            cells = effective_cells(world)
            for seed in range(3):
                timed = _Timed(strategies.make(seed=seed), decisions)
                attempts(timed, world, cells, Terms(Goal.FIRST_SERVING, BUDGET, seed))
    took = time.process_time() - started
    usual = 1000 * statistics.median(decisions)
    longest = 1000 * float(np.percentile(decisions, 99))
    return (
        f"Processor time: an adaptive decision over {CELLS:,} cells takes {usual:.0f} ms in the "
        f"median, {longest:.0f} ms at most in 99 of 100; {len(FAMILIES) * TIMED_WORLDS * 3} plays "
        f"of the six families, their worlds read and solved as well, {took:.0f} s; one decision "
        f"over 100,000 cells after 200 attempts {1000 * _large():.0f} ms."
    )


@dataclass(frozen=True, slots=True)
class _Timed:
    """A strategy whose decisions are timed."""

    strategy: Strategy
    took: list[float]

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        started = time.process_time()
        step = self.strategy.decide(cells, history)
        self.took.append(time.process_time() - started)
        return step


def _large() -> float:
    """Return the seconds of a decision over 100,000 cells and 200 attempts, the table made."""
    sizes = (5, 5, 5, 5, 4, 4, 10)
    axes = tuple(Axis(f"flag-{i}", tuple(range(size))) for i, size in enumerate(sizes))
    cells = Cells(axes, list(product(*(range(size) for size in sizes))))
    table_of(cells)
    rng = np.random.default_rng(0)
    history = [
        Evidence(
            number=number + 1,
            cell=cells[int(rng.integers(len(cells)))],
            verdict=Verdict.CRASH,
            phase=list(Phase)[int(rng.integers(1, 10))],
            cause=f"cause-{rng.integers(25)}",
        )
        for number in range(200)
    ]
    took: list[float] = []
    _Timed(strategies.make(), took).decide(cells, history)
    return took[0]


def mapping(effort: Effort) -> str:
    """Return the table of faults named exactly by goal map."""
    rows = []
    for family in FAMILIES:
        row = [family]
        for name in (strategies.DEFAULT, "pairwise", "random"):
            shares = [
                plays(name, world, [Terms(Goal.MAP, MAP_BUDGET, seed)])[0].rules_recovered
                for world, seed in effort.each(family)
                if seed == 0
            ]
            row.append(f"{statistics.fmean(shares):.0%}")
        rows.append(row)
    return (
        f"Minimal failing combinations that the blame table names exactly after {MAP_BUDGET} "
        "attempts of goal `map`, mean:\n\n"
        + _markdown(["family", strategies.DEFAULT, "pairwise", "random"], rows)
    )


def bisecting(effort: Effort) -> str:
    """Return the table of launches that a proof needs after a first serving cell is known."""
    rows = []
    for family in FAMILIES:
        ends = [end for world, seed in effort.each(family) for end in _bisections(world, seed)]
        extra = [launches for launches, _ in ends]
        right = statistics.fmean(is_right for _, is_right in ends)
        rows.append([family, str(len(ends)), _median_and_p90(extra), f"{right:.1%}"])
    return (
        "`bisect` of the last three failures of each play: extra launches, median / p90, and how "
        "often the flags it names are those of the true fault:\n\n"
        + _markdown(["family", "cases", "launches", "right"], rows)
    )


def _bisections(world: World, seed: int) -> Iterable[tuple[int, bool]]:
    cells = effective_cells(world)
    strategy = strategies.make(seed=seed)
    history = attempts(strategy, world, cells, Terms(seed=seed))
    for bad in [entry for entry in history if entry.cause][-3:]:
        good = nearest_serving(bad, history)
        if good is not None:
            yield _bisection(world, seed, Case(cells.axes, bad, good, history))


def _bisection(world: World, seed: int, case: Case) -> tuple[int, bool]:
    history = list(case.history)
    known = len(history)
    while isinstance(step := next_step(Case(case.axes, case.bad, case.good, history)), Launch):
        launch = 1 + sum(entry.cell == step.cell for entry in history)
        history.append(_outcome(world, step.cell, len(history) + 1, (launch, seed)))
    rule = deciding_rule(world, case.bad.cell)
    truth = set(rule.when) & set(case.differing) if rule else set()
    return len(history) - known, set(step.values) == truth


def _outcome(world: World, cell: Cell, number: int, which: tuple[int, int]) -> Evidence:
    launch, seed = which
    truth = evaluate(world, cell, launch=launch, seed=seed)
    return Evidence(
        number=number,
        cell=cell,
        verdict=truth.verdict,
        phase=truth.phase,
        cause=truth.cause,
        blames=truth.blames,
    )


def _counts(effort: Effort, family: str, way: Callable[[World, Cells, int], int]) -> list[int]:
    return [
        way(world, _cells(family, int(world.name[-2:]), effort.seed), seed)
        for world, seed in effort.each(family)
    ]


def _by_strategy(name: str) -> Callable[[World, Cells, int], int]:
    def count(world: World, cells: Cells, seed: int) -> int:
        terms = Terms(Goal.FIRST_SERVING, BUDGET, seed)
        history = attempts(strategies.make(name, seed=seed), world, cells, terms)
        served = any(entry.verdict is Verdict.SERVING for entry in history)
        return len(history) if served else BUDGET + 1

    return count


def _by_tpe(world: World, _: Cells, seed: int) -> int:
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
    )
    launches: dict[str, int] = {}
    for number in range(1, BUDGET + 1):
        trial = study.ask()
        codes = {a: trial.suggest_categorical(a.name, range(len(a.values))) for a in world.axes}
        cell = world.effective(Cell((axis.name, axis.values[c]) for axis, c in codes.items()))
        launches[cell.key] = launches.get(cell.key, 0) + 1
        truth = evaluate(world, cell, launch=launches[cell.key], seed=seed)
        if truth.verdict is Verdict.SERVING:
            return number
        study.tell(trial, float(truth.phase.order))
    return BUDGET + 1


def _median_and_p90(counts: Sequence[int]) -> str:
    return f"{_shown(statistics.median(counts))} / {_shown(float(np.percentile(counts, 90)))}"


def _shown(value: float) -> str:
    return f"{BUDGET}+" if value > BUDGET else f"{value:.1f}".removesuffix(".0")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
