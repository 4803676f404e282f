"""Which folder a user means by RUN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def find_run(text: str, cwd: Path) -> Path:
    """Return the folder that RUN names: a folder, or a name under `runs/` of `cwd`.

    Raises:
        ConfigError: neither holds a run; the message lists what there is.
    """
    candidates = [cwd / text, cwd / "runs" / text]
    for folder in candidates:
        if (folder / "run.json").is_file():
            return folder
    raise ConfigError(
        f"no run at {candidates[0]} nor at {candidates[1]}", next_step=_what_there_is(cwd)
    )


def _what_there_is(cwd: Path) -> str:
    names = sorted(path.parent.name for path in (cwd / "runs").glob("*/run.json"))
    if not names:
        return "Give the run's folder, or start one with `sglsweep sweep SWEEP.yaml`."
    return f"Give the run's folder, or one of these names: {', '.join(names)}."
