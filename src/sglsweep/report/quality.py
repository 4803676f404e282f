"""How a serving cell's answers compare with a reference's, and what so few questions can tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

from sglsweep.attempt import QualityAnswer
from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Value
    from sglsweep.report.view import RunView

_CHANCE = 0.05
"""A difference that chance alone would make less often than this is called one."""
_MUCH, _LEAST = 0.25, 2
"""So many fewer right, as a share and in number, are warned of, though that may be chance."""
_ENOUGH = 4
"""Judged questions of which none is right are a warning also without a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One attempt's answers beside a reference's, over the questions that both were judged by.

    Attributes:
        only_there: right in the reference alone; `only_here`: right here alone.
        same_text: answers that are equal letter for letter.
        with_text: questions that both answered.
    """

    against: str
    shared: int
    right: int
    right_there: int
    only_there: int
    only_here: int
    same_text: int
    with_text: int

    @property
    def chance(self) -> float:
        """How often chance alone makes a split at least this uneven (exact McNemar test)."""
        split = self.only_there + self.only_here
        least = min(self.only_there, self.only_here)
        tail = sum(comb(split, k) for k in range(least + 1)) / float(2**split)
        return min(2 * tail, 1.0)

    @property
    def is_worse(self) -> bool:
        """Worse beyond chance."""
        return self.only_there > self.only_here and self.chance < _CHANCE

    @property
    def is_far_below(self) -> bool:
        """So many fewer right that a reader must hear of it, proven or not."""
        fewer = self.right_there - self.right
        return self.is_worse or (fewer >= _LEAST and fewer >= _MUCH * self.shared)


def compared(run: RunView, outcome: Outcome) -> Compared | None:
    """Compare with the run's reference; None where there is none, or nothing to compare."""
    found = _reference(run)
    if found is None or outcome.quality is None:
        return None
    against, answers = found
    if outcome.quality.answers == tuple(answers.values()):
        return None
    mine = {a.id: a for a in outcome.quality.answers}
    pairs = [(a, answers[name]) for name, a in mine.items() if name in answers]
    judged = [(a, b) for a, b in pairs if a.right is not None and b.right is not None]
    spoken = [(a, b) for a, b in pairs if a.text and b.text]
    if not pairs:
        return None
    return Compared(
        against=against,
        shared=len(judged),
        right=sum(a.right is True for a, _ in judged),
        right_there=sum(b.right is True for _, b in judged),
        only_there=sum(b.right is True and a.right is False for a, b in judged),
        only_here=sum(a.right is True and b.right is False for a, b in judged),
        same_text=sum(a.text == b.text for a, b in spoken),
        with_text=len(spoken),
    )


def is_doubtful_model(run: RunView, outcome: Outcome) -> bool:
    """Tell whether its answers are so bad that it must not be recommended without a word."""
    return bool(warning(run, outcome))


def warning(run: RunView, outcome: Outcome) -> str:
    """Return what must be said wherever it is recommended; "" if nothing."""
    quality = outcome.quality
    if quality is None:
        return ""
    found = compared(run, outcome)
    if found is not None and found.is_far_below:
        return f"{_score(found)}: {_judgement(found)}"
    judged = [a for a in quality.answers if a.right is not None]
    if len(judged) >= _ENOUGH and not quality.right:
        return f"none of {len(judged)} questions with known answers is answered right"
    return ""


def told(found: Compared) -> str:
    """Return a comparison as one clause, with what it can show."""
    return f"{_score(found)}; {_judgement(found)}"


def _score(found: Compared) -> str:
    return (
        f"{found.right} of {found.shared} right, {found.right_there} of {found.shared} in "
        f"{found.against}"
    )


def _judgement(found: Compared) -> str:
    if found.is_worse:
        return f"worse beyond chance (p = {found.chance:.2g})"
    if found.only_here > found.only_there and found.chance < _CHANCE:
        return f"better beyond chance (p = {found.chance:.2g})"
    if found.is_far_below:
        return f"far fewer, though {found.shared} questions prove little (p = {found.chance:.2g})"
    if found.right != found.right_there:
        return f"no difference that {found.shared} questions could show (p = {found.chance:.2g})"
    return "no difference seen"


def _reference(run: RunView) -> tuple[str, Mapping[str, QualityAnswer]] | None:
    """Return what to call the reference, and its answers by id."""
    wanted = run.reference
    saved = wanted.get("answers")
    if isinstance(saved, list) and saved:
        return str(wanted.get("source") or "the saved answers"), _read(saved)
    when = wanted.get("when")
    if not isinstance(when, dict) or not when:
        return None
    cell = next((o for o in run.serving if o.quality is not None and _fits(o, when)), None)
    if cell is None or cell.quality is None:
        return None
    return f"attempt {cell.attempt.number}", {a.id: a for a in cell.quality.answers}


def _fits(outcome: Outcome, when: Mapping[str, Sequence[Value]]) -> bool:
    return all(
        spell(outcome.attempt.cell.get(name)) in {spell(value) for value in values}
        for name, values in when.items()
    )


def _read(saved: Sequence[object]) -> dict[str, QualityAnswer]:
    found = [entry for entry in saved if isinstance(entry, dict)]
    return {
        str(entry["id"]): QualityAnswer(
            id=str(entry["id"]),
            kind=str(entry.get("kind") or "question"),
            prompt=str(entry.get("prompt") or ""),
            right=entry["right"] if isinstance(entry.get("right"), bool) else None,
            text=str(entry.get("text") or ""),
            detail=str(entry.get("detail") or ""),
        )
        for entry in found
    }
