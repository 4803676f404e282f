"""`sglsweep attempt` and `sglsweep relaunch`: one attempt, outside the plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Cell, Value
    from sglsweep.sweep import Sweeping

_SET = typer.Option([], "--set", metavar="FLAG=VALUE", help="Set a flag or env.NAME; repeatable.")
_ANYWAY = typer.Option(
    False, "--anyway", help="Launch it even where SGLang, asked first, refuses it."
)
_UNSET = typer.Option([], "--unset", metavar="FLAG", help="Do not pass a flag; repeatable.")


def attempt(
    file: Path = typer.Argument(..., metavar="SWEEP.yaml"),
    settings: list[str] = _SET,
    removals: list[str] = _UNSET,
    cell_key: str | None = typer.Option(
        None, "--cell", metavar="KEY", help="A cell of the matrix, by its key or its short key."
    ),
    requests: Path | None = typer.Option(
        None,
        "--requests",
        metavar="FILE",
        help="Ask the server these too, one JSON object a line; instead of those of the file.",
    ),
    anyway: bool = _ANYWAY,
    out: Path | None = typer.Option(None, "--out", help="The run's folder."),
    as_json: bool = typer.Option(False, "--json", help="Print the outcome as JSON."),
) -> None:
    """Launch one attempt outside the plan: `launch`, a cell of the matrix, or your own settings.

    Example: sglsweep attempt configs/demo-cpu.yaml --set attention-backend=torch_native
    """
    from sglsweep import report
    from sglsweep.cli.settings import parse_removals, parse_settings
    from sglsweep.cli.wiring import open_sweep
    from sglsweep.config.requests import read_requests
    from sglsweep.matrix import Cell
    from sglsweep.sweep import launch_cell, probe_settings, settle

    own = read_requests(requests, where="--requests") if requests else None
    changes = {**parse_settings(settings), **parse_removals(removals)}
    with open_sweep(file, out) as sweeping:
        base = _find_cell(sweeping, cell_key) if cell_key else Cell({})
        cell = base.with_values(changes)
        _check(sweeping, cell, changes)
        settle(sweeping)
        _forewarn(sweeping, cell, anyway=anyway, as_json=as_json)
        probe = probe_settings(sweeping.ground.sweep)
        if own is not None:
            probe = replace(probe, requests=own)
        outcome = launch_cell(sweeping, cell, why="asked for by hand", probe=probe)
        report.write(sweeping.journal)
    _print(outcome, as_json=as_json)


def relaunch(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
    number: int = typer.Argument(..., metavar="N", help="Number of the attempt."),
    settings: list[str] = _SET,
    removals: list[str] = _UNSET,
    explain: bool = typer.Option(
        False,
        "--explain",
        help="Add what names the true fault: CUDA_LAUNCH_BLOCKING, SGLang's NaN check, no graphs.",
    ),
    measure: bool = typer.Option(
        False, "--measure", help="Climb the ladder and soak too, as the sweep does."
    ),
    anyway: bool = _ANYWAY,
    as_json: bool = typer.Option(False, "--json", help="Print the outcome as JSON."),
) -> None:
    """Launch an attempt again, as it was or with changes, and say what differs.

    Example: sglsweep relaunch runs/demo 3 --set attention-backend=torch_native
    """
    from sglsweep import report
    from sglsweep.cli.runs import outcome_of, read_run, source_of
    from sglsweep.cli.settings import parse_removals, parse_settings
    from sglsweep.cli.wiring import open_sweep
    from sglsweep.sweep import launch_cell, only_proven, settle

    stored = read_run(run)
    before = outcome_of(stored, number)
    changes = {**parse_settings(settings), **parse_removals(removals)}
    with open_sweep(source_of(stored), stored.folder) as sweeping:
        table = sweeping.ground.tables.get(before.attempt.build)
        extra = explaining(table, before.diagnosis.sglang_version) if explain else {}
        cell = before.attempt.cell.with_values({**changes, **extra})
        _check(sweeping, cell, changes)
        settle(sweeping)
        _forewarn(sweeping, cell, anyway=anyway, as_json=as_json, again=number)
        why = _why(number, {**changes, **extra})
        probe = None if measure else only_proven(sweeping)
        outcome = launch_cell(sweeping, cell, why=why, relaunch_of=number, probe=probe)
        report.write(sweeping.journal)
    if not as_json:
        typer.echo(_comparison(before, outcome))
    _print(outcome, as_json=as_json)


def explaining(table: FlagTable | None, version: str | None) -> dict[str, Value]:
    """Return the settings that make a failure name its true place, for this SGLang."""
    from sglsweep.sweep import nan_check_of

    added: dict[str, Value] = {"env.CUDA_LAUNCH_BLOCKING": "1", "disable-cuda-graph": True}
    return {**added, **nan_check_of(table, version)}


def _find_cell(sweeping: Sweeping, key: str) -> Cell:
    expanded = sweeping.ground.expanded
    for cells in (expanded.includes, expanded.cells):
        found = next((c for c in cells if key in {c.key, c.short_key}), None)
        if found is not None:
            return found
    excluded = next((e for e in expanded.excluded if key in {e.cell.key, e.cell.short_key}), None)
    if excluded is not None:
        raise ConfigError(
            f"cell {key} is excluded ({excluded.where}): {excluded.because}",
            next_step="Launch it with --set instead, or take it out of `exclude`.",
        )
    raise ConfigError(
        f"no cell has the key {key}", next_step="`sglsweep plan` lists cells with their keys."
    )


def _check(sweeping: Sweeping, cell: Cell, changes: Mapping[str, Value]) -> None:
    """Refuse a flag or a value that the build does not know, before anything is launched."""
    sweep = sweeping.ground.sweep
    for axis, known in (("model", sweep.models), ("build", sweep.builds)):
        wanted = changes.get(axis)
        if wanted is not None and str(wanted) not in known:
            raise ConfigError(
                f"--set {axis}: {sweep.source} does not name '{wanted}'",
                next_step=f"It names {', '.join(known)}; name another on its `{axis}` axis, or "
                "in a cell under `include`.",
            )
    table = sweeping.ground.tables.get(sweep.build_of(cell).name)
    if table is None:
        return
    for name, value in changes.items():
        problem = None if name.startswith("env.") else table.problem(name, value)
        if problem is not None:
            raise ConfigError(f"--set {name}: {problem.what}", next_step=problem.instead)


def _forewarn(
    sweeping: Sweeping, cell: Cell, *, anyway: bool, as_json: bool, again: int | None = None
) -> None:
    """Ask SGLang first: end here if it refuses the cell, name an attempt that it equals.

    Raises:
        Exit: with status 1 where it refuses; nothing was launched.
    """
    from sglsweep.sweep import foresee

    foreseen = foresee(sweeping, cell)
    equal = foreseen.equal
    if equal is not None and equal.attempt.number != again:
        number, verdict = equal.attempt.number, equal.verdict.value
        typer.echo(
            f"note: SGLang resolves this to the configuration of attempt {number} ({verdict})",
            err=True,
        )
    if foreseen.refused is None or anyway:
        return
    refused = foreseen.refused
    if as_json:
        typer.echo(json.dumps({"schema": 1, "outcome": None, "refused": refused.to_json()}))
    else:
        typer.echo(f"{refused.verdict.value} in args, not launched: SGLang refuses this cell:")
        typer.echo(f"  {refused.because}")
        typer.echo(f"next: {refused.next_step or 'Change what its words name.'}")
        typer.echo("      --anyway launches it all the same.")
    raise typer.Exit(1)


def _why(number: int, changes: Mapping[str, Value]) -> str:
    said = ", ".join(f"{name}={value}" for name, value in changes.items())
    return f"attempt {number} again" + (f" with {said}" if said else " as it was")


def _comparison(before: Outcome, after: Outcome) -> str:
    old, new = before.attempt, after.attempt
    lines = [f"attempt {old.number} -> attempt {new.number}"]
    lines += _changes("flag", _pairs(old.argv), _pairs(new.argv))
    lines += _changes("env", old.env, new.env)
    lines.append(f"verdict: {before.verdict.value} -> {after.verdict.value}")
    if before.diagnosis.cause != after.diagnosis.cause:
        lines.append(f"cause: {before.diagnosis.cause} -> {after.diagnosis.cause}")
    return "\n".join(lines)


def _pairs(argv: Sequence[str]) -> dict[str, str]:
    """Return flag -> the words after it."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            found[name] = [value] if value else []
        elif name:
            found[name].append(word)
    return {name: " ".join(words) for name, words in found.items()}


def _changes(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    names = sorted({*old, *new})
    return [
        f"{kind} {name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _print(outcome: Outcome, *, as_json: bool) -> None:
    from sglsweep.journal.codec import to_json
    from sglsweep.verdict import Verdict

    if as_json:
        typer.echo(json.dumps({"schema": 1, "outcome": to_json(outcome)}))
    else:
        diagnosis = outcome.diagnosis
        typer.echo(f"{diagnosis.verdict.value} in {diagnosis.phase.value}: {diagnosis.evidence}")
        if diagnosis.next_step:
            typer.echo(f"next: {diagnosis.next_step}")
    raise typer.Exit(0 if outcome.verdict is Verdict.SERVING else 1)
