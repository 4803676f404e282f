"""The default strategy keeps what it was measured at, on kept worlds of every family."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglsweep.plan.goal import Goal
from sglsweep.rehearsal.world_file import load_world
from sglsweep.simulate import Terms, plays

WORLDS = sorted((Path(__file__).parent / "worlds").glob("*.yaml"))
SEEDS = 3


def attempts(strategy: str) -> list[int]:
    terms = [Terms(Goal.FIRST_SERVING, 60, seed) for seed in range(SEEDS)]
    return [
        one.attempts
        for path in WORLDS
        if not path.stem.startswith("rare")
        for one in plays(strategy, load_world(path), terms)
    ]


def test_adaptive_needs_half_of_what_random_needs() -> None:
    adaptive, random = attempts("adaptive"), attempts("random")
    assert len(adaptive) == 10 * SEEDS
    assert sum(adaptive) < 0.6 * sum(random)
    assert sorted(adaptive)[len(adaptive) * 9 // 10] <= 12


@pytest.mark.parametrize(
    "path", [p for p in WORLDS if p.stem.startswith("rare")], ids=lambda path: path.stem
)
def test_a_rare_serving_cell_is_found_within_thirty_attempts(path: Path) -> None:
    (one,) = plays("adaptive", load_world(path), [Terms(Goal.FIRST_SERVING, 30, 0)])
    assert one.attempts_to_first_serving is not None
