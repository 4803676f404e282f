"""`sglsweep clean`: end what earlier attempts left running."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from sglsweep.clean import Cleaning, Leftover, Wish

_UNUSABLE = 3
_SHOWN = 6


def clean(
    host: str = typer.Argument(
        ..., metavar="HOST", help="A name of hosts.yaml, an SSH alias, `local`, or a SWEEP.yaml."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be ended."),
    running: bool = typer.Option(
        False, "--running", help="End attempts too whose keeper lives: a sweep may be at work."
    ),
    only: str = typer.Option(
        "", "--only", metavar="MARKER", help="Only attempts whose marker begins so: RUN or RUN-N."
    ),
    older_than: str | None = typer.Option(
        None,
        "--older-than",
        metavar="AGE",
        help="Also remove folders of attempts that ended so long ago: 7d, 12h.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Find what earlier attempts left running on a host and end it; touch nothing else.

    An attempt whose keeper lives is left alone: it ends by itself, and its sweep can be resumed.

    Example: sglsweep clean blackwell --dry-run
    """
    from sglsweep.clean import Wish

    age = None if older_than is None else _age(older_than)
    said = _clean(host, Wish(is_dry=dry_run, running=running, only=only, older_than_s=age))
    typer.echo(json.dumps(_document(said)) if as_json else _text(said))
    raise typer.Exit(_UNUSABLE if said.survivors else 0)


def _clean(name: str, wish: Wish) -> Cleaning:
    from sglsweep.clean import Ground
    from sglsweep.clean import clean as clean_host
    from sglsweep.cli.hosts import host_named
    from sglsweep.prepare import keeper_python, open_host, workdir_of

    config = host_named(name)
    host = open_host(config)
    try:
        python = keeper_python(host, config)
        user = host.run(["id", "-un"]).text.strip() or None
        return clean_host(Ground(host, python, workdir_of(host, config), user), wish)
    finally:
        host.close()


def _age(text: str) -> float:
    from sglsweep.config.units import seconds

    found = seconds(text)
    if found is None:
        raise ConfigError(f"--older-than {text} is no age", next_step="Write it like 7d or 12h.")
    return found


def _text(said: Cleaning) -> str:
    from sglsweep.report.numbers import plural
    from sglsweep.watch import span

    lines = [f"{said.host}: {plural(said.attempts, 'attempt')} in {said.workdir}/runs"]
    verb = "would end" if said.is_dry else "ended"
    for one in said.ended:
        lines.append(f"{verb} {_named(one.what)}")
        lines += [f"  would not die: {left}" for left in one.left]
    for spared in said.spared:
        lines.append(f"left {_named(spared.what)}")
        lines += [f"  {spared.because}", f"  next: {spared.next_step}"]
    for old in said.removed:
        word = "removed" if old.is_gone else "would remove" if said.is_dry else "could not remove"
        lines.append(f"{word} {old.directory} ({span(old.age_s)} old, {old.bytes / 1e6:.1f} MB)")
    if not said.ended and not said.spared:
        lines.append("nothing of ours runs there")
    return "\n".join(lines)


def _named(what: Leftover) -> str:
    """Say what it is in one or a few lines."""
    from sglsweep.report.document import one_line

    port = f", port {what.port}" if what.port else ""
    folder = what.directory or "its folder is gone"
    lines = [f"{what.name} ({folder}{port})"]
    for process in what.processes[:_SHOWN]:
        lines.append(f"  pid {process['pid']} {one_line(str(process['title']), limit=120)}")
    if len(what.processes) > _SHOWN:
        lines.append(f"  and {len(what.processes) - _SHOWN} processes more")
    return "\n".join(lines)


def _document(said: Cleaning) -> dict[str, object]:
    return {
        "schema": 1,
        "host": said.host,
        "workdir": said.workdir,
        "dry_run": said.is_dry,
        "attempts": said.attempts,
        "ended": [{**_leftover(one.what), "left": list(one.left)} for one in said.ended],
        "spared": [
            {**_leftover(one.what), "because": one.because, "next_step": one.next_step}
            for one in said.spared
        ],
        "removed": [
            {"directory": r.directory, "age_s": r.age_s, "bytes": r.bytes, "is_gone": r.is_gone}
            for r in said.removed
        ],
    }


def _leftover(what: Leftover) -> dict[str, object]:
    return {
        "marker": what.marker,
        "directory": what.directory,
        "port": what.port,
        "keeper_alive": what.keeper,
        "processes": [{"pid": p["pid"], "title": p["title"]} for p in what.processes],
    }
