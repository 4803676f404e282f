"""The strategies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.plan.adaptive import Adaptive
from sglsweep.plan.goal import Goal
from sglsweep.plan.one_at_a_time import OneAtATime
from sglsweep.plan.ordered import Grid, Random
from sglsweep.plan.pairwise import ORDERS, Pairwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.catalogue.startup import StartUp
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
    start_ups: Sequence[StartUp] = (),
    order: int = 2,
) -> Strategy:
    """Return a strategy; only adaptive heeds earlier runs, the user's claims and the catalogue.

    `order` is of pairwise: the number of flags whose values are combined first.

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
            start_ups=tuple(start_ups),
        )
    if name == "grid":
        return Grid(goal=wanted)
    if name == "random":
        return Random(seed=seed, goal=wanted)
    if name == "pairwise":
        return Pairwise(seed=seed, goal=wanted, order=_order(order))
    if name == "one-at-a-time":
        return OneAtATime(goal=wanted)
    raise ConfigError(
        f"there is no strategy {name!r}", next_step=f"Use one of: {', '.join(NAMES)}."
    )


def _order(number: int) -> int:
    if number not in ORDERS:
        raise ConfigError(
            f"there is no covering array of order {number} here",
            next_step=f"Use an order from {ORDERS[0]} (pairs) to {ORDERS[-1]}.",
        )
    return number


def _goal(name: str) -> Goal:
    if name not in list(Goal):
        raise ConfigError(
            f"there is no goal {name!r}", next_step=f"Use one of: {', '.join(Goal)}."
        )
    return Goal(name)
