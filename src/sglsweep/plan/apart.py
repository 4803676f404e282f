"""Cells that come to one on every axis and are not the same: told apart by what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.matrix import Axis, Cell
    from sglsweep.plan.axis_values import Row


def told_apart(listed: Sequence[Cell], acts: Mapping[str, Row], axes: Sequence[Axis]) -> list[Row]:
    """Return a row for each cell, no two alike: values stay as requested until that is so."""
    asked = [tuple(cell.get(axis.name) for axis in axes) for cell in listed]
    kept: set[tuple[int, str]] = set()
    alone: set[int] = set()
    while True:
        rows = [
            own
            if place in alone or listed[place].key not in acts
            else tuple(
                value if (axis, spell(value)) in kept else act
                for axis, (value, act) in enumerate(zip(own, acts[listed[place].key], strict=True))
            )
            for place, own in enumerate(asked)
        ]
        clashes = _clashes(rows)
        if not clashes:
            return rows
        before = len(kept) + len(alone)
        for one, other in _nearest(clashes, asked):
            if listed[one].key in acts and listed[other].key in acts:
                kept |= {
                    (axis, spell(asked[at][axis]))
                    for axis in range(len(axes))
                    for at in (one, other)
                    if spell(asked[one][axis]) != spell(asked[other][axis])
                }
            else:
                alone |= {one, other}
        if len(kept) + len(alone) == before:
            return asked


def _clashes(rows: Sequence[Row]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(",".join(map(spell, row)), []).append(place)
    return [group for group in places.values() if len(group) > 1]


def _nearest(clashes: Sequence[Sequence[int]], asked: Sequence[Row]) -> list[tuple[int, int]]:
    """Return of each clash the pairs that differ in the fewest requested values."""
    found = []
    for group in clashes:
        first, *others = group
        apart = [
            sum(spell(a) != spell(b) for a, b in zip(asked[first], asked[other], strict=True))
            for other in others
        ]
        found += [
            (first, other) for other, n in zip(others, apart, strict=True) if n == min(apart)
        ]
    return found
