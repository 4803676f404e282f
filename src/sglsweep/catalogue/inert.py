"""Flags that select nothing under a condition, as data: inert.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from sglsweep.catalogue.incompatible import Basis, Scope
from sglsweep.flags import canonical
from sglsweep.matrix import NO_EFFECT, Value, spell

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ALL_OTHERS = "any other"
"""What stands for every value that makes no difference, where some value does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inert:
    """Flags that then act only as one of a few things.

    Attributes:
        flags: canonical names.
        when: canonical name of a flag -> effective values, any of them.
        distinct: values that still differ, from each other and from all others.
        unless_env: variables of a launch with which the rule says nothing.
        reason: a clause for the findings.
    """

    id: str
    scope: Scope
    flags: tuple[str, ...]
    when: Mapping[str, tuple[Value, ...]]
    distinct: tuple[Value, ...]
    unless_env: tuple[str, ...]
    basis: Basis
    reason: str
    source: str

    def holds(self, effective: Mapping[str, object]) -> bool:
        """True for a configuration, by canonical names of flags, in which the flags are inert."""
        return all(
            _spelled(effective.get(name)) in {_spelled(value) for value in values}
            for name, values in self.when.items()
        )

    def acts_as(self, value: object) -> object:
        """Return what a value of one of the flags comes to."""
        if value in self.distinct:
            return value
        return ALL_OTHERS if self.distinct else NO_EFFECT


@cache
def load() -> tuple[Inert, ...]:
    """Return the packaged rules."""
    text = (resources.files("sglsweep.catalogue") / "inert.yaml").read_text("utf-8")
    document: Mapping[str, Any] = yaml.safe_load(text)
    return tuple(_inert(entry) for entry in document["inert"])


def rules_for(*, version: str, model: str, env: Collection[str] = ()) -> tuple[Inert, ...]:
    """Return the rules of one SGLang, model class and environment; none where one is not known."""
    if not version or not model:
        return ()
    return tuple(
        rule
        for rule in load()
        if rule.scope.fits(version=version, arch="", model=model)
        and not set(rule.unless_env) & set(env)
    )


def _inert(entry: Mapping[str, Any]) -> Inert:
    return Inert(
        id=entry["id"],
        scope=Scope(
            models=tuple(entry["models"]), since=entry.get("since"), until=entry.get("until")
        ),
        flags=tuple(dict.fromkeys(canonical(name) for name in entry["flags"])),
        when={canonical(name): _values(value) for name, value in entry["when"].items()},
        distinct=tuple(entry["distinct"]),
        unless_env=tuple(entry.get("unless_env") or ()),
        basis=Basis(entry["basis"]),
        reason=entry["reason"],
        source=entry["source"],
    )


def _values(value: Value | list[Value]) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _spelled(value: object) -> str:
    return spell(value) if value is None or isinstance(value, str) else str(value)
