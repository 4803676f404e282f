"""FINDINGS.md: the sections in their order, and the user's own text around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglsweep.report.markdown import to_markdown
from sglsweep.report.sections.axes import axis_effects, hypotheses
from sglsweep.report.sections.blame import minimal_failing
from sglsweep.report.sections.bottom import bottom_line, title
from sglsweep.report.sections.fails import fails, without_verdict
from sglsweep.report.sections.left_out import not_launched
from sglsweep.report.sections.load import under_load
from sglsweep.report.sections.machine import machine
from sglsweep.report.sections.memory import memory
from sglsweep.report.sections.same_model import same_model
from sglsweep.report.sections.timeline import reproduce, timeline
from sglsweep.report.sections.times import times
from sglsweep.report.sections.works import partly_working, works

if TYPE_CHECKING:
    from sglsweep.report.document import Block
    from sglsweep.report.view import RunView

BEGIN = "<!-- sglsweep:begin -->"
END = "<!-- sglsweep:end -->"
_NOTE = "<!-- Rewritten after every attempt. Write above or below the markers: that stays. -->"

SECTIONS = (
    title,
    bottom_line,
    machine,
    works,
    same_model,
    under_load,
    memory,
    partly_working,
    fails,
    minimal_failing,
    without_verdict,
    not_launched,
    axis_effects,
    hypotheses,
    timeline,
    times,
    reproduce,
)


def document(run: RunView) -> list[Block]:
    """Return the whole report as blocks."""
    return [block for section in SECTIONS for block in section(run)]


def render(run: RunView) -> str:
    """Return the tool's part of FINDINGS.md, markers included."""
    return f"{BEGIN}\n{_NOTE}\n\n{to_markdown(document(run))}\n{END}\n"


def merge(existing: str | None, generated: str) -> str:
    """Put the tool's part in its place; every character outside the markers stays.

    A file without both markers is the user's: the tool's part goes on top of it.
    """
    if not existing:
        return generated
    ends = _line_of(END, existing)
    begins = [
        b for b in re.finditer(_pattern(BEGIN), existing) if ends and b.end() <= ends.start()
    ]
    if ends is None or not begins:
        return f"{generated}\n{existing}"
    body = generated.removesuffix("\n")
    return existing[: begins[-1].start()] + body + existing[ends.end() :]


def _line_of(marker: str, text: str) -> re.Match[str] | None:
    return re.search(_pattern(marker), text)


def _pattern(marker: str) -> re.Pattern[str]:
    """Match a marker that has a line to itself; one that a user quotes in a sentence is none."""
    return re.compile(rf"^{re.escape(marker)}(?=\r?$)", re.MULTILINE)
