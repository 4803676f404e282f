"""Rules that take cells out of the product, each with its reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.config.mistakes import Mistake, Note
from sglsweep.expand.scope import EFFECTIVE, agrees, is_flag
from sglsweep.flags import nearest
from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglsweep.config.sweep import Exclude
    from sglsweep.expand.scope import Scope
    from sglsweep.matrix import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Takes out the cells whose value on every axis named is one of those listed.

    Attributes:
        codes: position of an axis -> positions of values on it.
        where: FILE:LINE of what asks for it.
    """

    codes: Mapping[int, frozenset[int]]
    because: str
    where: str


def exclude_rule(scope: Scope, exclude: Exclude) -> Rule | None:
    """Turn an `exclude` into a rule; None where no cell of the product can meet it."""
    codes: dict[int, frozenset[int]] = {}
    for key, wanted in exclude.when.items():
        name = key.removeprefix(EFFECTIVE)
        position = scope.axis(name)
        if position is None:
            if not _holds(scope, key, wanted):
                return None
            continue
        met = _codes(scope, position, wanted, is_effective=key != name)
        codes[position] = met & codes.get(position, met)
    if any(not met for met in codes.values()):
        return None
    return Rule(codes=codes, because=exclude.because, where=exclude.where)


def _holds(scope: Scope, key: str, wanted: tuple[Value, ...]) -> bool:
    value = scope.constant(key.removeprefix(EFFECTIVE))
    if key.startswith(EFFECTIVE) and value is None:
        return False
    return agrees(value, wanted)


def _codes(
    scope: Scope, position: int, wanted: tuple[Value, ...], *, is_effective: bool
) -> frozenset[int]:
    values = scope.sweep.axes[position].values
    return frozenset(
        code
        for code, value in enumerate(values)
        # What an unset flag resolves to is not known here.
        if not (is_effective and value is None) and agrees(value, wanted, values=values)
    )


def unresolved(scope: Scope, exclude: Exclude) -> Note | None:
    """Say that an `effective.FLAG` is only compared with what cells ask for."""
    for key in exclude.when:
        name = key.removeprefix(EFFECTIVE)
        position = scope.axis(name)
        values = (scope.constant(name),) if position is None else scope.sweep.axes[position].values
        if key != name and None in values:
            what = f"where '{name}' is not passed, '{key}' is not known before the launch"
            return Note(exclude.where, f"{what}: this exclude does not meet those cells")
    return None


def never_fires(scope: Scope, exclude: Exclude) -> Note:
    """Say which key keeps an `exclude` from ever meeting a cell."""
    for key, wanted in exclude.when.items():
        name = key.removeprefix(EFFECTIVE)
        position = scope.axis(name)
        if position is None and not _holds(scope, key, wanted):
            return Note(exclude.where, f"this exclude meets no cell: {_held(scope, name)}")
        if position is not None and not _codes(scope, position, wanted, is_effective=key != name):
            values = scope.sweep.axes[position].values
            shown = ", ".join(spell(value) for value in wanted)
            near = nearest(str(wanted[0]), [str(v) for v in values if v is not None], count=1)
            hint = f"; is '{near[0]}' meant?" if near else ""
            what = f"this exclude meets no cell: axis '{name}' has no value {shown}{hint}"
            return Note(exclude.where, what)
    return Note(exclude.where, "this exclude meets no cell")


def _held(scope: Scope, name: str) -> str:
    """Say what every cell has for a name that is no axis."""
    value = scope.constant(name)
    if value is not None:
        return f"every cell has {name}={json.dumps(value)}"
    near = nearest(name, [axis.name for axis in scope.sweep.axes], count=1)
    hint = f"; is '{near[0]}' meant?" if near else ""
    return f"'{name}' is no axis{hint}"


def unknown_keys(scope: Scope) -> Iterator[Mistake]:
    """Keys of `when` and `predicts` that are neither an axis nor a flag of any build."""
    sweep = scope.sweep
    conditions = [(f"exclude[{i}].when", e.when, e.where) for i, e in enumerate(sweep.excludes)]
    conditions += [
        (f"hypotheses[{i}].predicts", h.when, h.where) for i, h in enumerate(sweep.hypotheses)
    ]
    for at, when, where in conditions:
        for key in when:
            name = key.removeprefix(EFFECTIVE)
            if scope.is_known(name):
                continue
            yield Mistake(
                where=sweep.where.get(f"{at}.{key}", where),
                what=f"'{key}' is neither an axis nor a launch flag",
                instead=_nearest_name(scope, name, prefix=key[: len(key) - len(name)]),
            )


def _nearest_name(scope: Scope, name: str, *, prefix: str) -> str:
    known = [axis.name for axis in scope.sweep.axes]
    near = list(nearest(name, known, count=1))
    for table in scope.tables.values():
        near += [n for n in table.nearest(name) if n not in near]
    if not near or not is_flag(name):
        return f"Write one of the axes: {', '.join(known)}."
    return f"Write {' or '.join(repr(prefix + n) for n in near[:3])}."
