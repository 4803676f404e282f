"""Listed values of `mem-fraction-static`, as the logs' memory figures foretell them.

The values are ordered: what was too high says that higher ones are, what was too low that lower
ones are. Where a log has figures they say more: which values leave no KV pool, which one too small
for what is needed, and which leave too little after graph capture. Other flags move the figures a
little, so this only makes cells less likely, and a pass refutes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.matrix import spell
from sglsweep.plan.hints import Hint
from sglsweep.plan.memory import FRACTION, MARGIN_GB, Side, memory_of, side_of
from sglsweep.plan.why import joined
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Axis, Value
    from sglsweep.plan.memory import Memory

BY_FIGURES = 0.85
"""Chance that a value fails whose pool is empty or too small by another attempt's figures."""
BY_MARGIN = 0.6
"""The same where it only leaves less than the margin after capture."""
BY_SIDE = 0.6
"""The same where another value failed for being too high or too low already."""
LEAST = 0.15


def memory_hints(
    axes: Sequence[Axis], outcomes: Sequence[Outcome], tokens: int | None
) -> tuple[Hint, ...]:
    """Return what the attempts foretell of each listed fraction; `tokens` is what is needed."""
    values = next((a.values for a in axes if a.name == FRACTION), ())
    told = [
        (outcome, memory)
        for outcome in outcomes
        if outcome.is_evidence and (memory := memory_of(outcome)) is not None
    ]
    found = [_hint(value, told, tokens) for value in values if len(values) > 1]
    return tuple(hint for hint in found if hint is not None)


def _hint(value: Value, told: Sequence[tuple[Outcome, Memory]], tokens: int | None) -> Hint | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    got_ready = any(m.fraction == value and o.timings.ready_s is not None for o, m in told)
    others = [(o, m) for o, m in told if m.fraction != value and _says_anything(o, m)]
    if got_ready or not others:
        return None
    chances = [_fails(float(value), o, m, tokens) for o, m in others]
    chance = sum(chances) / len(chances)
    if chance < LEAST:
        return None
    numbers = [str(o.attempt.number) for (o, _), one in zip(others, chances, strict=True) if one]
    whose = f"attempt{'' if len(numbers) == 1 else 's'} {joined(numbers)}"
    return Hint(
        id=f"{FRACTION} {value}",
        source=f"the memory figures of {whose}",
        chance=chance,
        verdict=Verdict.OOM,
        axis=FRACTION,
        values=frozenset({spell(value)}),
    )


def _says_anything(outcome: Outcome, memory: Memory) -> bool:
    return memory.smallest is not None or side_of(outcome) is not None


def _fails(value: float, outcome: Outcome, memory: Memory, tokens: int | None) -> float:
    """Return the chance that another fraction runs out of memory, by one attempt."""
    if memory.smallest is not None and not memory.is_above(value):
        return BY_FIGURES
    held = memory.tokens_at(value)
    if tokens is not None and held is not None and held < tokens:
        return BY_FIGURES
    left = memory.left_gb_at(value)
    if left is not None and left < MARGIN_GB:
        return BY_FIGURES if left <= 0 else BY_MARGIN
    side = side_of(outcome)
    is_beyond = (side is Side.TOO_HIGH and value > memory.fraction) or (
        side is Side.TOO_LOW and value < memory.fraction
    )
    return BY_SIDE if is_beyond else 0.0
