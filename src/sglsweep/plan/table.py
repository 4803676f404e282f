"""The matrix as numbers: what strategies compute on instead of tens of thousands of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sglsweep.matrix import NO_EFFECT, spell
from sglsweep.plan.split import Split, split_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sglsweep.matrix import Cell, Cells, Value
    from sglsweep.plan.strategy import Evidence

Codes = NDArray[np.int16]
"""Value indices, one column an axis; a value that no listed cell has gets a number of its own."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Table:
    """The listed cells as an array.

    Attributes:
        names: axis names, in the order of the matrix.
        codes: one row a cell, one column an axis.
        split: the same as halves.
        inert: for each axis the code of a flag that selects nothing; -1 where there is none.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    codes: Codes
    split: Split
    inert: Codes
    _code_of: tuple[dict[str, int], ...]
    _row_of: dict[bytes, int]

    def encode(self, cells: Iterable[Cell]) -> Codes:
        """Return the codes of any cells; unlisted values are numbered after the listed ones."""
        new: list[dict[str, int]] = [{} for _ in self.names]
        rows = []
        for cell in cells:
            row = []
            for axis, name in enumerate(self.names):
                word = spell(cell.get(name))
                known = self._code_of[axis].get(word)
                if known is None:
                    known = new[axis].setdefault(word, len(self.values[axis]) + len(new[axis]))
                row.append(known)
            rows.append(row)
        return np.asarray(rows, dtype=np.int16).reshape(len(rows), len(self.names))

    def changed(self, codes: Codes, base: Codes) -> NDArray[np.bool_]:
        """Return where codes differ from others; a flag that selects nothing is no change."""
        differ: NDArray[np.bool_] = (codes != base) & (codes != self.inert) & (base != self.inert)
        return differ

    def index_of(self, codes: Codes) -> int | None:
        """Return which listed cell has these codes; None where none has."""
        return self._row_of.get(codes.tobytes())

    def find(self, cell: Cell) -> int | None:
        """Return which listed cell is equal to this one; a flag that is not passed is no flag.

        Where none is, the first that differs only in flags that select nothing in one of the two:
        a change can put a flag to sleep, or wake it.
        """
        passed = {name for name, value in cell.values.items() if value is not None}
        if not passed.issubset(self.names):
            return None
        codes = self.encode([cell])[0]
        index = self.index_of(codes)
        if index is None and (self.inert >= 0).any():
            alike = np.flatnonzero(~self.changed(self.codes, codes).any(axis=1))
            return int(alike[0]) if alike.size else None
        return index

    def __len__(self) -> int:
        return len(self.codes)


_TABLES: WeakKeyDictionary[Cells, Table] = WeakKeyDictionary()


def table_of(cells: Cells) -> Table:
    """Return the matrix as a table; remembered, since turning 35,000 rows costs 30 ms."""
    table = _TABLES.get(cells)
    if table is None:
        table = _TABLES[cells] = _build(cells)
    return table


def _build(cells: Cells) -> Table:
    codes = np.asarray(cells.rows, dtype=np.int16).reshape(len(cells.rows), len(cells.axes))
    codes.setflags(write=False)
    flat, width = codes.tobytes(), codes.shape[1] * codes.itemsize
    row_of = {flat[i * width : (i + 1) * width]: i for i in range(len(codes) - 1, -1, -1)}
    return Table(
        names=tuple(axis.name for axis in cells.axes),
        values=tuple(axis.values for axis in cells.axes),
        codes=codes,
        split=split_of(codes),
        inert=np.asarray(
            [a.values.index(NO_EFFECT) if NO_EFFECT in a.values else -1 for a in cells.axes],
            dtype=np.int16,
        ),
        _code_of=tuple(
            {spell(value): code for code, value in enumerate(axis.values)} for axis in cells.axes
        ),
        _row_of=row_of,
    )


def telling(history: Sequence[Evidence]) -> list[Evidence]:
    """Return the attempts that say something about their cell.

    A lost host and an interruption do not: such a cell counts as not tried.
    """
    return [entry for entry in history if entry.verdict.is_evidence]


def tried(table: Table, history: Sequence[Evidence]) -> NDArray[np.bool_]:
    """Return, for each listed cell, whether an attempt has said something about it.

    An attempt that passes a flag beside the axes was another launch.
    """
    done = np.zeros(len(table), dtype=np.bool_)
    for entry in telling(history):
        index = table.find(entry.cell)
        if index is not None:
            done[index] = True
    return done
