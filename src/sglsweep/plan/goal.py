"""What a sweep is after, and when it has it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.plan.strategy import Evidence


class Goal(StrEnum):
    """What the attempts are spent on."""

    FIRST_SERVING = "first-serving"
    EXPLAIN = "explain"
    MAP = "map"
    FASTEST = "fastest"


def goal_reached(goal: Goal, history: Sequence[Evidence]) -> str | None:
    """Say which attempt reached the goal; None while the search goes on.

    Only first-serving ends by an outcome; the others end by budget or by what is left to learn.
    """
    if goal is not Goal.FIRST_SERVING:
        return None
    served = next((e for e in history if e.verdict is Verdict.SERVING), None)
    return f"attempt {served.number} serves" if served else None
