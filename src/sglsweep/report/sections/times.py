"""Dead times: from a server's last useful word to the next server's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import Block, Code, Heading, Line, Paragraph, Table
from sglsweep.report.numbers import plural, seconds
from sglsweep.report.times import TimeRow, time_rows, times_sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.report.view import RunView

_SHOWN = 16


def times(run: RunView) -> list[Block]:
    """Return the sums, and for each attempt what passed after its last useful word."""
    rows = time_rows(run.outcomes)
    if not rows:
        return []
    columns = [c for c in _COLUMNS if any(c[1](row) != "-" for row in rows)]
    shown = rows[-_SHOWN:]
    table = Table(
        ("#", "came to", *(head for head, _ in columns)),
        tuple(
            (
                (str(row.outcome.attempt.number),),
                (row.outcome.verdict.value,),
                *((cell(row),) for _, cell in columns),
            )
            for row in shown
        ),
    )
    sentence = times_sentence(run.outcomes)
    notes: list[Line] = [(_LEGEND, _SLOTS if any(o.end.beside for o in run.outcomes) else "")]
    if len(rows) > len(shown):
        left_out = plural(len(rows) - len(shown), "earlier attempt")
        notes.append((f"{left_out} not shown; ", Code("findings.json"), " has all."))
    head: list[Block] = [Heading(2, ("Times",)), Paragraph((f"{_capital(sentence)}.",))]
    return [*head, table, *(Paragraph(note) for note in notes)]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


_COLUMNS: tuple[tuple[str, Callable[[TimeRow], str]], ...] = (
    ("server's own time", lambda row: seconds(row.server_s)),
    ("then: processes gone", lambda row: seconds(row.group_gone_s)),
    ("GPU memory free", lambda row: seconds(row.memory_free_s)),
    ("port free", lambda row: seconds(row.port_free_s)),
    ("next server started", lambda row: seconds(row.next_start_s)),
)

_LEGEND = (
    "Own time: from the server's start until the wait for it ended, proof and load included. The "
    "rest counts from its last useful word, the fatal line, the exit or the proof's last answer; "
    "between two calls of the tool nothing is counted."
)
_SLOTS = " Nor is it while a slot waits for an attempt that has the cards to itself."
