"""The strategies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.plan.adaptive import Adaptive
from sglsweep.plan.goal import Goal
from sglsweep.plan.one_at_a_time import OneAtATime
from sglsweep.plan.ordered import Grid, Random
from sglsweep.plan.pairwise import Pairwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.plan.hints import Hint
    from sglsweep.plan.hypotheses import Claim
    from sglsweep.plan.strategy import Evidence, Strategy

DEFAULT = "adaptive"
NAMES = ("adaptive", "grid", "random", "pairwise", "one-at-a-time")


def make(  # noqa: PLR0913 - what is known beforehand, by name; most callers give none of it
    name: str = DEFAULT,
    *,
    seed: int = 0,
    goal: str = Goal.FIRST_SERVING,
    priors: Sequence[Evidence] = (),
    claims: Sequence[Claim] = (),
    hints: Sequence[Hint] = (),
) -> Strategy:
    """Return a strategy; only adaptive heeds earlier runs, the user's claims and the catalogue.

    Raises:
        ConfigError: there is no such strategy or goal.
    """
    wanted = _goal(goal)
    if name == "adaptive":
        return Adaptive(
            seed=seed,
            goal=wanted,
            priors=tuple(priors),
            claims=tuple(claims),
            hints=tuple(hints),
        )
    if name == "grid":
        return Grid(goal=wanted)
    if name == "random":
        return Random(seed=seed, goal=wanted)
    if name == "pairwise":
        return Pairwise(seed=seed, goal=wanted)
    if name == "one-at-a-time":
        return OneAtATime(goal=wanted)
    raise ConfigError(
        f"there is no strategy {name!r}", next_step=f"Use one of: {', '.join(NAMES)}."
    )


def _goal(name: str) -> Goal:
    if name not in list(Goal):
        raise ConfigError(
            f"there is no goal {name!r}", next_step=f"Use one of: {', '.join(Goal)}."
        )
    return Goal(name)
