"""`sglsweep watch`: the live view of a sweep that runs elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sglsweep.events import Listener
    from sglsweep.journal import Journal

_LOOK_EVERY_S = 0.5


def watch(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
) -> None:
    """Look on at a sweep that runs in another terminal, until it ends; Ctrl-C ends only the view.

    Reads the run's folder, never the host. Plain lines where this is no terminal.

    Example: sglsweep watch runs/rehearsal
    """
    from sglsweep.cli.live import LiveView, showing
    from sglsweep.cli.scene import Scene
    from sglsweep.cli.wiring import odds_words
    from sglsweep.journal import Journal, find_run

    journal = Journal.read(find_run(run, Path.cwd()))
    facts = journal.facts
    goals = facts.get("goal")
    scene = Scene(
        title=str(facts.get("name") or journal.folder.name),
        host=str(facts.get("host") or "?"),
        goal=", ".join(map(str, goals)) if isinstance(goals, list) else "",
        began_at=time.time(),
        outcomes=list(journal.history()),
    )
    if journal.holder:
        slots = facts.get("slots")
        with showing(scene, slots=slots if isinstance(slots, int) else 1) as listener:
            if isinstance(listener, LiveView):
                listener.foresee(lambda _: ("", odds_words(Journal.read(journal.folder))))
            _follow(journal, listener)
    typer.echo(_last_words(Journal.read(journal.folder)))


def _follow(journal: Journal, listener: Listener) -> None:
    """Tell what happens until nobody writes to the run any more."""
    from sglsweep import catalogue
    from sglsweep.clock import SystemClock
    from sglsweep.onlook import Onlooker

    clock = SystemClock()
    onlooker = Onlooker(journal, catalogue.load(), clock)
    is_written = True
    while is_written:
        # First this and then the folder, so that the last words are not missed.
        is_written = bool(journal.holder)
        for event in onlooker.look():
            listener.tell(event)
        if is_written:
            clock.sleep(_LOOK_EVERY_S)


def _last_words(journal: Journal) -> str:
    from sglsweep.attempt import numbered
    from sglsweep.report.numbers import plural
    from sglsweep.verdict import Verdict

    outcomes = journal.history()
    serving = [o.attempt.number for o in outcomes if o.verdict is Verdict.SERVING]
    found = f"serving: {numbered(serving)}" if serving else "none serves"
    finish = journal.facts.get("finish")
    if finish:
        how = f"finished: {finish}"
    elif left := len(journal.open_attempts()) + len(journal.stopping_outcomes()):
        what = "an attempt is left open" if left == 1 else f"{left} attempts are left open"
        whom = "it" if left == 1 else "them"
        how = f"not running, {what}: the same `sglsweep sweep` command takes {whom} over"
    else:
        how = "not running: the same `sglsweep sweep` command resumes it"
    return f"{how}\n{found}; {plural(len(outcomes), 'attempt')} in all"
