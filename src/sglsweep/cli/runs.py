"""A run and its attempts, as a command line names them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.journal import Journal, find_run

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome


def read_run(run: str) -> Journal:
    """Open the run that RUN means, to look at it."""
    return Journal.read(find_run(run, Path.cwd()))


def outcome_of(journal: Journal, number: int) -> Outcome:
    """Return a finished attempt.

    Raises:
        ConfigError: none has that number.
    """
    history = journal.history()
    found = next((o for o in history if o.attempt.number == number), None)
    if found is None:
        known = ", ".join(str(o.attempt.number) for o in history) or "none"
        raise ConfigError(
            f"{journal.folder.name}: no finished attempt {number}",
            next_step=f"Finished attempts: {known}.",
        )
    return found


def source_of(journal: Journal) -> Path:
    """Return the sweep's own file while it exists, else the copy in the run's folder."""
    source = Path(str(journal.facts.get("source", "")))
    return source if source.is_file() else journal.folder / "sweep.yaml"
