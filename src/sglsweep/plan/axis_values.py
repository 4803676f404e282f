"""What acts on the axes of a matrix, read from what SGLang makes of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.matrix import Value, spell
from sglsweep.plan.equal_cells import acting, fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Axis
    from sglsweep.plan.equal_cells import Candidate

Row = tuple[Value, ...]
"""A value for every axis."""


class Reading:
    """Reads from what SGLang makes of a cell the values on the axes of a matrix."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self._axes = [(axis, canonical(axis.name)) for axis in axes]

    def row(self, candidate: Candidate) -> Row:
        """Return what acts on every axis; what resolution does not show is as requested."""
        effective = candidate.effective
        folded = acting(effective, candidate.rules)
        fields = fields_of(effective)
        row = []
        for axis, flag in self._axes:
            asked = candidate.cell.get(axis.name)
            name = None if axis.name.startswith("env.") else fields.get(flag)
            if name is None:
                row.append(asked)
            elif folded[name] is not effective[name]:
                row.append(_plain(folded[name], asked))
            else:
                row.append(on_axis(axis, asked, effective[name]))
        return tuple(row)


def on_axis(axis: Axis, asked: Value, effective: object) -> Value:
    """Return an effective value as the axis would spell it.

    A number that SGLang works out, and that no other cell could ask for, stays "not passed".
    """
    listed = {spell(value): value for value in axis.values}
    if effective is not None and not isinstance(effective, bool | int | float | str):
        return asked
    if spell(effective) in listed:
        return listed[spell(effective)]
    word = str(effective)
    alike = {word, *same_values(axis.name, word)}
    for value in axis.values:
        if value is not None and not isinstance(value, bool) and str(value) in alike:
            return value
    is_number = isinstance(effective, int | float) and not isinstance(effective, bool)
    if asked is None and (is_number or effective in {False, "auto", None}):
        return None
    return None if effective is False and None in axis.values else effective


def _plain(value: object, asked: Value) -> Value:
    return value if value is None or isinstance(value, bool | int | float | str) else asked
