"""Axes, cells and the lazy product of a matrix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

Value = None | bool | int | float | str
"""A flag's value: None = not passed, True = bare flag, False = `--no-x` or absent."""

NO_EFFECT = "without effect"
"""What stands in an effective cell for a flag that selects nothing there, whatever its value."""


def spell(value: Value) -> str:
    """Write a value so that true, 1, 1.0 and "1" stay different (Python holds them equal)."""
    return json.dumps(value, ensure_ascii=True)


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the matrix: a flag without dashes, `env.NAME`, `build` or `model`."""

    name: str
    values: tuple[Value, ...]


class Cell:
    """One point of the matrix: a value for each axis it names. Compared by `key`.

    An axis that a cell does not name is not passed.
    """

    __slots__ = ("_values", "key")

    def __init__(self, values: Mapping[str, Value] | Iterable[tuple[str, Value]]) -> None:
        self._values: dict[str, Value] = dict(values)
        self.key: str = ",".join(
            f"{name}={spell(self._values[name])}" for name in sorted(self._values)
        )

    @property
    def values(self) -> Mapping[str, Value]:
        """Axis name -> value, in the order of the matrix."""
        return self._values

    @property
    def short_key(self) -> str:
        """Eight hex digits that name this cell on a command line."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]

    def get(self, axis: str) -> Value:
        """Return the value on `axis`, None where the cell does not name it."""
        return self._values.get(axis)

    def with_values(self, changes: Mapping[str, Value]) -> Cell:
        """Return this cell with some values replaced or added."""
        return Cell({**self._values, **changes})

    def difference(self, other: Cell) -> tuple[str, ...]:
        """Axes on which the two differ, sorted; an unnamed axis equals None.

        A flag that selects nothing in one of them is no difference.
        """
        names = sorted({*self._values, *other._values})
        return tuple(
            n
            for n in names
            if spell(self.get(n)) != spell(other.get(n))
            and NO_EFFECT not in (self.get(n), other.get(n))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Cell({self.key})"


class Cells(Sequence[Cell]):
    """The cells of a matrix, made when asked for.

    `rows` holds, for each cell, the index of its value on every axis; it is what a strategy
    works on, since tens of thousands of Cell objects would cost more than the decision.
    """

    def __init__(self, axes: Sequence[Axis], rows: Sequence[tuple[int, ...]]) -> None:
        self.axes: tuple[Axis, ...] = tuple(axes)
        self.rows: Sequence[tuple[int, ...]] = rows

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> Cells: ...
    def __getitem__(self, index: int | slice) -> Cell | Cells:
        if isinstance(index, slice):
            return Cells(self.axes, self.rows[index])
        row = self.rows[index]
        return Cell(
            (axis.name, axis.values[code]) for axis, code in zip(self.axes, row, strict=True)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Cell]:
        return (self[index] for index in range(len(self)))
