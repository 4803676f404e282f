"""What sweep, attempt and relaunch have in common: from a file to a sweep that can launch."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Never

from sglsweep import catalogue
from sglsweep.cli.live import LiveView, showing
from sglsweep.cli.scene import Scene
from sglsweep.clock import SystemClock
from sglsweep.config.sweep import load_sweep
from sglsweep.events import Note
from sglsweep.foresee import step_after
from sglsweep.journal import Journal, RunIdentity
from sglsweep.matrix import spell
from sglsweep.plan.strategy import Finish
from sglsweep.prepare import prepare
from sglsweep.resolve import can_ask
from sglsweep.sweep import Settings, Sweeping, ask_first, tell_notes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglsweep.attempt import Attempt
    from sglsweep.config.sweep import Sweep
    from sglsweep.matrix import Value


@contextmanager
def open_sweep(
    path: Path, out: Path | None, settings: Settings | None = None, *, is_planned: bool = False
) -> Iterator[Sweeping]:
    """Lock the run's folder, prepare the host, and hand out a sweep that can launch.

    A SIGTERM ends it as Ctrl-C does: the attempt is stopped and recorded first.

    Args:
        path: SWEEP.yaml.
        out: the run's folder; None = beside the file.
        settings: how to decide.
        is_planned: the strategy chooses what comes next, so that the view can say it.
    """
    sweep = load_sweep(path)
    folder = out or folder_of(sweep)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        ground = prepare(path)
        try:
            with Journal.create_or_resume(folder, identity_of(sweep)) as journal:
                slots = (settings and settings.slots) or ground.config.slots
                count = max(slots if is_planned else 1, len(journal.open_attempts()))
                journal.record(source=str(path.absolute()), slots=count)
                with showing(scene_of(sweep, journal), slots=count) as listener:
                    if is_planned and sweep.resolve and can_ask(ground):
                        listener.tell(Note(text="asking SGLang what it makes of every cell"))
                        ground = ask_first(ground, cache=folder / "resolved")
                    sweeping = Sweeping(
                        ground=ground,
                        journal=journal,
                        catalogue=catalogue.load(),
                        clock=SystemClock(),
                        listener=listener,
                        settings=settings or Settings(),
                    )
                    if is_planned and isinstance(listener, LiveView):
                        # Of several nobody knows which one ends first.
                        words = next_words if count == 1 else lambda _sweeping, _attempt: ""
                        listener.foresee(
                            lambda attempt: (words(sweeping, attempt), odds_words(journal))
                        )
                    tell_notes(sweeping)
                    yield sweeping
        finally:
            ground.host.close()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command goes on where this one stopped\n")
        raise
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


def scene_of(sweep: Sweep, journal: Journal) -> Scene:
    """Return what a view knows before anything happens."""
    return Scene(
        title=sweep.name,
        host=sweep.host,
        goal=", ".join(map(str, sweep.goal)),
        most=sweep.budget.attempts,
        began_at=time.time(),
        outcomes=list(journal.history()),
    )


def next_words(sweeping: Sweeping, attempt: Attempt) -> str:
    """Say what comes if the running attempt fails, for the view's last line."""
    step = step_after(sweeping, attempt)
    if isinstance(step, Finish):
        return f"if it fails: the end, {step.why}"
    values, before = step.cell.values, attempt.cell.values
    changed = {name: value for name, value in values.items() if before.get(name) != value}
    said = ", ".join(_setting(name, value) for name, value in changed.items())
    return f"if it fails: {said or 'the same again'} ({step.why})"


def odds_words(journal: Journal) -> str:
    """Say what the attempts that are left may bring, as the last decision worked it out."""
    forecast = journal.facts.get("forecast")
    return str(forecast.get("why") or "") if isinstance(forecast, dict) else ""


def _setting(name: str, value: Value) -> str:
    if value is None:
        return f"no {name}"
    return f"{name}={value if isinstance(value, str) else spell(value)}"


def _interrupt(_number: int, _frame: object) -> Never:
    raise KeyboardInterrupt
