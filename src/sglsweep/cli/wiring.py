"""What sweep, attempt and relaunch have in common: from a file to a sweep that can launch."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Never

from sglsweep import catalogue
from sglsweep.cli.lines import Lines
from sglsweep.clock import SystemClock
from sglsweep.config.sweep import load_sweep
from sglsweep.journal import Journal, RunIdentity
from sglsweep.prepare import prepare
from sglsweep.sweep import Settings, Sweeping, tell_notes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglsweep.config.sweep import Sweep


@contextmanager
def open_sweep(
    path: Path, out: Path | None, settings: Settings | None = None
) -> Iterator[Sweeping]:
    """Lock the run's folder, prepare the host, and hand out a sweep that can launch.

    A SIGTERM ends it as Ctrl-C does: the attempt is stopped and recorded first.
    """
    sweep = load_sweep(path)
    folder = out or folder_of(sweep)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        ground = prepare(path)
        try:
            with Journal.create_or_resume(folder, identity_of(sweep)) as journal:
                journal.record(source=str(path.absolute()))
                sweeping = Sweeping(
                    ground=ground,
                    journal=journal,
                    catalogue=catalogue.load(),
                    clock=SystemClock(),
                    listener=Lines(),
                    settings=settings or Settings(),
                )
                tell_notes(sweeping)
                yield sweeping
        finally:
            ground.host.close()
    finally:
        signal.signal(signal.SIGTERM, previous)


def folder_of(sweep: Sweep) -> Path:
    """Return `runs/NAME` beside the sweep's file."""
    return sweep.source.parent / "runs" / sweep.name


def identity_of(sweep: Sweep) -> RunIdentity:
    """Return what may not change while a run goes on."""
    model = sweep.model
    return RunIdentity(
        name=sweep.name,
        model=f"{model.name}@{model.revision}" if model.revision else model.name,
        launch={"flags": dict(sweep.launch.flags), "env": dict(sweep.launch.env)},
        sweep_text=sweep.source.read_text(encoding="utf-8"),
        host=sweep.host,
        catalogue=catalogue.load().version,
    )


def _interrupt(_number: int, _frame: object) -> Never:
    raise KeyboardInterrupt
