"""One thing that is not as it was, and readers of facts that somebody else wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Facts = Mapping[str, object]
GIB_IN_MIB = 1024


class Kind(StrEnum):
    """What sort of thing changed; how likely it breaks a launch depends on it."""

    LAUNCH = "launch"
    RESOLVED = "resolved"
    PACKAGE = "package"
    PYTHON = "python"
    DRIVER = "driver"
    CUDA = "cuda"
    KERNEL = "kernel"
    SYSTEM = "system"
    BOOT = "boot"
    GPU = "gpu"
    GPU_SETTING = "gpu-setting"
    GPU_HOLDER = "gpu-holder"
    GPU_MEMORY = "gpu-memory"
    MODEL = "model"
    DISK = "disk"
    HOST_MEMORY = "host-memory"
    ENVIRONMENT = "environment"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as it was.

    Attributes:
        name: what changed, as a word that an error message could hold.
        before: None = it was not there.
        weight: how much more (above 1) or less it matters than others of its kind.
        sentence: for a person, without a full stop.
    """

    kind: Kind
    name: str
    before: str | None
    after: str | None
    sentence: str
    weight: float = 1.0


def plain(kind: Kind, name: str, before: object, after: object) -> Difference:
    """Return a difference with the plain sentence: X is B, was A."""
    old, new = text_of(before), text_of(after)
    if new is None:
        said = f"{name} is gone, was {old}"
    elif old is None:
        said = f"{name} is {new}, was not there"
    else:
        said = f"{name} is {new}, was {old}"
    return Difference(kind=kind, name=name, before=old, after=new, sentence=said)


def text_of(value: object) -> str | None:
    """Write a fact; None where it is not known."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return "/".join(str(part) for part in value)
    return str(value)


def part(facts: Facts, *names: str) -> Facts:
    """Return facts within facts; empty where they are not known."""
    found: object = facts
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def rows(facts: Facts, name: str) -> list[Facts]:
    """Return a list of facts; empty where it is not known."""
    found = facts.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def number(facts: Facts, name: str) -> float | None:
    """Return a number; None where it is not known."""
    found = facts.get(name)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number and isinstance(found, int | float) else None


def both_known(old: Facts, new: Facts, name: str) -> bool:
    """True if both sides know a fact."""
    return old.get(name) is not None and new.get(name) is not None


def gib(mib: float) -> str:
    """Write MiB as GiB."""
    return f"{mib / GIB_IN_MIB:,.1f} GiB"
