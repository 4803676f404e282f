"""Cells that were not launched: refused, excluded, equal to another, or not reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.report.document import Block, Bullets, Code, Heading, Line, one_line, prose
from sglsweep.report.numbers import plural
from sglsweep.report.view import cells_left
from sglsweep.report.words import cell_words

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import LeftOut, RunView

_KINDS = {
    "refused": "refused by SGLang itself",
    "excluded": "excluded",
    "equal": "equal to another cell",
}
_SHOWN = 12


def not_launched(run: RunView) -> list[Block]:
    """Return reasons with the number of cells that each stands for."""
    lines: list[Line] = []
    for kind, word in _KINDS.items():
        entries = [entry for entry in run.left_out if entry.kind == kind]
        lines += [_entry(entry) for entry in entries[:_SHOWN]]
        rest = entries[_SHOWN:]
        if rest:
            cells = sum(entry.count for entry in rest)
            lines.append((f"{plural(cells, 'more cell')} {word}, for {len(rest)} reasons",))
    lines += [_equal(o) for o in run.outcomes if o.end.kind is EndKind.EQUAL]
    left = cells_left(run)
    if left:
        lines.append((f"{plural(left, 'cell')} of the matrix not launched",))
    return [Heading(2, ("Not launched",)), Bullets(tuple(lines))] if lines else []


def _entry(entry: LeftOut) -> Line:
    what: Line = (" ", Code(one_line(entry.what, limit=160))) if entry.what else ()
    judged = ", ".join(word for word in (entry.verdict, entry.cause) if word)
    return (
        f"{plural(entry.count, 'cell')} {_KINDS[entry.kind]}{f' ({judged})' if judged else ''}:",
        *what,
        " ",
        *prose(entry.because, limit=240),
    )


def _equal(outcome: Outcome) -> Line:
    return (
        f"Attempt {outcome.attempt.number} (",
        *cell_words(outcome.attempt.cell),
        ") was ended at once: SGLang resolves it to the very configuration of "
        f"{outcome.end.equal_to}",
    )
