"""`sglsweep bisect`: which flags make the difference between a failing and a serving attempt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sglsweep.bisection import Bisection, Search
    from sglsweep.journal import Journal
    from sglsweep.matrix import Cell


def bisect(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
    bad: int = typer.Argument(..., metavar="BAD", help="Number of the failing attempt."),
    good: int | None = typer.Argument(
        None, metavar="[GOOD]", help="Number of a serving attempt; the nearest if left out."
    ),
    attempts: int | None = typer.Option(
        None,
        "--attempts",
        min=0,
        metavar="N",
        help="Launch at most N; as many as needed if absent.",
    ),
    dry_run: bool = typer.Option(
        False,
        "--dry-run",
        help="Say what would be launched next; touches no host. Exit status 0 if nothing would.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the answer as JSON."),
) -> None:
    """Launch what is needed to name the smallest set of flags that makes the difference.

    What the run's attempts have shown is used first. Exit status 1 if nothing is named.

    Example: sglsweep bisect runs/demo 3
    """
    from sglsweep.bisection import Search, run_bisection
    from sglsweep.cli.runs import read_run, source_of
    from sglsweep.cli.wiring import open_sweep
    from sglsweep.config.sweep import load_sweep
    from sglsweep.expand import expand
    from sglsweep.sweep import settle

    stored = read_run(run)
    source = source_of(stored)
    sweep = load_sweep(source)
    offline = Search(sweep=sweep, expanded=expand(sweep), bad=bad, good=good, tables={})
    if dry_run or not _can_begin(stored, offline):
        _say_next(stored, offline, as_json=as_json)
        return
    with open_sweep(source, stored.folder) as sweeping:
        settle(sweeping)
        ground = sweeping.ground
        search = Search(
            sweep=ground.sweep,
            expanded=ground.expanded,
            bad=bad,
            good=good,
            tables=ground.tables,
            most=attempts,
        )
        found = run_bisection(sweeping, search)
    _say(found, stored, as_json=as_json)


def _can_begin(stored: Journal, search: Search) -> bool:
    """Tell if there is something to compare; a mistake is refused before a host is asked."""
    from sglsweep.bisection import case_of

    return bool(stored.open_attempts()) or case_of(search, stored.history()) is not None


def _say_next(stored: Journal, search: Search, *, as_json: bool) -> None:
    """Print what the run's attempts show so far, and the next launch."""
    from sglsweep.bisection import Bisection, case_of
    from sglsweep.plan.bisect import Culprit, next_step

    case = case_of(search, stored.history())
    if case is None:
        _say(None, stored, as_json=as_json)
        return
    step = next_step(case)
    if isinstance(step, Culprit):
        found = Bisection(bad=case.bad.number, good=case.good.number, culprit=step)
        _say(found, stored, as_json=as_json)
        return
    if as_json:
        launch = {"cell": dict(step.cell.values), "why": step.why}
        document = {"bad": case.bad.number, "good": case.good.number, "is_named": False}
        typer.echo(json.dumps({"schema": 1, **document, "next": launch}))
        raise typer.Exit(1)
    typer.echo(f"between attempt {case.bad.number} (fails) and {case.good.number} (serves):")
    for flag in case.differing:
        typer.echo(f"  {flag}: {_word(case.bad.cell, flag)} / {_word(case.good.cell, flag)}")
    typer.echo(f"next launch: {step.why}")
    for flag in step.cell.difference(case.good.cell):
        typer.echo(f"  {flag}: {_word(case.good.cell, flag)} -> {_word(step.cell, flag)}")
    raise typer.Exit(1)


def _say(found: Bisection | None, stored: Journal, *, as_json: bool) -> None:
    """Print the answer and end with its exit status."""
    from sglsweep.bisection import as_json as document

    is_named = found is not None and found.culprit is not None
    if as_json:
        answer = document(found) if found else {"is_named": False, "why": _NOTHING_SERVES}
        typer.echo(json.dumps({"schema": 1, **answer}))
    else:
        for line in _sentences(found, stored):
            typer.echo(line)
    raise typer.Exit(0 if is_named else 1)


_NOTHING_SERVES = "no serving attempt to compare with"


def _sentences(found: Bisection | None, stored: Journal) -> list[str]:
    run = stored.folder.name
    if found is None:
        return [
            f"{run}: {_NOTHING_SERVES}",
            "next: find one that serves with `sglsweep sweep` or `sglsweep attempt`.",
        ]
    count = len(found.launched)
    made = f"{count} {'launch' if count == 1 else 'launches'} for it" if count else "none launched"
    if found.culprit is None:
        return [
            f"not named yet ({made}): --attempts is used up",
            f"next: sglsweep bisect {run} {found.bad} {found.good}",
        ]
    lines = [f"{found.culprit.why} ({made})"]
    return lines + _host_warning(found, stored)


def _host_warning(found: Bisection, stored: Journal) -> list[str]:
    """Say so where the machine was changed between the two attempts: flags are not all, then."""
    from sglsweep.report.launches import host_changes

    outcomes = {o.attempt.number: o for o in stored.history()}
    changed = host_changes(outcomes[found.good], outcomes[found.bad])
    if not changed:
        return []
    what = "; ".join(change.text for change in changed[:3])
    return [
        f"note: the host is not what it was between attempts {found.good} and {found.bad}: {what}",
        f"next: sglsweep changed {stored.folder.name} {found.bad}",
    ]


def _word(cell: Cell, flag: str) -> str:
    value = cell.get(flag)
    return "not passed" if value is None else str(value)
