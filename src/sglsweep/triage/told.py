"""A diagnosis as a person reads it in five seconds."""

from __future__ import annotations

import textwrap
from typing import IO, TYPE_CHECKING

from sglsweep.catalogue.signature import Role
from sglsweep.triage.record import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Diagnosis
    from sglsweep.triage.resolve import Candidate, Choice

CONTEXT = 2
"""Lines shown before and after the evidence."""
WIDTH = 180
"""Characters of a context line that are shown."""
TEXT_WIDTH = 110
"""Columns of the sentences under the evidence."""
LOSERS = 40
"""Candidates that `--explain` lists."""


def told(
    name: str,
    diagnosis: Diagnosis,
    choice: Choice,
    *,
    context: Mapping[int, str],
    is_explained: bool = False,
) -> str:
    """Return the text, ended by a newline.

    `context` holds the evidence line and its neighbours by line number; `is_explained` lists
    every candidate that lost, with the reason.
    """
    lines = [f"{name}: {_headline(diagnosis)}", *_evidence(diagnosis, context)]
    lines += _why_not(choice, diagnosis) if not is_explained else _losers(choice)
    lines += _labelled("next", diagnosis.next_step)
    lines += _labelled("steps", _steps(diagnosis))
    for flag, value in diagnosis.remedy.items():
        lines += _labelled("try", f"without {flag}" if value is None else f"{flag} = {value}")
    for blame in diagnosis.blames:
        lines += _labelled(
            "blames", blame.flag if blame.value is None else f"{blame.flag} = {blame.value}"
        )
    for issue in diagnosis.known_issues:
        fixed = f" (fixed in {issue.fixed_in})" if issue.fixed_in else ""
        lines += _labelled("known", f"{issue.title}{fixed}: {issue.url}")
    for suspect in diagnosis.suspects:
        where = f"line {suspect.line}: " if suspect.line else ""
        lines += _labelled("also", f"{suspect.id}: {where}{suspect.text}"[:WIDTH])
    return "\n".join(lines) + "\n"


def _headline(diagnosis: Diagnosis) -> str:
    cause = (
        f" ({diagnosis.cause})" if diagnosis.cause and diagnosis.cause != diagnosis.verdict else ""
    )
    rank = f" on {diagnosis.rank}" if diagnosis.rank else ""
    version = f", SGLang {diagnosis.sglang_version}" if diagnosis.sglang_version else ""
    where = f"{diagnosis.verdict}{cause} in {diagnosis.phase}{rank}"
    return f"{where}, confidence {diagnosis.confidence}{version}"


def _steps(diagnosis: Diagnosis) -> str:
    """Say how far it got: `captured its graphs, then died` must not get lost."""
    steps = [f"{step} {state}" for step, state in diagnosis.milestones.items()]
    return ", ".join(steps)


def _evidence(diagnosis: Diagnosis, context: Mapping[int, str]) -> list[str]:
    if not context:
        return [f"    {diagnosis.evidence[:WIDTH]}"] if diagnosis.evidence else []
    shown = []
    for number, text in context.items():
        is_it = number == diagnosis.line
        body = diagnosis.evidence if is_it and diagnosis.evidence else text
        shown.append(f"  {'>' if is_it else ' '} {number:>6}  {body[:WIDTH]}")
    return shown


def _why_not(choice: Choice, diagnosis: Diagnosis) -> list[str]:
    """Name the last line that looks worse than the cause, and why it does not count."""
    later = [
        c for c in choice.candidates if diagnosis.line and c.event.piece.line != diagnosis.line
    ]
    if choice.cause is None or not later:
        return []
    last = max(later, key=lambda c: (c.event.is_fatal, not _is_cascade(c), c.event.piece.line))
    return _labelled("not", _loser(last))


def _losers(choice: Choice) -> list[str]:
    ordered = sorted(choice.candidates, key=lambda c: c.event.piece.line)
    lines = [line for c in ordered[:LOSERS] for line in _labelled("not", _loser(c))]
    if len(ordered) > LOSERS:
        lines += _labelled("not", f"and {len(ordered) - LOSERS} more")
    return lines


def _loser(candidate: Candidate) -> str:
    event = candidate.event
    name = event.signature.id if event.signature else "unknown"
    rank = f" {event.rank}" if event.rank else ""
    text = event.piece.text.strip()[:100]
    return f"line {event.piece.line}{rank} [{name}] {candidate.lost}: {text}"


def _is_cascade(candidate: Candidate) -> bool:
    signature = candidate.event.signature
    return signature is not None and signature.role is Role.CASCADE


def _labelled(label: str, text: str) -> list[str]:
    if not text:
        return []
    return textwrap.wrap(
        text,
        TEXT_WIDTH,
        initial_indent=f"  {label:>6}: ",
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    )


def lines_around(stream: IO[bytes], line: int) -> dict[int, str]:
    """Return the texts of `line` and its neighbours by number."""
    found = {}
    for number, raw in enumerate(stream, 1):
        if number > line + CONTEXT:
            break
        if number >= line - CONTEXT:
            found[number] = plain(raw)
    return found
