"""What each stage of a run may spend, and what is left to do where nothing serves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.plan.goal import Goal
from sglsweep.plan.why import joined, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome

KEPT = 0.25
"""Share that is kept for later goals where the file does not say, if they can use it."""
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much the whole run may spend; None = no limit.

    Attributes:
        keep: share that first-serving may not spend; None: `KEPT`, where a later goal can use it
            although nothing serves.
    """

    hours: float | None = None
    attempts: int | None = None
    keep: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has spent: attempts begun, and hours of them."""

    attempts: int
    hours: float


def share_spent(goals: Sequence[str], budget: Budget, spent: Spent) -> str:
    """Say that first-serving has spent its share; "" while it has not, or may spend all."""
    if Goal.FIRST_SERVING not in goals[:-1]:
        return ""
    later = goals[goals.index(Goal.FIRST_SERVING) + 1 :]
    keep = budget.keep
    if keep is None:
        keep = KEPT if without_a_serving_cell(goals) else 0.0
    kept = f"{percent(keep)} is kept for {joined(list(later))}"
    # At least one attempt: a search that may not begin is none.
    # Rounded first: a share of 80 % leaves 4 of 20, not 3.9999999999999996.
    left = None if budget.attempts is None else round((1 - keep) * budget.attempts, 6)
    most = None if left is None else max(1, math.floor(left))
    if keep and most is not None and spent.attempts >= most:
        return f"first-serving has spent its {most} of {budget.attempts} attempts ({kept})"
    hours = None if budget.hours is None else (1 - keep) * budget.hours
    if keep and hours is not None and spent.hours >= hours:
        return f"first-serving has spent its {hours:g} of {budget.hours:g} hours ({kept})"
    return ""


def without_a_serving_cell(goals: Sequence[str]) -> list[str]:
    """Return what the goals behind first-serving come to where nothing serves.

    To explain is then to tell what fails; there is nothing to be the fastest.
    """
    later = goals[goals.index(Goal.FIRST_SERVING) + 1 :]
    return [Goal.MAP.value] if {Goal.EXPLAIN, Goal.MAP} & set(later) else []


def attempts_left(budget: Budget, outcomes: Sequence[Outcome], spent: Spent) -> int | None:
    """Return how many attempts the budget still allows, by what they took; None = no limit."""
    left: list[int] = []
    if budget.attempts is not None:
        left.append(budget.attempts - spent.attempts)
    took = [o.timings.total_s for o in outcomes if o.timings.total_s > 0]
    if budget.hours is not None and took:
        each = sum(took) / len(took) / _SECONDS_PER_HOUR
        left.append(math.floor((budget.hours - spent.hours) / each))
    return max(0, min(left)) if left else None
