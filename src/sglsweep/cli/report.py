"""`sglsweep report`, `status`, `diff`: what stored runs say."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt, Diagnosis
    from sglsweep.journal import Journal
    from sglsweep.report.compare import Difference
    from sglsweep.report.status import Running

_RUN = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/.")
_JSON = typer.Option(False, "--json", help="Print one JSON document.")


def report(
    run: str = _RUN,
    html: Path | None = typer.Option(
        None, "--html", metavar="FILE", help="Write one self-contained page with the matrix."
    ),
    issue: int | None = typer.Option(
        None, "--issue", metavar="N", help="Print a bug report for attempt N, to paste upstream."
    ),
    brief: bool = typer.Option(False, "--brief", help="Print one page for a boss."),
    as_json: bool = _JSON,
) -> None:
    """Write FINDINGS.md and findings.json again; print it in another form.

    Example: sglsweep report demo --html demo.html
    """
    from sglsweep import report as reports
    from sglsweep.journal import Journal, find_run

    journal = Journal.read(find_run(run, Path.cwd()))
    if sum((html is not None, issue is not None, brief, as_json)) > 1:
        raise ConfigError(
            "--html, --issue, --brief and --json are different outputs",
            next_step="Ask for one of them at a time.",
        )
    view = reports.write(journal)
    if as_json:
        _print_json(reports.findings_json(view))
    elif issue is not None:
        typer.echo(reports.issue(view, issue, journal.read_log(issue)), nl=False)
    elif brief:
        typer.echo(reports.brief(view), nl=False)
    elif html is not None:
        reports.replace_file(html, reports.page(view).encode("utf-8"))
        typer.echo(str(html))
    else:
        typer.echo(str(journal.folder / "FINDINGS.md"))


def status(run: str = _RUN, as_json: bool = _JSON) -> None:
    """Say where a sweep stands; asks the stored run only, never the host.

    Example: sglsweep status demo
    """
    from sglsweep.journal import Journal, find_run
    from sglsweep.report.status import status_json, status_text
    from sglsweep.report.view import view_of

    journal = Journal.read(find_run(run, Path.cwd()))
    view = view_of(journal)
    running = [_running(journal, attempt) for attempt in view.running]
    if as_json:
        _print_json(status_json(view, running, holder=journal.holder))
        return
    typer.echo(status_text(view, running, holder=journal.holder), nl=False)


def diff(
    before: str = typer.Argument(..., metavar="A", help="A run, or a log file."),
    after: str = typer.Argument(..., metavar="B", help="Another one of the same kind."),
    as_json: bool = _JSON,
) -> None:
    """Say which cells of two runs changed in verdict, numbers or effective flags.

    Two plain logs are compared in the same way.

    Example: sglsweep diff runs/monday runs/tuesday
    """
    from sglsweep.journal import Journal, find_run
    from sglsweep.report import compare
    from sglsweep.report.markdown import to_markdown
    from sglsweep.report.view import view_of

    names = (before, after)
    if all(Path(name).is_file() for name in names):
        _diff_logs(names, as_json=as_json)
        return
    views = [view_of(Journal.read(find_run(name, Path.cwd()))) for name in names]
    result = compare.compare_runs(views[0], views[1])
    if as_json:
        _print_json(compare.comparison_json(names, result))
        return
    typer.echo(to_markdown(compare.document(names, result)), nl=False)


def _diff_logs(names: tuple[str, str], *, as_json: bool) -> None:
    from sglsweep.report import compare
    from sglsweep.report.markdown import to_markdown

    found: tuple[Difference, ...] = compare.compare_diagnoses(
        _diagnosed(Path(names[0])), _diagnosed(Path(names[1]))
    )
    if as_json:
        differences = compare.differences_json(found)
        document = {"schema": 1, "before": names[0], "after": names[1]}
        _print_json({**document, "differences": differences})
        return
    typer.echo(to_markdown(compare.log_document(names, found)), nl=False)


def _diagnosed(log: Path) -> Diagnosis:
    from sglsweep import catalogue
    from sglsweep.triage.diagnose import diagnose

    try:
        return diagnose(log.read_bytes(), catalogue.load())
    except OSError as error:
        raise ConfigError(
            f"{log}: cannot read: {error.strerror}", next_step="Give a log that you may read."
        ) from error


def _running(journal: Journal, attempt: Attempt) -> Running:
    """Read from the stored log how far an attempt is."""
    from sglsweep import catalogue
    from sglsweep.report.status import Running
    from sglsweep.triage.follow import Follower

    log = journal.read_log(attempt.number)
    if not log:
        return Running(attempt=attempt, elapsed_s=_since(attempt.started_at))
    follower = Follower(catalogue.load())
    follower.feed(log)
    grown = journal.log_path(attempt.number).stat().st_mtime
    return Running(
        attempt=attempt,
        phase=follower.phase.value,
        elapsed_s=_since(attempt.started_at),
        quiet_s=round(max(0.0, time.time() - grown), 1),
    )


def _since(stamp: str) -> float | None:
    try:
        started = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return round((datetime.now(UTC) - started.astimezone(UTC)).total_seconds(), 1)


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, ensure_ascii=True))
