"""What a decision depends on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.matrix import Cell
from sglsweep.plan.stages import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Cells, Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.strategy import Evidence, Strategy

FRACTION = "mem-fraction-static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """`mem-fraction-static: {auto: true}`: where to start, and the way to the next value.

    Attributes:
        next_fraction: what the arithmetic says after one cell's outcomes; None: nothing better.
    """

    start: float
    next_fraction: Callable[[Sequence[Outcome]], float | None]
    most_steps: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Beforehand:
    """What is known without an attempt of this run.

    Attributes:
        priors: attempts of earlier runs; hints: what is published. Both as a strategy sees cells.
        source: where the remedy in an outcome's diagnosis is known from.
    """

    priors: Sequence[Evidence] = ()
    hints: Sequence[Hint] = ()
    source: Callable[[Outcome], str] = lambda _: "the catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything a decision depends on.

    Attributes:
        goals: stages in order.
        strategy: makes the strategy for a goal.
        launch_key: what makes two cells the same launch.
        spent_hours: hours of attempts so far, over all sessions of the run.
        running: attempts that are not over: their cells are taken, and tell nothing yet.
        tokens: what the KV pool must hold.
        nan_check: the settings that make an attempt's SGLang say where a NaN comes from; empty
            where it has none. None: nobody wants suspicions confirmed.
        beforehand: for the forecast; the strategy has its own.
        remedy: whether a failed cell with its remedy may be launched; None: no remedy is.
        effective: the same cells by what SGLang makes of them: a strategy sees those. None: it
            sees what was asked for.
    """

    cells: Cells
    includes: Sequence[Cell]
    outcomes: Sequence[Outcome]
    goals: Sequence[str]
    strategy: Callable[[str], Strategy]
    launch_key: Callable[[Cell], str]
    budget: Budget = field(default_factory=Budget)
    spent_hours: float = 0.0
    auto: Auto | None = None
    running: Sequence[Attempt] = ()
    tokens: int | None = None
    nan_check: Callable[[Outcome], Mapping[str, Value]] | None = None
    effective: EffectiveCells | None = None
    beforehand: Beforehand = field(default_factory=Beforehand)
    remedy: Callable[[Outcome, Cell], bool] | None = None


MOST_FROM_OUTSIDE = 2
"""Launches of one cell that others on the host may end before it is left alone."""


def worn_out(outcomes: Sequence[Outcome]) -> list[Cell]:
    """Return the cells, as launched, that others on the host ended so often."""
    ended = [o.attempt.cell for o in outcomes if o.is_from_outside]
    times = Counter(cell.key for cell in ended)
    return [cell for cell in ended if times[cell.key] >= MOST_FROM_OUTSIDE]


def base_of(cell: Cell, auto: Auto | None) -> Cell:
    """Return the cell without the memory fraction that the tool itself steps."""
    if auto is None or FRACTION not in cell.values:
        return cell
    return Cell((name, value) for name, value in cell.values.items() if name != FRACTION)


def at_start(cell: Cell, auto: Auto | None) -> Cell:
    """Return the cell as it is launched first: with the starting fraction unless it names one."""
    if auto is None or FRACTION in cell.values:
        return cell
    return cell.with_values({FRACTION: auto.start})
