"""The first decisions of a strategy when nothing serves, for `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.matrix import NO_EFFECT, spell
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Axis, Cell
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.strategy import Strategy


class Suppose(StrEnum):
    """What every launch is supposed to end in.

    ALIKE: all fail of one cause that blames nothing. BLAMED: each failure names one flag, and
    rightly: the first of the matrix whose value no earlier failure named and that has another.
    """

    ALIKE = "everything fails alike"
    BLAMED = "blames are right"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The first launches, and why there is none after them; "" where there are more."""

    steps: tuple[Launch, ...]
    end: str = ""


def rehearse(
    strategy: Strategy,
    seen: EffectiveCells,
    includes: Sequence[Cell],
    suppose: Suppose,
    count: int,
) -> Rehearsed:
    """Return the first launches if every attempt ends as supposed.

    Args:
        strategy: chooses them.
        seen: the matrix, by what SGLang makes of its cells where that is known.
        includes: cells that come first.
        suppose: how launches end.
        count: how many launches to return at most.
    """
    supposed = _Supposed(seen.cells.axes, suppose)
    steps: list[Launch] = []
    history: list[Evidence] = []
    while len(steps) < count:
        if len(steps) < len(includes):
            place = f"{len(steps) + 1} of {len(includes)}"
            step: Launch | Finish = Launch(
                seen.of(includes[len(steps)]), f"listed under include ({place})"
            )
        else:
            step = strategy.decide(seen.cells, history)
        if isinstance(step, Finish):
            return Rehearsed(tuple(steps), step.why)
        if len(steps) < len(includes):
            steps.append(Launch(includes[len(steps)], step.why))
        else:
            asked = seen.asked_for(step.cell)
            steps.append(Launch(asked, seen.told(step.why, asked)))
        failed = supposed.failure(len(steps), step.cell)
        if failed is None and len(steps) <= len(includes):
            # Of a cell that varies no axis nothing can be blamed; the sweep goes on all the same.
            failed = _failed(len(steps), step.cell, f"cause {len(steps)}", ())
        if failed is None:
            return Rehearsed(tuple(steps), f"attempt {len(steps)} has no value left to blame")
        history.append(failed)
    return Rehearsed(tuple(steps))


class _Supposed:
    """Makes up failures that do not contradict each other."""

    def __init__(self, axes: Sequence[Axis], suppose: Suppose) -> None:
        self._axes = axes
        self._suppose = suppose
        self._guilty: dict[str, set[str]] = {}

    def failure(self, number: int, cell: Cell) -> Evidence | None:
        """Return how a launch ends; None where nothing is left that could make it fail."""
        if self._suppose is Suppose.ALIKE:
            return _failed(number, cell, "one cause", ())
        axis = self._named(cell)
        if axis is None:
            return None
        return _failed(number, cell, f"{axis}={spell(cell.get(axis))}", (axis,))

    def _named(self, cell: Cell) -> str | None:
        """Return the flag that is to blame: one that was named before, else the next."""
        for axis in self._axes:
            if spell(cell.get(axis.name)) in self._guilty.get(axis.name, ()):
                return axis.name
        for axis in self._axes:
            word = spell(cell.get(axis.name))
            guilty = self._guilty.setdefault(axis.name, set())
            values = {spell(value) for value in axis.values} - {spell(NO_EFFECT)}
            if word in values and len(values - guilty) > 1:
                guilty.add(word)
                return axis.name
        return None


def _failed(number: int, cell: Cell, cause: str, blames: tuple[str, ...]) -> Evidence:
    return Evidence(
        number=number,
        cell=cell,
        verdict=Verdict.CRASH,
        phase=Phase.DECODE,
        cause=cause,
        blames=blames,
    )
