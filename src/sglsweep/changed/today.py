"""The facts of an attempt's host, build and model as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.config.hosts import load_host
from sglsweep.config.sweep import load_sweep
from sglsweep.errors import HostError
from sglsweep.prepare import keeper_python, open_host, probe_facts

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt
    from sglsweep.changed.difference import Facts
    from sglsweep.config.sweep import Sweep


def facts_today(source: Path, attempt: Attempt) -> Facts:
    """Ask the host; SGLang is not imported, so that a broken build can be asked too.

    Raises:
        ConfigError: the sweep's file or its host cannot be read.
        HostError: the host cannot be reached.
    """
    sweep = load_sweep(source)
    config = load_host(sweep.host, source)
    host = open_host(config)
    try:
        python = keeper_python(host, config)
        model = sweep.models.get(attempt.model)
        words = ["--model", model.target if model else attempt.model]
        if not _is_rehearsal(sweep, attempt):
            words += ["--python", _interpreter(attempt, source, is_local=config.ssh is None)]
        found = probe_facts(host, python, words)
    finally:
        host.close()
    if not found:
        raise HostError(
            f"{sweep.host}: the host's facts could not be read",
            next_step=f"Look with `sglsweep doctor {sweep.host}`.",
        )
    return {
        **found,
        "builds": {attempt.build: found.get("python")},
        "models": {attempt.model: found.get("model")},
    }


def _is_rehearsal(sweep: Sweep, attempt: Attempt) -> bool:
    build = sweep.builds.get(attempt.build)
    return build is not None and build.rehearsal is not None


def _interpreter(attempt: Attempt, source: Path, *, is_local: bool) -> str:
    """Return the interpreter, absolute where the sweep wrote it relative to its folder."""
    python = attempt.python
    if is_local and "/" in python and not python.startswith(("/", "~")):
        return str(Path(source).absolute().parent / python)
    return python
