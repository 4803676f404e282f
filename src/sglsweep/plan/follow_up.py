"""What one outcome asks for by itself, before any strategy is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import StepState, numbered
from sglsweep.plan.question import FRACTION, at_start, base_of, worn_out
from sglsweep.plan.strategy import Launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.plan.question import Question


def follow_up(question: Question) -> Launch | None:
    """Return the step that the last outcomes or the included cells ask for, if one does."""
    return (
        _alone_step(question)
        or _nan_step(question)
        or _included(question)
        or _memory_step(question)
    )


def _alone_step(question: Question) -> Launch | None:
    """Again, alone: an attempt that lacked what its neighbours had at the same time."""
    running = {a.cell.key for a in question.running}
    last = {o.attempt.cell.key: o for o in question.outcomes}
    for outcome in last.values():
        if not outcome.is_due_alone or outcome.attempt.cell.key in running:
            continue
        number, others = outcome.attempt.number, numbered(outcome.end.beside)
        why = f"attempt {number} again, alone: beside {others} it is no evidence"
        return Launch(outcome.attempt.cell, why, relaunch_of=number)
    return None


def _just_over(question: Question) -> list[Outcome]:
    """Return the outcomes that may ask for a step of their own: the last that says something.

    Side by side an attempt may end after one with a higher number; then each such is looked at.
    """
    telling = [o for o in question.outcomes if o.is_evidence]
    return [o for o in telling if o is telling[-1] or o.end.beside]


def _nan_step(question: Question) -> Launch | None:
    """After garbage, if that is wanted: the same cell once with SGLang's own NaN check."""
    steps = (_nan_step_after(question, outcome) for outcome in _just_over(question))
    return next((step for step in steps if step is not None), None)


def _nan_step_after(question: Question, last: Outcome) -> Launch | None:
    if question.nan_check is None or not _looks_like_nan(last):
        return None
    changes = question.nan_check(last)
    alone = {o.attempt.number for o in question.outcomes if o.is_due_alone}
    if not changes or last.attempt.relaunch_of not in {None, *alone}:
        return None
    cell = last.attempt.cell.with_values(dict(changes))
    begun = (*(o.attempt for o in question.outcomes), *question.running)
    if any(attempt.cell.key == cell.key for attempt in begun):
        return None
    number, names = last.attempt.number, ", ".join(changes)
    return Launch(
        cell,
        f"attempt {number} again with {names}: does its output come from a NaN, and where",
        relaunch_of=number,
    )


def _looks_like_nan(outcome: Outcome) -> bool:
    """Tell whether answers were garbage, or so odd that nothing is proven."""
    if outcome.verdict is Verdict.GARBAGE_OUTPUT:
        return outcome.diagnosis.cause != "wrong-answer"
    proof = outcome.proof
    if proof is None or proof.holds or proof.first_failure is not None:
        return False
    return any(s.state is StepState.SUSPECT for s in proof.steps)


def _included(question: Question) -> Launch | None:
    launched = {o.attempt.cell.key for o in question.outcomes if o.is_evidence}
    launched |= {cell.key for cell in worn_out(question.outcomes)}
    launched |= {attempt.cell.key for attempt in question.running}
    for place, cell in enumerate(question.includes, start=1):
        start = at_start(cell, question.auto)
        if start.key not in launched:
            return Launch(start, f"listed under include ({place} of {len(question.includes)})")
    return None


def _memory_step(question: Question) -> Launch | None:
    """After an out-of-memory attempt of an `auto` cell: the same cell at the computed fraction."""
    steps = (_memory_step_after(question, outcome) for outcome in _just_over(question))
    return next((step for step in steps if step is not None), None)


def _memory_step_after(question: Question, last: Outcome) -> Launch | None:
    auto = question.auto
    if auto is None or last.verdict is not Verdict.OOM:
        return None
    base = base_of(last.attempt.cell, auto)
    if any(base_of(a.cell, auto).key == base.key for a in question.running):
        return None
    same = [o for o in question.outcomes if base_of(o.attempt.cell, auto).key == base.key]
    tried = {o.attempt.cell.get(FRACTION) for o in same}
    value = auto.next_fraction(same)
    if value is None or value in tried or len(same) > auto.most_steps:
        return None
    why = (
        f"the cell of {last.attempt.number} again, {FRACTION} "
        f"{last.attempt.cell.get(FRACTION)} -> {value} by the memory figures of its log"
    )
    return Launch(base.with_values({FRACTION: value}), why)
