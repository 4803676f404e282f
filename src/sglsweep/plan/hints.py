"""What speaks against cells beside their own attempts: what is published, and memory figures.

A hint is a guess about these cells, so the attempts decide: a pass in one of its cells all but
refutes it, a failure as foretold confirms it, and nothing is ever ruled out by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from sglsweep.matrix import spell
from sglsweep.plan.table import table_of
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sglsweep.matrix import Cell, Cells
    from sglsweep.plan.strategy import Evidence

PASSES_ALL_THE_SAME = 0.03
"""Chance that a cell serves although what is published about it is true here."""
FORETOLD = 3.0
"""How much likelier a failure with the foretold verdict is where the hint is true."""
NAMED_FROM = 0.05
"""A hint that takes less from a cell's chance is not worth a word."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A condition that cells of this matrix meet, named by their keys or by a value.

    Attributes:
        id: of the catalogue's entry, or the value.
        source: where it is known from.
        chance: that it holds here, before this run shows anything.
        verdict: how a launch is said to end.
        cells: keys of the cells that meet it.
        axis: with `values`, spelled: the cells with one of them meet it.
    """

    id: str
    source: str
    chance: float
    verdict: Verdict
    cells: frozenset[str] = field(default=frozenset(), repr=False)
    axis: str = ""
    values: frozenset[str] = frozenset()

    def meets(self, cell: Cell) -> bool:
        """True if a cell is one that this speaks against."""
        return cell.key in self.cells or (
            bool(self.axis) and spell(cell.get(self.axis)) in self.values
        )

    def believed(self, known: Iterable[Evidence]) -> float:
        """Return the chance that it holds, after the attempts."""
        odds = self.chance / (1.0 - self.chance)
        for entry in known:
            if not self.meets(entry.cell):
                continue
            if entry.verdict is Verdict.SERVING:
                odds *= 1.0 - entry.weight + entry.weight * PASSES_ALL_THE_SAME
            elif entry.verdict is self.verdict:
                odds *= 1.0 - entry.weight + entry.weight * FORETOLD
        return odds / (1.0 + odds)


@dataclass(frozen=True, slots=True, eq=False)
class Hinted:
    """What hints make of every cell.

    Attributes:
        factor: what remains of each cell's chance.
        among: for each hint, which cells meet it, and the chance that it holds.
    """

    factor: NDArray[np.float64]
    among: tuple[tuple[Hint, NDArray[np.bool_], float], ...]

    def against(self, index: int) -> tuple[Hint, ...]:
        """Return the hints that speak against a cell, the surest first."""
        found = [(sure, hint) for hint, met, sure in self.among if met[index]]
        found.sort(key=lambda item: -item[0])
        return tuple(hint for sure, hint in found if sure >= NAMED_FROM)


def hinted(cells: Cells, hints: Sequence[Hint], known: Sequence[Evidence]) -> Hinted:
    """Return what is left of each cell's chance by what is published."""
    factor = np.ones(len(cells))
    among = []
    for hint in hints:
        met, sure = _meeting(cells, hint), hint.believed(known)
        factor[met] *= 1.0 - sure * (1.0 - PASSES_ALL_THE_SAME)
        among.append((hint, met, sure))
    return Hinted(factor, tuple(among))


_MEETING: WeakKeyDictionary[Cells, dict[Hint, NDArray[np.bool_]]] = WeakKeyDictionary()


def _meeting(cells: Cells, hint: Hint) -> NDArray[np.bool_]:
    """Return which cells meet a hint; remembered, since writing 5,000 keys takes 30 ms."""
    if hint.axis:
        return _with_values(cells, hint)
    remembered = _MEETING.setdefault(cells, {})
    met = remembered.get(hint)
    if met is None:
        met = np.fromiter((cell.key in hint.cells for cell in cells), dtype=np.bool_)
        remembered[hint] = met
    return met


def _with_values(cells: Cells, hint: Hint) -> NDArray[np.bool_]:
    table = table_of(cells)
    if hint.axis not in table.names:
        return np.zeros(len(cells), dtype=np.bool_)
    axis = table.names.index(hint.axis)
    codes = [code for code, v in enumerate(table.values[axis]) if spell(v) in hint.values]
    return np.isin(table.codes[:, axis], codes)
