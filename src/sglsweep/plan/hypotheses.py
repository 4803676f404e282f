"""The user's hypotheses: which launch decides an open one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.matrix import spell
from sglsweep.plan.axis_values import on_axis
from sglsweep.plan.strategy import Launch
from sglsweep.plan.table import table_of
from sglsweep.plan.why import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.matrix import Cell, Cells, Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.strategy import Evidence

_EFFECTIVE = "effective."


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


def on_effective(claim: Claim, seen: EffectiveCells) -> Claim | None:
    """Return a claim about what acts in the cells; None where none of its values acts anywhere.

    A key `effective.FLAG` speaks of what SGLang resolved, any other of what cells request.
    """
    axes = {canonical(axis.name): axis for axis in seen.cells.axes}
    when: dict[str, tuple[Value, ...]] = {}
    for key, values in claim.when.items():
        name = key.removeprefix(_EFFECTIVE)
        axis = axes.get(canonical(name))
        if axis is None:
            return None
        found = [
            own
            for value in values
            for own in (
                seen.values_of(axis.name, value) if name == key else (on_axis(axis, value, value),)
            )
        ]
        if not found:
            return None
        when[axis.name] = tuple({spell(own): own for own in found}.values())
    return Claim(claim.id, when)


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
