"""The user's hypotheses: which launch decides an open one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.matrix import spell
from sglsweep.plan.strategy import Launch
from sglsweep.plan.table import table_of
from sglsweep.plan.why import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.matrix import Cell, Cells, Value
    from sglsweep.plan.strategy import Evidence


@dataclass(frozen=True, slots=True)
class Claim:
    """A hypothesis about the cells that have certain values.

    Attributes:
        when: axis -> the values it speaks of.
    """

    id: str
    when: Mapping[str, tuple[Value, ...]]

    def speaks_of(self, cell: Cell) -> bool:
        """True if the cell has one of the values on every axis."""
        return all(
            spell(cell.get(axis)) in {spell(value) for value in values}
            for axis, values in self.when.items()
        )


def is_decided(claim: Claim, known: Sequence[Evidence]) -> bool:
    """True if two attempts differ only in what the claim is about, one with it, one without."""
    return any(
        set(inside.cell.difference(outside.cell)) <= set(claim.when)
        for inside in known
        if claim.speaks_of(inside.cell)
        for outside in known
        if not claim.speaks_of(outside.cell)
    )


def next_decision(
    cells: Cells, known: Sequence[Evidence], claims: Sequence[Claim]
) -> Launch | None:
    """Return a launch that decides an open claim: the furthest attempt, with or without it."""
    table = table_of(cells)
    tried = {entry.cell.key for entry in known}
    for claim in claims:
        if is_decided(claim, known):
            continue
        for entry in sorted(known, key=lambda e: (-e.phase.order, -e.number)):
            for cell in _counterparts(claim, cells, entry.cell):
                index = table.find(cell)
                if index is not None and cells[index].key not in tried:
                    changed = [f"{a}={spell(cell.get(a))}" for a in cell.difference(entry.cell)]
                    why = f"decides {claim.id}: attempt {entry.number} with {joined(changed)}"
                    return Launch(cells[index], why)
    return None


def _counterparts(claim: Claim, cells: Cells, cell: Cell) -> Iterator[Cell]:
    """Yield the same cell on the other side of the claim."""
    if not claim.speaks_of(cell):
        yield cell.with_values({axis: values[0] for axis, values in claim.when.items()})
        return
    for axis in cells.axes:
        spoken_of = {spell(value) for value in claim.when.get(axis.name, ())}
        for value in axis.values if spoken_of else ():
            if spell(value) not in spoken_of:
                yield cell.with_values({axis.name: value})
