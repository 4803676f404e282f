"""The lazy product of a sweep's axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from sglsweep.config.mistakes import Mistake, Note, refuse
from sglsweep.errors import ConfigError
from sglsweep.expand.refusals import build_rules, refused_include, unknown_to_all
from sglsweep.expand.rules import Rule, exclude_rule, never_fires, unknown_keys, unresolved
from sglsweep.expand.scope import EFFECTIVE, Scope
from sglsweep.flags.command import NOT_FLAGS
from sglsweep.matrix import Cell, Cells, spell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sglsweep.config.sweep import Exclude, Sweep
    from sglsweep.config.values import AutoFraction
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Value

MAX_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Excluded:
    """A cell that is not launched, why, and which line says so."""

    cell: Cell
    because: str
    where: str


class ExcludedCells(Sequence[Excluded]):
    """Excluded cells, made when asked for."""

    def __init__(
        self,
        first: Sequence[Excluded],
        cells: Cells,
        rules: Sequence[Rule],
        rule_of: Sequence[int],
    ) -> None:
        self._first = tuple(first)
        self._cells = cells
        self._rules = rules
        self._rule_of = rule_of

    @overload
    def __getitem__(self, index: int) -> Excluded: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Excluded]: ...
    def __getitem__(self, index: int | slice) -> Excluded | Sequence[Excluded]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index < len(self._first):
            return self._first[index]
        index -= len(self._first)
        rule = self._rules[self._rule_of[index]]
        return Excluded(self._cells[index], rule.because, rule.where)

    def __len__(self) -> int:
        return len(self._first) + len(self._cells)

    def __iter__(self) -> Iterator[Excluded]:
        return (self[index] for index in range(len(self)))

    def counts(self) -> dict[str, int]:
        """Reason -> number of cells, in the order of the rules."""
        met = Counter(self._rule_of)
        found: Counter[str] = Counter(item.because for item in self._first)
        for index in sorted(met):
            found[self._rules[index].because] += met[index]
        return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """What a sweep comes to.

    Attributes:
        cells: the product without what is excluded; a cell is made when asked for.
        includes: to be tried first, in the order of the file. One that is a point of the product
            is that very cell.
        excluded_counts: reason -> number of cells.
        notes: excludes that meet no cell.
    """

    cells: Cells
    includes: tuple[Cell, ...]
    excluded: ExcludedCells
    excluded_counts: Mapping[str, int]
    auto: AutoFraction | None
    notes: tuple[Note, ...]


def expand(
    sweep: Sweep,
    tables: Mapping[str, FlagTable] | None = None,
    *,
    is_resolved_later: bool = False,
) -> Expanded:
    """Expand a sweep against the flags of its builds.

    Args:
        sweep: as `load_sweep` gave it.
        tables: name of a build -> its flags; what is missing is not checked.
        is_resolved_later: leave excludes on effective values to `resolved.settle`.

    Raises:
        ConfigError: a flag or value is unknown to every build, or the product is too large.
    """
    scope = Scope(sweep, tables or {})
    refuse([*unknown_keys(scope), *unknown_to_all(scope)])
    includes, refused = _includes(scope)
    excludes = [
        (exclude, exclude_rule(scope, exclude))
        for exclude in sweep.excludes
        if not (is_resolved_later and any(key.startswith(EFFECTIVE) for key in exclude.when))
    ]
    rules = [rule for _, rule in excludes if rule is not None]
    rules += build_rules(scope)
    codes = _product(sweep)
    rule_of = _first_rule(codes, rules)
    kept, dropped = rule_of < 0, rule_of >= 0
    excluded = ExcludedCells(
        refused, Cells(sweep.axes, _rows(codes[dropped])), rules, rule_of[dropped].tolist()
    )
    return Expanded(
        cells=Cells(sweep.axes, _rows(codes[kept])),
        includes=includes,
        excluded=excluded,
        excluded_counts=excluded.counts(),
        auto=sweep.auto,
        notes=tuple(_notes(scope, excludes)),
    )


def _notes(scope: Scope, excludes: Sequence[tuple[Exclude, Rule | None]]) -> Iterator[Note]:
    for exclude, rule in excludes:
        note = unresolved(scope, exclude)
        if note is not None:
            yield note
        elif rule is None:
            yield never_fires(scope, exclude)


def _product(sweep: Sweep) -> NDArray[np.int32]:
    """Return one row a cell: the position of its value on every axis; the last turns fastest."""
    groups = _groups(sweep)
    sizes = [len(sweep.axes[group[0]].values) for group in groups]
    count = math.prod(sizes)
    if count > MAX_CELLS:
        raise ConfigError(
            f"{sweep.where.get('matrix', sweep.source)}: the matrix has {count:,} cells",
            next_step=f"Cut values, link axes or split the sweep: at most {MAX_CELLS:,} cells.",
        )
    codes = np.zeros((count, len(sweep.axes)), dtype=np.int32)
    if groups:
        for group, column in zip(groups, np.unravel_index(np.arange(count), sizes), strict=True):
            codes[:, group] = column[:, None]
    return codes


def _groups(sweep: Sweep) -> list[list[int]]:
    """Return the axes that turn together, by position."""
    position = {axis.name: index for index, axis in enumerate(sweep.axes)}
    linked = {name: link for link in sweep.links for name in link}
    groups: dict[tuple[str, ...], list[int]] = {}
    for axis in sweep.axes:
        link = linked.get(axis.name, (axis.name,))
        groups.setdefault(link, [position[name] for name in link])
    return list(groups.values())


def _first_rule(codes: NDArray[np.int32], rules: Sequence[Rule]) -> NDArray[np.int32]:
    """Return for each row the first rule that takes it out, or -1."""
    found = np.full(len(codes), -1, dtype=np.int32)
    for index, rule in enumerate(rules):
        met = found < 0
        for position, values in rule.codes.items():
            met &= np.isin(codes[:, position], list(values))
        found[met] = index
    return found


def _rows(codes: NDArray[np.int32]) -> list[tuple[int, ...]]:
    return list(map(tuple, codes.tolist()))


def _includes(scope: Scope) -> tuple[tuple[Cell, ...], list[Excluded]]:
    """Return the included cells, and those that only another build would take.

    Raises:
        ConfigError: no build takes a setting of one.
    """
    kept: dict[str, Cell] = {}
    refused: list[Excluded] = []
    mistakes: list[Mistake] = []
    for index, include in enumerate(scope.sweep.includes):
        cell = _in_product(scope, include.cell)
        build = str(include.cell.get("build") or scope.sweep.build.name)
        found = refused_include(scope, include.cell, build)
        if found is None:
            kept.setdefault(cell.key, cell)
            continue
        name, problem, by_all = found
        where = scope.sweep.where.get(f"include[{index}].{name}", include.where)
        if by_all:
            mistakes.append(Mistake(where=where, what=problem.what, instead=problem.instead))
        else:
            refused.append(Excluded(cell, f"build '{build}': {problem.what}", where))
    refuse(mistakes)
    return tuple(kept.values()), refused


def _unset(scope: Scope, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return null for axes that a cell does not name and `launch` would else pass."""
    names = [axis.name for axis in scope.sweep.axes if axis.name not in values]
    kept = [name for name in names if name not in NOT_FLAGS]
    return {name: None for name in kept if scope.constant(name) is not None}


def _in_product(scope: Scope, included: Cell) -> Cell:
    """Name an included cell's values as the axes do; complete it where it is a point of them."""
    axes = scope.sweep.axes
    values = {
        axes[position].name if (position := scope.axis(name)) is not None else name: value
        for name, value in included.values.items()
    }
    full = dict(values)
    for axis in axes:
        default = {"build": scope.sweep.build.name, "model": scope.sweep.model.name}.get(axis.name)
        full.setdefault(axis.name, default)
    is_point = len(full) == len(axes) and all(
        spell(full[axis.name]) in {spell(value) for value in axis.values} for axis in axes
    )
    if not is_point:
        return Cell({**_unset(scope, values), **values})
    return Cell((axis.name, full[axis.name]) for axis in axes)
