"""`sglsweep export`: one attempt as a file that people deploy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer


class Form(StrEnum):
    """What `--to` takes."""

    SHELL = "shell"
    COMPOSE = "compose"
    SBATCH = "sbatch"


def export(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
    number: int = typer.Argument(..., metavar="N", help="Number of the attempt."),
    to: Form = typer.Option(..., "--to", help="A script, a compose file, or a Slurm job."),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="Write it there; default: standard output."
    ),
) -> None:
    """Write one attempt as a file people deploy, with what was proven of it in its comments.

    Secrets stay ${NAME}, to be set where it is started.

    Example: sglsweep export runs/demo 3 --to compose --out compose.yaml
    """
    from sglsweep.cli.runs import outcome_of, read_run
    from sglsweep.export import FORMS, deployment_of
    from sglsweep.report import replace_file

    journal = read_run(run)
    name = str(journal.facts.get("name") or journal.folder.name)
    deployment = deployment_of(outcome_of(journal, number), name)
    text = FORMS[to.value](deployment)
    if out is None:
        typer.echo(text, nl=False)
    else:
        replace_file(out, text.encode("utf-8", "surrogateescape"))
    if not deployment.is_serving:
        typer.echo(f"note: attempt {number} does not serve; the file says so", err=True)
