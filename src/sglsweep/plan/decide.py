"""What the sweep does next: included cells, memory steps, the goal's stages, then the strategy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.matrix import Cell
from sglsweep.plan.goal import Goal
from sglsweep.plan.race import next_heat
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Cells, Value
    from sglsweep.plan.strategy import Strategy

FRACTION = "mem-fraction-static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """`mem-fraction-static: {auto: true}`: where to start, and the way to the next value.

    Attributes:
        next_fraction: what the arithmetic says after one cell's outcomes; None: nothing better.
    """

    start: float
    next_fraction: Callable[[Sequence[Outcome]], float | None]
    most_steps: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much the whole run may spend; None = no limit."""

    hours: float | None = None
    attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything a decision depends on.

    Attributes:
        goals: stages in order.
        strategy: makes the strategy for a goal.
        launch_key: what makes two cells the same launch.
        spent_hours: hours of attempts so far, over all sessions of the run.
        nan_check: the settings that make an attempt's SGLang say where a NaN comes from; empty
            where it has none. None: nobody wants suspicions confirmed.
    """

    cells: Cells
    includes: Sequence[Cell]
    outcomes: Sequence[Outcome]
    goals: Sequence[str]
    strategy: Callable[[str], Strategy]
    launch_key: Callable[[Cell], str]
    budget: Budget = field(default_factory=Budget)
    spent_hours: float = 0.0
    auto: Auto | None = None
    nan_check: Callable[[Outcome], Mapping[str, Value]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step, and the cells that need no launch because an equal one was tried.

    Attributes:
        equal: cell -> number of the attempt that speaks for it.
    """

    step: Launch | Finish
    equal: Mapping[str, int]


def decide(question: Question) -> Decision:
    """Return the next step; same question, same answer."""
    over = _budget_spent(question)
    if over:
        return Decision(step=Finish(over), equal={})
    first = (
        _last_heat(question)
        or _nan_step(question)
        or _included(question)
        or _memory_step(question)
    )
    if first:
        return Decision(step=first, equal={})
    return _by_goal(question)


def evidence_of(outcome: Outcome, axes: Sequence[str]) -> Evidence:
    """Reduce an outcome to what a strategy may know of it."""
    blamed = dict.fromkeys(b.flag for b in outcome.diagnosis.blames if b.flag in axes)
    return Evidence(
        number=outcome.attempt.number,
        cell=outcome.attempt.cell,
        verdict=outcome.verdict,
        phase=outcome.diagnosis.phase,
        cause=outcome.diagnosis.cause,
        blames=tuple(blamed),
    )


def base_of(cell: Cell, auto: Auto | None) -> Cell:
    """Return the cell without the memory fraction that the tool itself steps."""
    if auto is None or FRACTION not in cell.values:
        return cell
    return Cell((name, value) for name, value in cell.values.items() if name != FRACTION)


def at_start(cell: Cell, auto: Auto | None) -> Cell:
    """Return the cell as it is launched first: with the starting fraction unless it names one."""
    if auto is None or FRACTION in cell.values:
        return cell
    return cell.with_values({FRACTION: auto.start})


def _budget_spent(question: Question) -> str:
    budget = question.budget
    if budget.attempts is not None and len(question.outcomes) >= budget.attempts:
        return f"the budget of {budget.attempts} attempts is spent"
    if budget.hours is not None and question.spent_hours >= budget.hours:
        return f"the budget of {budget.hours:g} hours is spent"
    return ""


def _tried(question: Question) -> dict[str, Outcome]:
    """Return base cell key -> its last outcome that says something about the cell."""
    return {
        base_of(o.attempt.cell, question.auto).key: o
        for o in question.outcomes
        if o.verdict.is_evidence
    }


def _last_heat(question: Question) -> Launch | None:
    """Return the race's next launch where the budget holds little more than that."""
    if Goal.FASTEST not in question.goals or not _is_nearly_spent(question):
        return None
    step = next_heat(question.outcomes)
    return step if isinstance(step, Launch) else None


_HEATS = 2
"""Launches that the end of a race takes: the winner again, and a second that came close."""


def _is_nearly_spent(question: Question) -> bool:
    budget, took = question.budget, [o.timings.total_s / 3600 for o in question.outcomes]
    if budget.attempts is not None and budget.attempts - len(took) <= _HEATS:
        return True
    left = None if budget.hours is None else budget.hours - question.spent_hours
    return left is not None and left <= _HEATS * max(took, default=0.0)


def _nan_step(question: Question) -> Launch | None:
    """After garbage, if that is wanted: the same cell once with SGLang's own NaN check."""
    last = next((o for o in reversed(question.outcomes) if o.verdict.is_evidence), None)
    if question.nan_check is None or last is None or not _looks_like_nan(last):
        return None
    changes = question.nan_check(last)
    if not changes or last.attempt.relaunch_of is not None:
        return None
    cell = last.attempt.cell.with_values(dict(changes))
    if any(o.attempt.cell.key == cell.key for o in question.outcomes):
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
    launched = {o.attempt.cell.key for o in question.outcomes if o.verdict.is_evidence}
    for place, cell in enumerate(question.includes, start=1):
        start = at_start(cell, question.auto)
        if start.key not in launched:
            return Launch(start, f"listed under include ({place} of {len(question.includes)})")
    return None


def _memory_step(question: Question) -> Launch | None:
    """After an out-of-memory attempt of an `auto` cell: the same cell at the computed fraction."""
    auto = question.auto
    last = next((o for o in reversed(question.outcomes) if o.verdict.is_evidence), None)
    if auto is None or last is None or last.verdict is not Verdict.OOM:
        return None
    base = base_of(last.attempt.cell, auto)
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


def _by_goal(question: Question) -> Decision:
    serving = [o.attempt.number for o in question.outcomes if o.verdict is Verdict.SERVING]
    goals = [g for g in question.goals if not (g == "first-serving" and serving)]
    if not goals:
        return Decision(step=Finish(f"attempt {serving[0]} serves"), equal={})
    return _by_strategy(question, goals)


def _by_strategy(question: Question, goals: Sequence[str]) -> Decision:
    """Ask the strategy for each goal in turn until one wants a launch that is new."""
    equal: dict[str, int] = {}
    reasons: list[str] = []
    for goal in goals:
        step = _ask(question, question.strategy(goal), equal)
        if isinstance(step, Finish) and goal == Goal.FASTEST:
            step = next_heat(question.outcomes)
        if isinstance(step, Launch):
            return Decision(step=step, equal=equal)
        reasons.append(step.why)
    return Decision(step=Finish("; ".join(dict.fromkeys(reasons))), equal=equal)


def _ask(question: Question, strategy: Strategy, equal: dict[str, int]) -> Launch | Finish:
    axes = [axis.name for axis in question.cells.axes]
    by_key = {o.attempt.launch_key: o for o in question.outcomes if o.verdict.is_evidence}
    tried = _tried(question)
    history = [_as_evidence(o, axes, question.auto) for o in question.outcomes]
    for _ in range(len(question.cells) + 1):
        step = strategy.decide(question.cells, history)
        if isinstance(step, Finish):
            return step
        start = at_start(step.cell, question.auto)
        twin = by_key.get(question.launch_key(start))
        if twin is None or base_of(step.cell, question.auto).key in tried:
            return Launch(start, step.why)
        # Another spelling of a launch that was made: its outcome speaks for this cell too.
        equal[step.cell.key] = twin.attempt.number
        known = _as_evidence(twin, axes, question.auto)
        history.append(_for_cell(known, step.cell))
    return Finish("every cell that is left equals one that was launched")


def _as_evidence(outcome: Outcome, axes: Sequence[str], auto: Auto | None) -> Evidence:
    known = evidence_of(outcome, axes)
    return _for_cell(known, _named_on(base_of(known.cell, auto), axes))


def _for_cell(known: Evidence, cell: Cell) -> Evidence:
    return Evidence(
        number=known.number,
        cell=cell,
        verdict=known.verdict,
        phase=known.phase,
        cause=known.cause,
        blames=known.blames,
    )


def _named_on(cell: Cell, axes: Sequence[str]) -> Cell:
    """Return the cell with every axis named, so that an included cell can equal a product cell."""
    missing: dict[str, Value] = {axis: None for axis in axes if axis not in cell.values}
    return cell.with_values(missing) if missing else cell
