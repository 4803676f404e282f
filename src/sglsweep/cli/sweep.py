"""`sglsweep sweep`."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def sweep(
    file: Path = typer.Argument(..., metavar="SWEEP.yaml", help="The matrix of flags to try."),
    out: Path | None = typer.Option(
        None, "--out", help="The run's folder; default: runs/NAME beside the file."
    ),
    strategy: str = typer.Option(
        "adaptive", help="adaptive, grid, random, pairwise or one-at-a-time."
    ),
    seed: int = typer.Option(0, help="For strategies that draw lots."),
    order: int = typer.Option(
        2, help="For pairwise: flags whose values are combined first, 2 = pairs, 3 = triples."
    ),
    slots: int | None = typer.Option(
        None,
        min=1,
        help="Attempts at once; default: the host's `slots` in hosts.yaml, else 1.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the findings as JSON at the end."),
) -> None:
    """Launch one attempt after another until the goal, the budget or the matrix ends.

    The same command goes on where an earlier one stopped. With several slots up to that many
    run side by side, each on its own port and, where there are enough, on its own GPUs.

    Example: sglsweep sweep configs/demo-cpu.yaml --out runs/demo
    """
    from sglsweep import report
    from sglsweep.attempt import numbered
    from sglsweep.cli.wiring import open_sweep
    from sglsweep.report.numbers import plural
    from sglsweep.report.record import findings_json
    from sglsweep.side_by_side import sweep_side_by_side
    from sglsweep.sweep import Settings, sweep_in_portions
    from sglsweep.verdict import Verdict

    settings = Settings(strategy=strategy, seed=seed, order=order, slots=slots)
    with open_sweep(file, out, settings, is_planned=True) as sweeping:
        try:
            why = sweep_in_portions(sweeping, sweep_side_by_side)
        finally:
            view = report.write(sweeping.journal)
        serving = [o.attempt.number for o in view.outcomes if o.verdict is Verdict.SERVING]
        folder = sweeping.journal.folder
    if as_json:
        typer.echo(json.dumps(findings_json(view)))
    else:
        found = f"serving: {numbered(serving)}" if serving else "none serves"
        typer.echo(f"finished: {why}\n{found}; {plural(len(view.outcomes), 'attempt')} in all")
        typer.echo(f"findings: {folder / 'FINDINGS.md'}")
    raise typer.Exit(0 if serving else 1)
