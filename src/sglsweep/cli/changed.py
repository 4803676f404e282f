"""`sglsweep changed`: it served yesterday, it fails today."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.changed import Pair, Ranked
    from sglsweep.journal import Journal


def changed(
    run: str = typer.Argument(..., metavar="RUN", help="A run's folder, or its name under runs/."),
    number: int | None = typer.Argument(
        None, metavar="[N]", help="The failing attempt; the host as it is now if left out."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the differences as JSON."),
) -> None:
    """Say what is different on the host since it served, likeliest to break a launch first.

    Compares the last serving attempt (of the same launch, if it served) with attempt N, or with
    the host as it is now. Exit status 1 if nothing has served.

    Example: sglsweep changed runs/demo 7
    """
    from sglsweep.changed import ranked
    from sglsweep.cli.runs import read_run

    journal = read_run(run)
    pair = _pair(journal, number)
    if pair is None:
        if as_json:
            typer.echo(json.dumps({"schema": 1, "served": None, "differences": []}))
        else:
            typer.echo(f"{journal.folder.name}: no attempt has served, nothing to compare with")
        raise typer.Exit(1)
    failure = pair.failed.diagnosis if pair.failed else None
    found = ranked(pair.differences(), failure)
    typer.echo(json.dumps(_document(pair, found)) if as_json else _text(pair, found, journal))


def _pair(journal: Journal, number: int | None) -> Pair | None:
    from sglsweep.changed import facts_today, pair_now, pair_of
    from sglsweep.cli.runs import source_of
    from sglsweep.verdict import Verdict

    history = journal.history()
    if number is not None:
        return pair_of(history, number)
    served = next((o for o in reversed(history) if o.verdict is Verdict.SERVING), None)
    if served is None:
        return None
    return pair_now(history, served, facts_today(source_of(journal), served.attempt))


def _document(pair: Pair, found: Sequence[Ranked]) -> dict[str, object]:
    failed = pair.failed
    return {
        "schema": 1,
        "served": pair.served.attempt.number,
        "failed": failed.attempt.number if failed else None,
        "against": "now" if pair.is_now else "attempt",
        "cause": failed.diagnosis.cause if failed else None,
        "same_launch": pair.is_same_launch,
        "differences": [
            {
                "kind": item.difference.kind.value,
                "name": item.difference.name,
                "before": item.difference.before,
                "after": item.difference.after,
                "chance": round(item.chance, 3),
                "likely": item.word,
                "named_by_error": item.is_named,
                "sentence": item.sentence,
            }
            for item in found
        ],
        "not_compared": pair.unknown(),
    }


def _text(pair: Pair, found: Sequence[Ranked], journal: Journal) -> str:
    lines = [_heading(pair)]
    lines += _cautions(pair, journal)
    lines += [
        f"{place}. {item.word}: {item.sentence}" for place, item in enumerate(found, start=1)
    ]
    lines += _nothing(pair, journal) if not found else []
    unknown = pair.unknown()
    if unknown:
        lines.append(f"not compared: {', '.join(unknown)}")
    return "\n".join(lines)


def _cautions(pair: Pair, journal: Journal) -> list[str]:
    served, failed = pair.served.attempt, pair.failed.attempt if pair.failed else None
    if failed is None:
        return []
    lines = []
    if failed.number < served.number:
        lines.append(f"attempt {failed.number} came first: the list says how it was before")
    if not pair.is_same_launch:
        lines.append(
            "they are not the same launch, what differs in it is listed too; which flag it is:"
            f" sglsweep bisect {journal.folder.name} {failed.number} {served.number}"
        )
    return lines


def _heading(pair: Pair) -> str:
    served, failed = pair.served, pair.failed
    first = f"attempt {served.attempt.number} served ({served.attempt.started_at})"
    if failed is None:
        return f"{first}; the host now:"
    cause = failed.diagnosis.cause or failed.verdict.value
    second = f"attempt {failed.attempt.number} failed of {cause} ({failed.attempt.started_at})"
    return f"{first}, {second}; the host {'now' if pair.is_now else 'then'}:"


def _nothing(pair: Pair, journal: Journal) -> list[str]:
    run = journal.folder.name
    if pair.is_same_asking:
        return [
            "nothing is known to differ: the host was asked once, before both attempts",
            f"next: sglsweep changed {run}",
        ]
    number = pair.failed.attempt.number if pair.failed else pair.served.attempt.number
    shows = "whether the failure repeats" if pair.failed else "whether it still serves"
    return [
        "nothing that is known of the host has changed",
        f"next: sglsweep relaunch {run} {number} shows {shows}",
    ]
