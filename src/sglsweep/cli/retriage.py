"""`sglsweep retriage`: stored logs, today's knowledge."""

from __future__ import annotations

from pathlib import Path

import typer


def retriage(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
) -> None:
    """Diagnose a run's stored logs again with today's catalogue, and say what changed.

    Example: sglsweep retriage runs/demo
    """
    from sglsweep import catalogue, report
    from sglsweep.journal import Journal, find_run
    from sglsweep.retriage import retriage_run

    with Journal.resume(find_run(run, Path.cwd())) as journal:
        changes = retriage_run(journal, catalogue.load())
        report.write(journal)
    for change in changes:
        typer.echo(change)
    typer.echo(f"{len(changes)} of {len(journal.history())} diagnoses changed")
