"""Which machine a user means by HOST."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.config.hosts import load_host

if TYPE_CHECKING:
    from sglsweep.config.hosts import HostConfig


def is_sweep(word: str) -> bool:
    """Tell whether HOST is the file of a sweep instead."""
    return word.endswith((".yaml", ".yml")) or Path(word).is_file()


def host_named(word: str) -> HostConfig:
    """Return the machine of a name, or the one that a sweep's file names.

    Names are looked for in `hosts.yaml` here, in `configs/` here, then as for a sweep.
    """
    from sglsweep.config.sweep import load_sweep

    if is_sweep(word):
        path = Path(word)
        return load_host(load_sweep(path).host, path)
    near = next((p for p in (Path(), Path("configs")) if (p / "hosts.yaml").exists()), Path())
    return load_host(word, near, where="HOST")
