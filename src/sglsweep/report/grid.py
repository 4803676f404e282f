"""The matrix folded into rows and columns, so that what was launched stands close together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from sglsweep.matrix import Value, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Axis
    from sglsweep.report.view import RunView

_PAGE, _SQUARE, _LONGEST_LABEL = 900, 78, 24
"""Width of the page and of a square in pixels, and of a label in characters."""
_MOST_COLUMN_AXES = 4
_MOST_FOLDED = 12

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Squares by row and column; a row or column that holds no attempt is left out.

    Attributes:
        rows: values of the row axes; `columns` likewise.
        squares: (row, column) -> the attempts launched there, by number.
    """

    row_axes: tuple[Axis, ...]
    column_axes: tuple[Axis, ...]
    rows: tuple[tuple[Value, ...], ...]
    columns: tuple[tuple[Value, ...], ...]
    squares: dict[tuple[int, int], tuple[Outcome, ...]]


def fold(run: RunView) -> Grid | None:
    """Return the fold with the fewest squares; None where nothing varies or was launched."""
    axes = [axis for axis in run.axes if _varies(axis, run.outcomes)]
    if not axes or not run.outcomes:
        return None
    keys = [_key(tuple(o.attempt.cell.get(a.name) for a in axes)) for o in run.outcomes]
    labels = [_label_width(axis) for axis in axes]
    best = min(_column_choices(len(axes)), key=lambda chosen: _cost(keys, labels, chosen))
    return _grid(axes, set(best), run.outcomes)


def _label_width(axis: Axis) -> int:
    longest = max(len(axis.name), *(len(spell(value)) for value in axis.values))
    return 14 + 7 * min(longest, _LONGEST_LABEL)


def _varies(axis: Axis, outcomes: Sequence[Outcome]) -> bool:
    return len({spell(o.attempt.cell.get(axis.name)) for o in outcomes}) > 1


def _column_choices(number: int) -> list[tuple[int, ...]]:
    if number == 1:
        return [()]
    most = min(number - 1, _MOST_COLUMN_AXES)
    places = range(min(number, _MOST_FOLDED))
    return [chosen for size in range(1, most + 1) for chosen in combinations(places, size)]


def _cost(
    keys: Sequence[Key], labels: Sequence[int], chosen: tuple[int, ...]
) -> tuple[int, int, int]:
    """Rank a fold: one that fits the page, then few squares, then few axes side by side."""
    rest = [index for index in range(len(labels)) if index not in chosen]
    columns = len({tuple(key[index] for index in chosen) for key in keys})
    rows = len({tuple(key[index] for index in rest) for key in keys})
    width = sum(labels[index] for index in rest) + columns * _SQUARE
    return (max(0, width - _PAGE), rows * columns, len(chosen))


def _used(
    axes: Sequence[Axis], chosen: set[int], outcomes: Sequence[Outcome]
) -> tuple[list[tuple[Value, ...]], list[tuple[Value, ...]]]:
    """Return the rows and the columns that hold an attempt, in the order of the matrix."""
    return (
        _side(axes, chosen, outcomes, is_column=False),
        _side(axes, chosen, outcomes, is_column=True),
    )


def _side(
    axes: Sequence[Axis], chosen: set[int], outcomes: Sequence[Outcome], *, is_column: bool
) -> list[tuple[Value, ...]]:
    found: dict[Key, tuple[Value, ...]] = {}
    for outcome in outcomes:
        values = _values(axes, chosen, outcome, is_column=is_column)
        found.setdefault(_key(values), values)
    places = {
        key: _order(axes, chosen, values, is_column=is_column) for key, values in found.items()
    }
    return [found[key] for key in sorted(found, key=places.__getitem__)]


def _key(values: tuple[Value, ...]) -> Key:
    return tuple(spell(value) for value in values)


def _values(
    axes: Sequence[Axis], chosen: set[int], outcome: Outcome, *, is_column: bool
) -> tuple[Value, ...]:
    return tuple(
        outcome.attempt.cell.get(axis.name)
        for index, axis in enumerate(axes)
        if (index in chosen) is is_column
    )


def _order(
    axes: Sequence[Axis], chosen: set[int], values: tuple[Value, ...], *, is_column: bool
) -> list[int]:
    side = [axis for index, axis in enumerate(axes) if (index in chosen) is is_column]
    return [
        [spell(v) for v in axis.values].index(spell(value))
        for axis, value in zip(side, values, strict=True)
    ]


def _grid(axes: Sequence[Axis], chosen: set[int], outcomes: Sequence[Outcome]) -> Grid:
    rows, columns = _used(axes, chosen, outcomes)
    row_of = {_key(values): index for index, values in enumerate(rows)}
    column_of = {_key(values): index for index, values in enumerate(columns)}
    squares: dict[tuple[int, int], tuple[Outcome, ...]] = {}
    for outcome in outcomes:
        row = _key(_values(axes, chosen, outcome, is_column=False))
        column = _key(_values(axes, chosen, outcome, is_column=True))
        place = (row_of[row], column_of[column])
        squares[place] = (*squares.get(place, ()), outcome)
    return Grid(
        row_axes=tuple(a for i, a in enumerate(axes) if i not in chosen),
        column_axes=tuple(a for i, a in enumerate(axes) if i in chosen),
        rows=tuple(rows),
        columns=tuple(columns),
        squares=squares,
    )
