"""`sglsweep pull`: an attempt's log as a test case."""

from __future__ import annotations

import re
from pathlib import Path

import typer

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z")


def pull(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
    number: int = typer.Argument(..., metavar="N", help="Number of the attempt."),
    name: str = typer.Option(
        ..., "--as", metavar="CAUSE/CASE", help="The signature it shows, and a name for the case."
    ),
    to: Path | None = typer.Option(
        None, "--to", metavar="DIR", help="Default: tests/triage/logs of this checkout, else here."
    ),
) -> None:
    """Turn an attempt's log into a test case: trimmed, private details out, the answer marked.

    Example: sglsweep pull runs/demo 3 --as oom-graph-capture/h200-tp8
    """
    from sglsweep import catalogue
    from sglsweep.cli.runs import outcome_of, read_run
    from sglsweep.pull import pull as pulled

    cause, path = _path(name, to)
    journal = read_run(run)
    outcome = outcome_of(journal, number)
    log = journal.read_log(number, limit=outcome.end.stop_offset)
    case = pulled(outcome, log, cause=cause, catalogue=catalogue.load())
    _write(path, case.content)
    before, after = case.lines
    typer.echo(f"{path}: {after} of {before} lines")
    for kind, count in case.replaced.items():
        typer.echo(f"replaced: {count} {kind}{'' if count == 1 else 's'}")
    for check in case.checks:
        typer.echo(f"check: {check}")


def _path(name: str, to: Path | None) -> tuple[str, Path]:
    from sglsweep.errors import ConfigError

    if not _NAME.match(name):
        raise ConfigError(
            f"--as {name}: not CAUSE/CASE",
            next_step="Write for example --as oom-graph-capture/h200-tp8; "
            "`sglsweep signatures` lists the causes.",
        )
    cause, _, case = name.partition("/")
    path = (to or _default_folder()) / cause / f"{case.removesuffix('.log')}.log"
    if path.exists():
        raise ConfigError(
            f"{path}: exists already", next_step="Choose another CASE, or remove that file first."
        )
    return cause, path


def _default_folder() -> Path:
    """Return where the cases of this checkout lie, else the folder we are in."""
    here = Path.cwd()
    found = (folder / "tests" / "triage" / "logs" for folder in (here, *here.parents))
    return next((folder for folder in found if folder.is_dir()), Path())


def _write(path: Path, content: bytes) -> None:
    from sglsweep.errors import StorageError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise StorageError(
            f"{path}: cannot write: {error.strerror or error}",
            next_step="Give --to a folder that can be written.",
        ) from error
