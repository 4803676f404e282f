"""Flags that only attempts beside the matrix name: included cells, relaunches, remedies.

Without an axis of their own, a pass with such a flag would clear the cell that lacks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sglsweep.matrix import Axis, Cells, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Cell, Value
    from sglsweep.plan.strategy import Evidence

_WIDER: WeakKeyDictionary[Cells, dict[tuple[Axis, ...], Cells]] = WeakKeyDictionary()


def widened(cells: Cells, known: Sequence[Evidence]) -> Cells:
    """Return the same cells in the same order, with an axis for each flag beside the matrix.

    Listed cells do not name it: they pass what the sweep's `launch` says.
    """
    more = _axes_beside(cells, known)
    if not more:
        return cells
    remembered = _WIDER.setdefault(cells, {})
    wider = remembered.get(more)
    if wider is None:
        rest = (0,) * len(more)
        wider = Cells((*cells.axes, *more), [(*row, *rest) for row in cells.rows])
        remembered[more] = wider
    return wider


def with_values_of(cells: Cells, others: Sequence[Cell]) -> Cells:
    """Return no cell, on axes that hold every value of other cells too: to judge those."""
    more: dict[str, dict[str, Value]] = {
        axis.name: {spell(value): value for value in axis.values} for axis in cells.axes
    }
    for cell in others:
        for name, value in cell.values.items():
            more.setdefault(name, {spell(None): None}).setdefault(spell(value), value)
    axes = [Axis(name, tuple(values.values())) for name, values in more.items()]
    return Cells([axis for axis in axes if axis.values != (None,)], [])


def _axes_beside(cells: Cells, known: Sequence[Evidence]) -> tuple[Axis, ...]:
    listed = {axis.name for axis in cells.axes}
    found: dict[str, dict[str, Value]] = {}
    for entry in known:
        for name, value in entry.cell.values.items():
            if name not in listed and value is not None:
                found.setdefault(name, {})[spell(value)] = value
    return tuple(Axis(name, (None, *values.values())) for name, values in sorted(found.items()))
