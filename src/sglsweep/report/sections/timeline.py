"""Every attempt in its order with what it changed, and how to launch it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.report.best import best_serving
from sglsweep.report.document import Block, Bullets, Code, Heading, Line, Strong, Table, prose
from sglsweep.report.groups import groups
from sglsweep.report.launches import nearest_earlier
from sglsweep.report.numbers import duration
from sglsweep.report.words import cell_words, changed
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView


def timeline(run: RunView) -> list[Block]:
    """Return a row for each attempt: the one thing it changed, and what it came to."""
    if not run.outcomes:
        return []
    rows = tuple(_row(run, index) for index in range(len(run.outcomes)))
    head = ("#", "start (UTC)", "change against [attempt]", "came to", "took", "why")
    return [Heading(2, ("Timeline",)), Table(head, rows)]


def _row(run: RunView, index: int) -> tuple[Line, ...]:
    outcome = run.outcomes[index]
    return (
        (str(outcome.attempt.number),),
        (_clock(outcome.attempt.started_at),),
        change_against(run, index),
        _came_to(outcome),
        (duration(outcome.timings.total_s),),
        prose(outcome.attempt.why, limit=200),
    )


def change_against(run: RunView, index: int) -> Line:
    """Say what an attempt changed against the nearest earlier one; the first: what it is."""
    outcome = run.outcomes[index]
    nearest = nearest_earlier(outcome, run.outcomes[:index])
    if nearest is None:
        return cell_words(outcome.attempt.cell)
    earlier, made = nearest
    return (f"[{earlier.attempt.number}] ", *changed(made))


def _clock(stamp: str) -> str:
    """Return "11-29 01:23" of an ISO time."""
    return stamp[5:16].replace("T", " ")


def _came_to(outcome: Outcome) -> Line:
    if outcome.end.kind is EndKind.EQUAL:
        return (f"equal to {outcome.end.equal_to}",)
    verdict = outcome.verdict
    if verdict is Verdict.SERVING:
        return (Strong(verdict.value),)
    return (f"{verdict.value} in {outcome.diagnosis.phase.value}",)


def reproduce(run: RunView) -> list[Block]:
    """Return the commands that launch the telling attempts again."""
    lines: list[Line] = []
    best = best_serving(run)
    if best is not None:
        lines.append(_again(run, best, "serves"))
    lines += [_again(run, group.outcomes[0], group.name) for group in groups(run)]
    if not lines:
        return []
    lines.append(
        (
            "Exact command and environment of any attempt: ",
            Code("attempts/NNNN/attempt.json"),
            " in this folder; its whole log beside it.",
        )
    )
    return [Heading(2, ("How to reproduce",)), Bullets(tuple(lines))]


def _again(run: RunView, outcome: Outcome, what: str) -> Line:
    return (Code(f"sglsweep relaunch {run.run} {outcome.attempt.number}"), f" ({what})")
