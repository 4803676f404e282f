"""Minimal failing combinations: which settings fail, how sure that is, which attempts show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.blamed import Combination, combinations, flaky_attempts
from sglsweep.report.document import Block, Code, Heading, Line, Paragraph, Strong, Table
from sglsweep.report.numbers import listed, plural
from sglsweep.report.tell import is_open, likeliest, shown_by, status_words, what
from sglsweep.report.view import asked_more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.report.view import RunView

_KEY = (
    "Proven: for each setting, an attempt that serves differs from one that fails in just this, "
    "or bisect found it so. Supported: nothing speaks against it, but such a pair is missing. "
    "Refuted: named by a signature or by bisect, and an attempt serves with all of it. Open: so "
    "much is possible that nothing is named."
)


def minimal_failing(run: RunView) -> list[Block]:
    """Return the one table that all other sections speak from."""
    found = _shown(combinations(run))
    flaky = _flaky(run)
    if not found:
        return [Heading(2, (_TITLE,)), *flaky] if flaky else []
    rows = tuple(_row(run, row) for row in found)
    left_out = len(combinations(run)) - len(found)
    head = ("combination", "cause", "status", "fails in", "shown by")
    more: Line = ()
    if left_out:
        more = (f" {plural(left_out, 'more row')} in ", Code("findings.json"), ".")
    return [Heading(2, (_TITLE,)), Table(head, rows), Paragraph((_KEY, *more)), *flaky]


def _shown(found: Sequence[Combination]) -> list[Combination]:
    """Return the rows for a reader: of what is not decided, that with the most failures."""
    undecided = [row for row in found if not row.is_named and not row.is_refuted]
    undecided.sort(key=lambda row: -len(row.failing))
    left_out = undecided[_UNDECIDED_SHOWN:]
    return [row for row in found if row not in left_out][:_ROWS_SHOWN]


_TITLE = "Minimal failing combinations"
_ROWS_SHOWN = 24
_UNDECIDED_SHOWN = 6
_NUMBERS_SHOWN = 8


def _row(run: RunView, row: Combination) -> tuple[Line, ...]:
    name = what(row) if row.is_named or row.is_refuted else ("not decided: ", *likeliest(row))
    if is_open(row):
        name = ("not narrowed down",)
    status: Line = (Strong("proven"),) if row.is_proven else (status_words(row),)
    return (
        name,
        (row.cause,),
        status,
        (_numbers(row),),
        shown_by(run, row),
    )


def _numbers(row: Combination) -> str:
    numbers = [o.attempt.number for o in row.failing]
    if len(numbers) <= _NUMBERS_SHOWN:
        return listed(numbers)
    first = ", ".join(map(str, numbers[:_NUMBERS_SHOWN]))
    return f"{first} and {len(numbers) - _NUMBERS_SHOWN} more"


def _flaky(run: RunView) -> list[Block]:
    more = {number: line for number in flaky_attempts(run) if (line := _asked_more(run, number))}
    numbers = [number for number in flaky_attempts(run) if number not in more]
    lines: list[Line] = list(more.values())
    if numbers:
        verb = "its failure" if len(numbers) == 1 else "their failures"
        lines.append(
            (
                f"Did not repeat: {listed(numbers)}. The very same launch served another "
                f"time, so no setting is blamed for {verb}.",
            )
        )
    return [Paragraph(line) for line in lines]


def _asked_more(run: RunView, number: int) -> Line:
    """Say that an attempt failed at what its serving twins were never asked; empty if not so."""
    outcome = run.outcome(number)
    served = run.served_as(outcome) if outcome else ()
    step = asked_more(outcome, served) if outcome else ""
    if not step:
        return ()
    twins = listed([o.attempt.number for o in served])
    verb = "serves" if len(served) == 1 else "serve"
    return (
        f"{number} failed at the probe ",
        Code(step),
        f", which {twins}, the very same launch, was not asked: {twins} {verb}, so what was asked "
        "is to blame, no setting.",
    )
