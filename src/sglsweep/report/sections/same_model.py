"""Whether what serves is the model that was asked for, by its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Paragraph,
    Strong,
    Table,
    one_line,
)
from sglsweep.report.quality import compared, is_doubtful_model, told
from sglsweep.report.same_model import differs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sglsweep.attempt import Outcome, Quality, QualityAnswer
    from sglsweep.report.view import RunView

_QUESTIONS, _NEEDLES, _TOOLS = ("question",), ("needle",), ("tool", "no-tool")
_WRONG_SHOWN, _TEXT_SHOWN = 3, 80


def same_model(run: RunView) -> list[Block]:
    """Return a row for each attempt that was asked, how it compares, and what it got wrong."""
    asked = [o for o in run.outcomes if o.quality is not None]
    if not asked:
        return []
    rows = tuple(_row(run, o, o.quality) for o in asked if o.quality is not None)
    head = ("#", "questions", "needle", "tool calls", "same text", "computes otherwise")
    lines = [line for o in asked for line in _lines(run, o)]
    blocks: list[Block] = [Heading(2, ("The same model?",)), Table(head, rows)]
    blocks.append(Paragraph((_LEGEND,)))
    return [*blocks, Bullets(tuple(lines))] if lines else blocks


_LEGEND = (
    "Right of those judged, greedily through the chat endpoint; an answer that was cut off or"
    " refused is not judged. Same text: answers equal to the reference's letter for letter;"
    " rounding alone makes some differ."
)


def _row(run: RunView, outcome: Outcome, quality: Quality) -> tuple[Line, ...]:
    found = compared(run, outcome)
    same = f"{found.same_text} of {found.with_text}" if found else "-"
    ids = ", ".join(d.id for d in differs(outcome)) or "-"
    number = str(outcome.attempt.number)
    score = _score(quality, _QUESTIONS)
    return (
        (number,),
        (Strong(score),) if is_doubtful_model(run, outcome) else (score,),
        (_score(quality, _NEEDLES),),
        (_score(quality, _TOOLS),),
        (same,),
        (ids,),
    )


def _score(quality: Quality, kinds: Collection[str]) -> str:
    answers = [a for a in quality.answers if a.kind in kinds]
    if not answers:
        return "-"
    judged = [a for a in answers if a.right is not None]
    left = len(answers) - len(judged)
    right = sum(a.right is True for a in judged)
    return f"{right} of {len(judged)}" + (f" ({left} not judged)" if left else "")


def _lines(run: RunView, outcome: Outcome) -> list[Line]:
    number, quality = outcome.attempt.number, outcome.quality
    if quality is None:
        return []
    lines: list[Line] = []
    if (found := compared(run, outcome)) is not None:
        lines.append((f"{number}: {told(found)}.",))
    wrong = [a for a in quality.answers if a.right is False]
    if wrong:
        lines.append((f"{number}: wrong: ", *_shown(wrong)))
    if quality.note:
        lines.append((f"{number}: not asked: {one_line(quality.note, limit=160)}",))
    return lines


def _shown(wrong: Sequence[QualityAnswer]) -> Line:
    words: list[str | Code] = []
    for answer in wrong[:_WRONG_SHOWN]:
        words += ["; " if words else "", one_line(answer.prompt, limit=_TEXT_SHOWN), " "]
        words.append(Code(one_line(answer.text or "(nothing)", limit=_TEXT_SHOWN)))
    rest = len(wrong) - _WRONG_SHOWN
    return (*words, f"; {rest} more in attempt.json" if rest > 0 else "")
