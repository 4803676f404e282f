"""One page for whoever decides and does not launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.best import best_serving, nearest_miss
from sglsweep.report.blamed import combinations_of
from sglsweep.report.caveats import caveats
from sglsweep.report.document import (
    Block,
    Bullets,
    Heading,
    Line,
    Paragraph,
    Strong,
    joined,
    prose,
)
from sglsweep.report.groups import groups
from sglsweep.report.markdown import to_markdown
from sglsweep.report.numbers import plural
from sglsweep.report.quality import is_doubtful_model
from sglsweep.report.sections.bottom import commands, title
from sglsweep.report.tell import status_words, what
from sglsweep.report.view import is_doubtful
from sglsweep.report.words import proof_words

if TYPE_CHECKING:
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView

_CAUSES_SHOWN = 6
_CAVEATS_SHOWN = 5


def brief(run: RunView) -> str:
    """Return the answer, what it cost, what stands in the way, what to do next."""
    return to_markdown([*title(run), *_answer(run), *_obstacles(run), *_caveats(run)])


def _answer(run: RunView) -> list[Block]:
    best, miss = best_serving(run), nearest_miss(run)
    if best is not None:
        number = best.attempt.number
        word = "It serves"
        if is_doubtful(best):
            word = "It answers, but most answers are suspect"
        elif is_doubtful_model(run, best):
            word = "It serves, but answers unlike the model that was asked for"
        words: Line = (
            Strong(word),
            f" (attempt {number}, {proof_words(best.proof, best.ladder)}).",
        )
        return [Paragraph(words), *commands(run, best)]
    if miss is None:
        return [Paragraph((Strong("Nothing is known yet."),))]
    step = prose(miss.diagnosis.next_step)
    return [
        Paragraph(
            (
                Strong("It does not serve yet"),
                f": {plural(len(run.evidence), 'attempt')} failed. The nearest, attempt "
                f"{miss.attempt.number}, reached {miss.diagnosis.phase.value}.",
            )
        ),
        Paragraph(("Next: ", *(step or ("look at FINDINGS.md",)))),
    ]


def _obstacles(run: RunView) -> list[Block]:
    found = groups(run)
    if not found:
        return []
    items = tuple(_obstacle(run, group) for group in found[:_CAUSES_SHOWN])
    return [Heading(2, ("What stood in the way",)), Bullets(items)]


def _obstacle(run: RunView, group: Group) -> Line:
    verdict = "" if group.name == group.verdict.value else f" ({group.verdict.value})"
    head = f"{group.name}{verdict}: {plural(len(group.outcomes), 'attempt')}"
    rows = [row for row in combinations_of(run, group) if row.is_named]
    if not rows:
        return (f"{head}, nothing proven",)
    return (f"{head}: ", *joined([(*what(row), f", {status_words(row)}") for row in rows], "; "))


def _caveats(run: RunView) -> list[Block]:
    best = best_serving(run)
    lines = caveats(run, best)[:_CAVEATS_SHOWN] if best else []
    return [Heading(2, ("Before relying on it",)), Bullets(tuple(lines))] if lines else []
