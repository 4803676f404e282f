"""What the sweep does next: what outcomes ask for, the goal's stages, then the strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.attempt import numbered
from sglsweep.matrix import NO_EFFECT, Cell, Cells, spell
from sglsweep.plan.adaptive import Adaptive
from sglsweep.plan.by_memory import memory_hints
from sglsweep.plan.effective import as_requested
from sglsweep.plan.follow_up import follow_up
from sglsweep.plan.forecast import forecast
from sglsweep.plan.goal import Goal
from sglsweep.plan.outside import Remedies, helps, next_remedy
from sglsweep.plan.question import at_start, base_of, worn_out
from sglsweep.plan.race import next_heat
from sglsweep.plan.stages import (
    Spent,
    attempts_left,
    share_spent,
    without_a_serving_cell,
)
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.forecast import Forecast
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.outside import Help
    from sglsweep.plan.question import Auto, Question
    from sglsweep.plan.strategy import Strategy

NONE_LEFT = "no cell of the matrix is left to launch: all are excluded, refused by SGLang or equal"
ALL_EQUAL = "every cell that is left equals one that was launched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step, and the cells that need no launch because an equal one was tried.

    Attributes:
        equal: cell -> number of the attempt that speaks for it.
        forecast: what the attempts that are left may bring; None: no attempt says anything yet.
        helps: what would help outside the matrix, likeliest first.
    """

    step: Launch | Finish
    equal: Mapping[str, int]
    forecast: Forecast | None = None
    helps: tuple[Help, ...] = ()


def decide(question: Question) -> Decision:
    """Return the next step and what is to be expected; same question, same answer."""
    view = _view(question)
    decision = _step(question, view)
    if not any(entry.verdict.is_evidence for entry in view.history):
        return decision
    expected = forecast(
        view.cells,
        view.history,
        attempts_left=attempts_left(question.budget, question.outcomes, _spent(question)),
        priors=question.beforehand.priors,
        hints=(*question.beforehand.hints, *view.hints),
    )
    found = helps(question.cells, question.outcomes, expected.blocked, question.beforehand.source)
    step = decision.step
    if isinstance(step, Finish) and found and not _serving(question):
        step = Finish(f"{step.why}; most likely to help: {found[0].what}")
    return replace(decision, step=step, forecast=expected, helps=found)


def _step(question: Question, view: _View) -> Decision:
    over = _budget_spent(question)
    if over:
        return Decision(step=Finish(_reached(question, over)), equal={})
    first = _last_heat(question) or follow_up(question)
    if first:
        return Decision(step=first, equal={})
    return _by_goal(question, view)


def evidence_of(outcome: Outcome, axes: Sequence[str]) -> Evidence:
    """Reduce an outcome to what a strategy may know of it."""
    blamed = dict.fromkeys(b.flag for b in outcome.diagnosis.blames if b.flag in axes)
    return Evidence(
        number=outcome.attempt.number,
        cell=outcome.attempt.cell,
        # What another process on the host holds teaches no more than an interruption.
        verdict=Verdict.INTERRUPTED if outcome.is_from_outside else outcome.verdict,
        phase=outcome.diagnosis.phase,
        cause=outcome.diagnosis.cause,
        blames=tuple(blamed),
        ready_s=outcome.timings.ready_s,
    )


def _spent(question: Question) -> Spent:
    return Spent(len(question.outcomes) + len(question.running), question.spent_hours)


def _budget_spent(question: Question) -> str:
    budget = question.budget
    begun = len(question.outcomes) + len(question.running)
    if budget.attempts is not None and begun >= budget.attempts:
        return f"the budget of {budget.attempts} attempts is spent"
    if budget.hours is not None and question.spent_hours >= budget.hours:
        return f"the budget of {budget.hours:g} hours is spent"
    return ""


def _tried(question: Question) -> dict[str, Outcome]:
    """Return base cell key -> its last outcome that says something about the cell."""
    return {
        base_of(o.attempt.cell, question.auto).key: o for o in question.outcomes if o.is_evidence
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
    begun = len(took) + len(question.running)
    if budget.attempts is not None and budget.attempts - begun <= _HEATS:
        return True
    left = None if budget.hours is None else budget.hours - question.spent_hours
    return left is not None and left <= _HEATS * max(took, default=0.0)


def _not_waited_for(question: Question) -> str:
    if not question.running:
        return ""
    return f" (not waiting for {numbered([a.number for a in question.running])})"


def _reached(question: Question, over: str) -> str:
    """Say what was reached when the budget ended."""
    serving = _serving(question)
    if not serving:
        return over
    if set(question.goals) == {Goal.FIRST_SERVING}:
        return f"attempt {serving[0]} serves"
    heat = next_heat(question.outcomes) if Goal.FASTEST in question.goals else None
    few = f"attempt {serving[0]} serves" if len(serving) == 1 else f"{len(serving)} attempts serve"
    known = heat.why if isinstance(heat, Finish) else few
    return f"{known}; {over}"


def _serving(question: Question) -> list[int]:
    return [o.attempt.number for o in question.outcomes if o.verdict is Verdict.SERVING]


def _by_goal(question: Question, view: _View) -> Decision:
    serving = _serving(question)
    goals = [g for g in question.goals if not (g == "first-serving" and serving)]
    if not goals:
        return Decision(step=Finish(f"attempt {serving[0]} serves"), equal={})
    over = "" if serving else share_spent(question.goals, question.budget, _spent(question))
    if not over:
        return _by_strategy(question, view, goals)
    later = _by_strategy(question, view, without_a_serving_cell(question.goals))
    if isinstance(later.step, Launch):
        why = f"{over}; to tell what fails: {later.step.why}"
        return replace(later, step=replace(later.step, why=why))
    return replace(later, step=Finish("; ".join(filter(None, (over, later.step.why)))))


def _by_strategy(question: Question, view: _View, goals: Sequence[str]) -> Decision:
    """Ask the strategy for each goal in turn until one wants a launch that is new."""
    equal: dict[str, int] = {}
    reasons: list[str] = []
    for goal in goals:
        strategy = question.strategy(goal)
        if isinstance(strategy, Adaptive):
            strategy = strategy.warned(view.hints)
        step = _ask(question, view, strategy, equal)
        if goal != Goal.MAP:
            step = _or_remedy(question, view, step)
        if isinstance(step, Finish) and goal == Goal.FASTEST:
            step = next_heat(question.outcomes)
        if isinstance(step, Launch):
            return Decision(step=step, equal=equal)
        reasons.append(step.why)
    return Decision(step=Finish("; ".join(dict.fromkeys(reasons))), equal=equal)


def _or_remedy(question: Question, view: _View, step: Launch | Finish) -> Launch | Finish:
    """Return a remedy outside the matrix instead, where it is likelier to serve than the step."""
    if question.remedy is None or _serving(question):
        return step
    given = Remedies(
        cells=view.cells,
        requested=question.cells,
        history=view.history,
        outcomes=question.outcomes,
        running=question.running,
        seen=lambda cell: view.seen.of(base_of(cell, question.auto)),
        source=question.beforehand.source,
        may_launch=question.remedy,
    )
    hardly = step.chance if isinstance(step, Launch) and step.chance is not None else 0.0
    return next_remedy(given, better_than=hardly) or step


@dataclass(frozen=True, slots=True)
class _View:
    """Cells that are not under way, and the attempts, as a strategy sees them."""

    seen: EffectiveCells
    cells: Cells
    history: list[Evidence]
    hints: tuple[Hint, ...]


def _view(question: Question) -> _View:
    axes = [axis.name for axis in question.cells.axes]
    seen = effective_now(question.effective or as_requested(question.cells), question)
    history = [_as_evidence(o, axes, question.auto, seen) for o in question.outcomes]
    begun = [a.cell for a in question.running] + worn_out(question.outcomes)
    taken = [seen.of(_base_on(cell, question, axes)) for cell in begun]
    warnings = memory_hints(seen.cells.axes, question.outcomes, question.tokens)
    return _View(seen, _without(seen.cells, taken), history, warnings)


def _ask(
    question: Question, view: _View, strategy: Strategy, equal: dict[str, int]
) -> Launch | Finish:
    if not len(question.cells):
        return Finish(NONE_LEFT)
    axes = [axis.name for axis in question.cells.axes]
    by_key = {o.attempt.launch_key: o for o in question.outcomes if o.is_evidence}
    tried = _tried(question)
    seen, cells, history = view.seen, view.cells, list(view.history)
    running = {attempt.launch_key for attempt in question.running}
    for _ in range(len(question.cells) + 1):
        step = strategy.decide(cells, history)
        if isinstance(step, Finish):
            return step
        asked = _asked_for(question, view, step.cell)
        start = at_start(asked, question.auto)
        if question.launch_key(start) in running:
            # Another spelling of a launch that is under way: its outcome will speak for it.
            cells = _without(cells, [step.cell])
            continue
        twin = by_key.get(question.launch_key(start))
        if twin is None or base_of(asked, question.auto).key in tried:
            why = seen.told(step.why, asked) + _not_waited_for(question)
            return replace(step, cell=start, why=why)
        # Another spelling of a launch that was made: its outcome speaks for this cell too.
        equal[asked.key] = twin.attempt.number
        known = _as_evidence(twin, axes, question.auto, seen)
        history.append(replace(known, cell=step.cell))
    return Finish(ALL_EQUAL)


def _asked_for(question: Question, view: _View, cell: Cell) -> Cell:
    """Return the cell to launch; one that was launched goes again in the same spelling.

    In another it would be ended as the equal of the attempt that it repeats.
    """
    for outcome, known in zip(reversed(question.outcomes), reversed(view.history), strict=True):
        if known.cell == cell and known.verdict.is_evidence:
            return base_of(outcome.attempt.cell, question.auto)
    return view.seen.asked_for(cell)


def effective_now(seen: EffectiveCells, question: Question) -> EffectiveCells:
    """Return cells by what acts in them, by what launches printed of themselves where they did."""
    return seen.after(
        (base_of(o.attempt.cell, question.auto), o.diagnosis.effective) for o in question.outcomes
    )


def _without(cells: Cells, taken: Sequence[Cell]) -> Cells:
    """Return the cells but those; a cell that is not among them changes nothing."""
    if not taken:
        return cells
    columns = [(a.name, {spell(v): i for i, v in enumerate(a.values)}) for a in cells.axes]
    rows = {
        tuple(codes.get(spell(cell.get(name)), -1) for name, codes in columns)
        for cell in taken
        if {name for name, value in cell.values.items() if value is not None}
        <= {axis.name for axis in cells.axes}
    }
    return Cells(cells.axes, [row for row in cells.rows if tuple(row) not in rows])


def _base_on(cell: Cell, question: Question, axes: Sequence[str]) -> Cell:
    return _named_on(base_of(cell, question.auto), axes)


def _as_evidence(
    outcome: Outcome, axes: Sequence[str], auto: Auto | None, seen: EffectiveCells
) -> Evidence:
    """Return what an attempt says of what acted in it; an inert flag is not blamed."""
    known = evidence_of(outcome, axes)
    base = base_of(known.cell, auto)
    cell = _named_on(seen.of(base), axes)
    blames = tuple(name for name in known.blames if cell.get(name) != NO_EFFECT)
    return replace(known, cell=cell, blames=blames)


def _named_on(cell: Cell, axes: Sequence[str]) -> Cell:
    """Return the cell with every axis named, so that an included cell can equal a product cell."""
    missing: dict[str, Value] = {axis: None for axis in axes if axis not in cell.values}
    return cell.with_values(missing) if missing else cell
