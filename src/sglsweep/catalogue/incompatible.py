"""Known incompatibilities and first cells by SGLang version, GPU architecture and model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from sglsweep.matrix import Value, spell
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Condition = dict[str, tuple[Value, ...]]
"""Flag or `env.NAME` -> the values it may have; None among them: not passed."""

_TRACKERS = {
    "SGLANG": "https://github.com/sgl-project/sglang/issues/",
    "FLASHINFER": "https://github.com/flashinfer-ai/flashinfer/issues/",
}


class Basis(StrEnum):
    """How a thing is known."""

    REPRODUCED = "reproduced"
    SOURCE = "source"
    REPORTS = "reports"


class Advice(StrEnum):
    """What a planner should do with a cell that an entry holds for."""

    EXCLUDE = "exclude"
    LATER = "later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where an entry is about.

    Attributes:
        arch: `sm120` and the like; empty = any.
        models: beginnings of architecture class names; empty = any.
        since: first SGLang version, included; None = open. until: the last.
    """

    arch: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None

    def fits(self, *, version: str, arch: str, model: str) -> bool:
        """True for this SGLang, GPU architecture (`sm120`) and model class name.

        What is not known is given as "": it fits, so that a guess is never read as a no.
        """
        number = version_key(version)
        return (
            (not version or self.since is None or version_key(self.since) <= number)
            and (not version or self.until is None or number[:3] <= version_key(self.until)[:3])
            and (not arch or not self.arch or arch in self.arch)
            and (not model or not self.models or model.startswith(self.models))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incompatible:
    """Values that do not work together; see incompatible.yaml for what the fields mean."""

    id: str
    scope: Scope
    when: Condition
    unless: tuple[Condition, ...] = ()
    verdict: Verdict
    advice: Advice
    basis: Basis
    reason: str
    instead: str
    source: str

    def holds(self, effective: Mapping[str, Value]) -> bool:
        """True if a launch with these effective flags (and `env.NAME`) is one of them."""
        return _meets(self.when, effective) and not any(
            _meets(condition, effective) for condition in self.unless
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCell:
    """A cell worth trying before others.

    Attributes:
        caveat: what else it needs or changes; "" for nothing.
    """

    id: str
    scope: Scope
    flags: Mapping[str, Value]
    env: Mapping[str, str] = field(default_factory=dict)
    reason: str
    caveat: str = ""
    source: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything in incompatible.yaml, in its order."""

    incompatible: tuple[Incompatible, ...]
    first: tuple[FirstCell, ...]

    def for_launch(self, *, version: str, arch: str, model: str) -> Knowledge:
        """Return what is about this SGLang, GPU architecture and model class; "" = not known."""
        scope = {"version": version, "arch": arch, "model": model}
        return Knowledge(
            tuple(entry for entry in self.incompatible if entry.scope.fits(**scope)),
            tuple(cell for cell in self.first if cell.scope.fits(**scope)),
        )


@cache
def load() -> Knowledge:
    """Return the packaged knowledge."""
    text = (resources.files("sglsweep.catalogue") / "incompatible.yaml").read_text("utf-8")
    document: Mapping[str, Any] = yaml.safe_load(text)
    return Knowledge(
        tuple(_incompatible(entry) for entry in document["incompatible"]),
        tuple(_first_cell(entry) for entry in document["first"]),
    )


def version_key(version: str) -> tuple[int, ...]:
    """Return a version's numbers for comparison; `0.5.15.post1` is later than `0.5.15`."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _incompatible(entry: dict[str, Any]) -> Incompatible:
    entry["when"] = _condition(entry["when"])
    entry["unless"] = tuple(_condition(item) for item in entry.get("unless", ()))
    entry["verdict"] = Verdict(entry["verdict"])
    entry["advice"] = Advice(entry["advice"])
    entry["basis"] = Basis(entry["basis"])
    return Incompatible(**_common(entry))


def _first_cell(entry: dict[str, Any]) -> FirstCell:
    return FirstCell(**_common(entry))


def _common(entry: dict[str, Any]) -> dict[str, Any]:
    """Gather the scope's keys into a Scope and write links out."""
    entry["scope"] = Scope(
        arch=tuple(entry.pop("arch", ())),
        models=tuple(entry.pop("models", ())),
        since=entry.pop("since", None),
        until=entry.pop("until", None),
    )
    entry["source"] = _linked(entry["source"])
    return entry


def _linked(source: str) -> str:
    for name, address in _TRACKERS.items():
        source = re.sub(rf"\b{name} (\d+)", rf"{address}\1", source)
    return source


def _condition(mapping: Mapping[str, Any]) -> Condition:
    return {
        name: tuple(value) if isinstance(value, list) else (value,)
        for name, value in mapping.items()
    }


def _meets(condition: Mapping[str, Sequence[Value]], effective: Mapping[str, Value]) -> bool:
    return all(
        spell(effective.get(name)) in [spell(value) for value in values]
        for name, values in condition.items()
    )
