"""`sglsweep doctor`: can this host run a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sglsweep.doctor import Patient
    from sglsweep.probe.checks import Check

_UNUSABLE = 3


def doctor(
    host: str = typer.Argument(
        ..., metavar="HOST", help="A name of hosts.yaml, an SSH alias, `local`, or a SWEEP.yaml."
    ),
    python: str | None = typer.Option(
        None, "--python", "--build", metavar="P", help="The interpreter of the SGLang to check."
    ),
    model: str | None = typer.Option(
        None, "--model", metavar="M", help="A model whose files must be complete: id or path."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Say whether a host can run a sweep, and for whatever it lacks what to do.

    With a SWEEP.yaml its host, builds, models and port are checked. Launches nothing.

    Example: sglsweep doctor blackwell --python /opt/sglang/bin/python
    """
    from sglsweep.doctor import examine, is_usable

    checks = []
    for check in examine(_patient(host, python, model)):
        checks.append(check)
        if not as_json:
            typer.echo(_shown(check))
    usable = is_usable(checks)
    if as_json:
        typer.echo(json.dumps(_document(host, checks, is_usable=usable)))
    else:
        typer.echo(_sum(checks))
    raise typer.Exit(0 if usable else _UNUSABLE)


def _patient(word: str, python: str | None, model: str | None) -> Patient:
    from dataclasses import replace

    from sglsweep.cli.hosts import host_named, is_sweep
    from sglsweep.doctor import ModelWanted, Patient

    config = host_named(word)
    named = python or config.python
    patient = Patient(config=config, pythons={"default": named} if named else {})
    if is_sweep(word):
        patient = _of_sweep(Path(word), patient)
    if python is not None:
        patient = replace(patient, pythons={"default": python})
    if model is not None:
        patient = replace(patient, models=(ModelWanted(name=model, target=model),))
    return patient


def _of_sweep(path: Path, patient: Patient) -> Patient:
    """Add what a sweep launches to what is known of its host."""
    from dataclasses import replace

    from sglsweep.config.sweep import load_sweep
    from sglsweep.doctor import ModelWanted, ranks_of
    from sglsweep.prepare import hub_of, interpreters, refuse_unsupported

    sweep = load_sweep(path)
    refuse_unsupported(sweep)
    pythons = interpreters(sweep, patient.config)
    models = [
        ModelWanted(name=m.name, target=m.target, revision=m.revision, offline=m.offline)
        for m in sweep.models.values()
    ]
    return replace(
        patient,
        pythons=pythons,
        models=tuple(models) if pythons else (),
        has_standins=any(build.rehearsal is not None for build in sweep.builds.values()),
        port=sweep.port,
        ranks=ranks_of(sweep) if pythons else None,
        hub=hub_of(sweep),
    )


def _shown(check: Check) -> str:
    from sglsweep.report.document import clean

    lines = [f"{check.level.value:<8} {check.name}: {clean(check.said)}"]
    if check.next_step:
        lines.append(f"{'next:':>13} {clean(check.next_step)}")
    return "\n".join(lines)


def _sum(checks: list[Check]) -> str:
    from sglsweep.probe.checks import Level
    from sglsweep.report.numbers import plural

    problems = sum(check.level is Level.PROBLEM for check in checks)
    warnings = sum(check.level is Level.WARNING for check in checks)
    if problems:
        return f"not usable: {plural(problems, 'problem')}, {plural(warnings, 'warning')}"
    return f"usable, {plural(warnings, 'warning')}" if warnings else "usable"


def _document(host: str, checks: list[Check], *, is_usable: bool) -> dict[str, object]:
    return {
        "schema": 1,
        "host": host,
        "usable": is_usable,
        "checks": [
            {"name": c.name, "level": c.level.value, "said": c.said, "next_step": c.next_step}
            for c in checks
        ],
    }
