"""Excludes that speak of what SGLang makes of a flag: judged once it has been asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.config.mistakes import Note
from sglsweep.expand.asked import State
from sglsweep.expand.scope import EFFECTIVE, Scope, agrees
from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.plan.equal_cells import by_flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.config.sweep import Exclude
    from sglsweep.expand.asked import Asked
    from sglsweep.matrix import Cell, Value


class EffectiveExcludes:
    """The excludes that speak of effective values; remembers which of them met a cell."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._scope = Scope(asked.sweep, asked.tables)
        self._rules = [e for e in asked.sweep.excludes if speaks_of_effective(e)]
        self._met: set[str] = set()
        self._seen: dict[str, set[str]] = {}

    def reason(self, cell: Cell) -> str:
        """Return why an exclude takes the cell out; "" where none does."""
        for rule in self._rules:
            if all(self._holds(cell, key, wanted) for key, wanted in rule.when.items()):
                self._met.add(rule.where)
                return rule.because
        return ""

    def notes(self) -> tuple[Note, ...]:
        """Say which excludes met no cell, and what SGLang made of the flags they speak of."""
        return tuple(
            Note(rule.where, f"this exclude meets no cell: {self._told(rule)}")
            for rule in self._rules
            if rule.where not in self._met
        )

    def _told(self, rule: Exclude) -> str:
        keys = [key for key in rule.when if key.startswith(EFFECTIVE)]
        seen = {key: ", ".join(sorted(self._seen.get(key, ()))) or "nothing known" for key in keys}
        return "; ".join(
            f"SGLang makes of {k.removeprefix(EFFECTIVE)}: {v}" for k, v in seen.items()
        )

    def _holds(self, cell: Cell, key: str, wanted: tuple[Value, ...]) -> bool:
        name = key.removeprefix(EFFECTIVE)
        position = self._scope.axis(name)
        requested = (
            self._scope.constant(name)
            if position is None
            else cell.get(self._asked.sweep.axes[position].name)
        )
        if key == name:
            return agrees(requested, wanted)
        answer = self._asked.answers.get(cell.key)
        if answer is None or answer.state is not State.RESOLVED:
            # As before SGLang was asked: what a cell requests is all that is known of it.
            return requested is not None and agrees(requested, wanted)
        value = effective_of(answer.effective, name)
        self._seen.setdefault(key, set()).add(str(value))
        return agrees(value, (*wanted, *_alike(name, wanted)))


def _alike(name: str, wanted: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(
        other for value in wanted if isinstance(value, str) for other in same_values(name, value)
    )


def effective_of(effective: Mapping[str, object], flag: str) -> Value:
    """Return what a flag resolved to, by any spelling of it; None where it is no plain value."""
    value = effective.get(flag.replace("-", "_"))
    if value is None:
        value = by_flag(effective).get(canonical(flag))
    return value if value is None or isinstance(value, bool | int | float | str) else None


def speaks_of_effective(exclude: Exclude) -> bool:
    """True for an exclude with an `effective.FLAG` among its keys."""
    return any(key.startswith(EFFECTIVE) for key in exclude.when)
