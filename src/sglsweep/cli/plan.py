"""`sglsweep plan`: what a sweep would do, without doing it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sglsweep.config.sweep import Sweep
    from sglsweep.expand import Expanded
    from sglsweep.expand.resolved import Settled
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.prepare import Ground


_ATTEMPT_MIN = 5.0
"""Minutes an attempt takes where nothing better is known: the lead case took 3 to 5."""


def plan(
    file: Path = typer.Argument(..., metavar="SWEEP.yaml"),
    probe: bool = typer.Option(
        False,
        "--probe",
        help="Ask the host's SGLang for its flags and what it makes of every cell.",
    ),
    gpu: str | None = typer.Option(
        None, "--gpu", help="As for `resolve`: probe this machine's SGLang for such a GPU."
    ),
    python: str | None = typer.Option(None, "--python", help="As for `resolve`."),
    model_config: list[Path] = typer.Option([], "--model-config", help="As for `resolve`."),
    first: int = typer.Option(10, help="How many first attempts to show."),
    strategy: str = typer.Option("adaptive", help="As for `sweep`."),
    seed: int = typer.Option(0, help="As for `sweep`."),
) -> None:
    """Show the cells, what is excluded and why, the first attempts and how long it may take.

    Touches no host unless --probe is given; --gpu and --python ask on this machine instead.

    Example: sglsweep plan configs/demo-cpu.yaml --probe
    """
    from sglsweep.config.sweep import load_sweep
    from sglsweep.expand import expand
    from sglsweep.plan.effective import as_requested

    sweep = load_sweep(file)
    is_checked = probe or gpu is not None or python is not None
    if is_checked:
        ground = _probed(sweep, file, gpu, python, model_config)
        expanded = ground.expanded
        settled = ground.settled
        _print_settled(settled)
    else:
        expanded, settled = expand(sweep), None
    seen = settled.effective if settled else as_requested(expanded.cells)
    _print_matrix(sweep, expanded, is_checked=is_checked)
    _print_first(sweep, expanded, seen, first, (strategy, seed))


def _probed(
    sweep: Sweep, file: Path, gpu: str | None, python: str | None, model_config: list[Path]
) -> Ground:
    from sglsweep.cli.resolve import ask_here
    from sglsweep.prepare import prepare

    if sweep.resolve or gpu or python:
        return ask_here(file, gpu, python, model_config)
    ground = prepare(file)
    ground.host.close()
    return ground


def _print_matrix(sweep: Sweep, expanded: Expanded, *, is_checked: bool) -> None:
    axes = ", ".join(f"{a.name} ({len(a.values)})" for a in sweep.axes) or "none"
    typer.echo(f"axes: {axes}")
    typer.echo(f"cells: {len(expanded.cells)} to launch, {len(expanded.includes)} included first")
    for because, count in expanded.excluded_counts.items():
        typer.echo(f"excluded: {count} {'cell' if count == 1 else 'cells'}: {because}")
    for note in (*sweep.unsupported, *expanded.notes):
        typer.echo(f"note: {note.where}: {note.text}")
    if not is_checked:
        typer.echo("flags and values are not checked against an SGLang; --probe does that")


def _print_settled(settled: Settled | None) -> None:
    """Tell what SGLang itself would refuse, what it makes equal, and what is known to fail."""
    if settled is None:
        return
    told = [
        *(("refused", item.told) for item in settled.refused),
        *(("equal", item.because) for item in settled.merged),
        *(
            ("launched last", f"{item.issue.reason} Instead: {item.issue.instead}")
            for item in settled.suspects
        ),
    ]
    for (word, because), count in Counter(told).items():
        typer.echo(f"{word}: {count} {'cell' if count == 1 else 'cells'}: {because}")


def _print_first(
    sweep: Sweep, expanded: Expanded, seen: EffectiveCells, first: int, how: tuple[str, int]
) -> None:
    from sglsweep.cli.lines import describe
    from sglsweep.plan.rehearse import decisions_if_all_fail

    budget = sweep.budget
    count = len(expanded.cells) + len(expanded.includes)
    most = min(count, budget.attempts or count)
    hours = most * _ATTEMPT_MIN / 60
    limit = f", stopped by the budget after {budget.hours:g} h" if budget.hours else ""
    typer.echo(f"time: at most {most} attempts, about {hours:.1f} h at 5 min each{limit}")
    typer.echo("first attempts, if each fails of a cause of its own:")
    goal = str(sweep.goal[0])
    steps = decisions_if_all_fail(seen, expanded.includes, goal, how, first)
    for number, step in enumerate(steps, start=1):
        values = {n: v for n, v in step.cell.values.items() if v is not None}
        typer.echo(f"{number:3} {step.cell.short_key} {describe(values)}")
        typer.echo(f"      {step.why}")
