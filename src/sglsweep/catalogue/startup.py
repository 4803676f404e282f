"""How much longer or shorter a launch takes with a flag: startup.yaml as types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from sglsweep.matrix import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """What one value of a flag, or of `env.NAME`, adds to the seconds until a server is ready."""

    flag: str
    value: Value
    seconds: float
    source: str


@cache
def load() -> tuple[StartUp, ...]:
    """Return the packaged knowledge."""
    text = (resources.files("sglsweep.catalogue") / "startup.yaml").read_text("utf-8")
    entries: list[dict[str, Any]] = yaml.safe_load(text)
    return tuple(
        StartUp(
            flag=str(entry["flag"]),
            value=entry["value"],
            seconds=float(entry["seconds"]),
            source=str(entry["source"]),
        )
        for entry in entries
    )
