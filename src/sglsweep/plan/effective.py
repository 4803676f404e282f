"""Cells by what SGLang makes of them: what a strategy decides over, and the way back.

A strategy that sees what was asked for takes "not passed" and the value that SGLang then chooses
for two things, and learns about each by itself; worse, it clears and blames flags that select
nothing. So it decides over cells in which every axis has the value that acts, and what it wants is
mapped back to the cell that is launched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.catalogue.inert import ALL_OTHERS
from sglsweep.matrix import NO_EFFECT, Axis, Cell, Cells, Value, spell
from sglsweep.plan.apart import told_apart
from sglsweep.plan.axis_values import Reading
from sglsweep.plan.equal_cells import agree, flag_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.plan.equal_cells import Candidate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectiveCells:
    """The cells that are left to launch, by what acts in them.

    Attributes:
        cells: one for each cell that is left, in the same order.
        asked: key of an effective cell -> the cell that is launched for it.
        found: key of a requested cell -> its effective one; cells that another speaks for too.
        candidates: key of a requested cell -> what SGLang makes of it; without those not known.
    """

    cells: Cells
    asked: Mapping[str, Cell]
    found: Mapping[str, Cell]
    candidates: Mapping[str, Candidate]

    def of(self, requested: Cell) -> Cell:
        """Return what acts in a cell; as requested where nothing is known of it.

        What a cell names beside the axes stays as it is.
        """
        names = [axis.name for axis in self.cells.axes]
        own = Cell((n, v) for n, v in requested.values.items() if n in names)
        full = Cell((name, requested.get(name)) for name in names)
        known = next((f for c in (requested, own, full) if (f := self.found.get(c.key))), None)
        if known is None:
            return requested
        return Cell({**requested.values, **known.values})

    def asked_for(self, effective: Cell) -> Cell:
        """Return the cell to launch."""
        return self.asked.get(effective.key, effective)

    def keys_of(self, requested: Iterable[str]) -> frozenset[str]:
        """Return keys of effective cells for keys of requested ones."""
        return frozenset(known.key if (known := self.found.get(key)) else key for key in requested)

    def told(self, why: str, asked: Cell) -> str:
        """Return a sentence with what SGLang makes of the values whose axes it names."""
        effective = self.of(asked)
        made = [
            f"{axis.name} {_made(asked.get(axis.name), effective.get(axis.name))}"
            for axis in self.cells.axes
            if spell(asked.get(axis.name)) != spell(effective.get(axis.name))
            and re.search(rf"(?<![\w-]){re.escape(axis.name)}(?![\w-])", why)
        ]
        return f"{why} ({', '.join(made)})" if made else why

    def after(self, launched: Iterable[tuple[Cell, Mapping[str, object]]]) -> EffectiveCells:
        """Return the same, corrected by what launches printed of themselves.

        Args:
            launched: requested cells with the launch's own arguments, by names of flags.
        """
        changes: dict[str, Cell] = {}
        for requested, own in launched:
            is_known = self.of(requested) is not requested
            read = self._corrected if is_known else self._read
            new = read(requested, own)
            if new is not None:
                changes[requested.key] = new
        return self._moved(changes) if changes else self

    def values_of(self, axis: str, value: Value) -> tuple[Value, ...]:
        """Return what acts on an axis in the cells that request a value of it.

        Empty where the value acts nowhere: nothing that is launched tells anything about it.
        """
        word = spell(value)
        if not self.found:
            return (value,)
        acting_values = {
            spell(own): own
            for cell in self.cells
            if spell(self.asked_for(cell).get(axis)) == word
            and (own := cell.get(axis)) != NO_EFFECT
        }
        listed = next((a.values for a in self.cells.axes if a.name == axis), ())
        if word in {spell(known) for known in listed}:
            acting_values.setdefault(word, value)
        return tuple(acting_values.values())

    def _corrected(self, requested: Cell, own: Mapping[str, object]) -> Cell | None:
        """Return the effective cell of a launch; None where it came out as foreseen."""
        foreseen = self.candidates.get(requested.key)
        if foreseen is None or not own or requested.key not in self.found:
            return None
        by_name = {flag_of(name): value for name, value in own.items()}
        actual = {
            name: by_name[flag]
            for name, value in foreseen.effective.items()
            if (flag := flag_of(name)) in by_name and not agree(flag, value, by_name[flag])
        }
        if not actual:
            return None
        changed = replace(foreseen, effective={**foreseen.effective, **actual})
        before, after = (Reading(self.cells.axes).row(c) for c in (foreseen, changed))
        moved = {
            axis.name: new
            for axis, old, new in zip(self.cells.axes, before, after, strict=True)
            if spell(old) != spell(new)
        }
        return self.found[requested.key].with_values(moved) if moved else None

    def _read(self, requested: Cell, own: Mapping[str, object]) -> Cell | None:
        """Return what acted in a cell that nobody asked about, by its launch's own arguments."""
        place = [requested.get(name) for name in ("build", "model")]
        like = next(
            (
                known
                for known in self.candidates.values()
                if [known.cell.get(name) for name in ("build", "model")] == place
            ),
            None,
        )
        plain = {n: v for n, v in own.items() if not (isinstance(v, str) and v.startswith("<"))}
        if like is None or not plain:
            return None
        candidate = replace(like, cell=requested, effective=plain)
        row = Reading(self.cells.axes).row(candidate)
        names = (axis.name for axis in self.cells.axes)
        return Cell({**requested.values, **dict(zip(names, row, strict=True))})

    def _moved(self, changes: Mapping[str, Cell]) -> EffectiveCells:
        """Return the same with some cells elsewhere; a place that is taken is not taken again."""
        rows = []
        listed = {self.asked_for(cell).key for cell in self.cells}
        found = {**self.found, **{k: c for k, c in changes.items() if k not in listed}}
        taken = {cell.key for cell in self.cells}
        for cell in self.cells:
            requested = self.asked_for(cell).key
            new = changes.get(requested, cell)
            if new.key != cell.key and new.key not in taken:
                taken.add(new.key)
                found[requested] = new
            rows.append((self.asked_for(cell), found.get(requested, cell)))
        return _built(self.cells.axes, rows, found, self.candidates)


def as_requested(cells: Cells) -> EffectiveCells:
    """Return cells of which nothing is known but what they request."""
    return EffectiveCells(cells=cells, asked={}, found={}, candidates={})


def project(
    cells: Cells, candidates: Mapping[str, Candidate], speakers: Mapping[str, Cell]
) -> EffectiveCells:
    """Return what acts in the cells that are left to launch.

    Where two of them would come to one, though SGLang resolves them differently in something
    that is no axis, both keep what was asked for where they differ.

    Args:
        cells: what is left to launch.
        candidates: what SGLang makes of cells, by their keys; of all that are known.
        speakers: key of a cell that is not launched -> the cell that speaks for it.
    """
    reading = Reading(cells.axes)
    listed = list(cells)
    acts = {key: reading.row(candidate) for key, candidate in candidates.items()}
    rows = told_apart(listed, acts, cells.axes)
    found = {
        cell.key: Cell(zip((a.name for a in cells.axes), row, strict=True))
        for cell, row in zip(listed, rows, strict=True)
    }
    for key, speaker in speakers.items():
        if speaker.key in found:
            found.setdefault(key, found[speaker.key])
    for key, row in acts.items():
        if key not in found:
            found[key] = Cell(zip((a.name for a in cells.axes), row, strict=True))
    return _built(cells.axes, [(c, found[c.key]) for c in listed], found, candidates)


def _built(
    axes: Sequence[Axis],
    rows: Sequence[tuple[Cell, Cell]],
    found: Mapping[str, Cell],
    candidates: Mapping[str, Candidate],
) -> EffectiveCells:
    """Number the values that act: first the axis's own, in their order, then what SGLang adds."""
    wide = []
    for axis in axes:
        own = {spell(value): value for value in axis.values}
        seen = {spell(cell.get(axis.name)): cell.get(axis.name) for _, cell in rows}
        order = [w for w in own if w in seen] + [w for w in seen if w not in own]
        wide.append(Axis(axis.name, tuple(seen[word] for word in order)))
    codes = [{spell(value): code for code, value in enumerate(a.values)} for a in wide]
    return EffectiveCells(
        cells=Cells(
            wide,
            [
                tuple(
                    code[spell(cell.get(axis.name))]
                    for axis, code in zip(wide, codes, strict=True)
                )
                for _, cell in rows
            ],
        ),
        asked={cell.key: requested for requested, cell in reversed(rows)},
        found=found,
        candidates=candidates,
    )


def _made(asked: Value, effective: Value) -> str:
    """Say what becomes of a requested value."""
    was = "not passed" if asked is None else str(asked)
    if effective == NO_EFFECT:
        return f"{was}: it selects nothing there"
    if effective == ALL_OTHERS:
        return f"{was}: it acts there like other values"
    return f"{was} resolves to {effective}"


def become(seen: EffectiveCells) -> dict[str, dict[str, tuple[Value, ...]]]:
    """Return axis -> requested value, spelled -> what acts in every cell in its place."""
    found: dict[str, dict[str, dict[str, Value]]] = {}
    for key, candidate in seen.candidates.items():
        acts = seen.found[key]
        for axis in seen.cells.axes:
            asked = spell(candidate.cell.get(axis.name))
            value = acts.get(axis.name)
            found.setdefault(axis.name, {}).setdefault(asked, {}).setdefault(spell(value), value)
    return {
        name: {asked: tuple(acts.values()) for asked, acts in values.items() if asked not in acts}
        for name, values in found.items()
    }


def recorded(stored: object) -> dict[int, Cell]:
    """Read what run.json holds of attempts' effective cells: number -> what acted in it.

    A report of a run has no host to ask; attempts that stand not in it are as requested.
    """
    entries = stored if isinstance(stored, list) else []
    return {
        int(entry["attempt"]): Cell(entry["values"])
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("values"), dict)
    }


def to_record(attempts: Iterable[tuple[int, Cell]]) -> list[dict[str, object]]:
    """Return effective cells as run.json holds them."""
    return [{"attempt": number, "values": dict(cell.values)} for number, cell in attempts]
