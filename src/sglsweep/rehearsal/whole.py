"""A world's whole matrix at once, for simulation; a stand-in server starts without numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sglsweep.matrix import Axis, Cells, Value, spell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sglsweep.rehearsal.world import World


def effective_cells(world: World) -> Cells:
    """Return the distinct effective cells of the world's matrix, in its order."""
    axes = _axes_with_rewrites(world)
    rows = np.indices([len(axis.values) for axis in world.axes], dtype=np.int16)
    codes = rows.reshape(len(axes), -1).T.copy()
    open_rows = np.ones(len(codes), dtype=np.bool_)
    for rewrite in world.resolve:
        held = open_rows & _held(axes, codes, rewrite.when)
        open_rows &= ~held
        for name, value in rewrite.values.items():
            place, code = _place(axes, name, value)
            codes[held, place] = code
    if world.resolve:
        _, first = np.unique(codes, axis=0, return_index=True)
        codes = codes[np.sort(first)]
    return Cells(axes, [tuple(row) for row in codes.tolist()])


def deciding_rules(world: World, cells: Cells) -> NDArray[np.int64]:
    """Return for each effective cell the place of the rule that decides it; -1 where it serves."""
    codes = np.asarray(cells.rows, dtype=np.int16).reshape(len(cells.rows), len(cells.axes))
    decided = np.full(len(codes), -1, dtype=np.int64)
    for place, rule in enumerate(world.rules):
        decided[(decided < 0) & _held(cells.axes, codes, rule.when)] = place
    return decided


def _held(
    axes: tuple[Axis, ...], codes: NDArray[np.int16], when: Mapping[str, Value]
) -> NDArray[np.bool_]:
    held = np.ones(len(codes), dtype=np.bool_)
    for name, value in when.items():
        place, code = _place(axes, name, value)
        held &= codes[:, place] == code
    return held


def _place(axes: tuple[Axis, ...], name: str, value: Value) -> tuple[int, int]:
    """Return the axis and the value as positions; the code is -1 for a value no cell has."""
    place = [axis.name for axis in axes].index(name)
    words = [spell(known) for known in axes[place].values]
    return place, words.index(spell(value)) if spell(value) in words else -1


def _axes_with_rewrites(world: World) -> tuple[Axis, ...]:
    values = {axis.name: {spell(v): v for v in axis.values} for axis in world.axes}
    for rewrite in world.resolve:
        for name, value in rewrite.values.items():
            values[name].setdefault(spell(value), value)
    return tuple(Axis(name, tuple(found.values())) for name, found in values.items())
