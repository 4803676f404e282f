"""What the sweep does next: included cells, memory steps, the goal's stages, then the strategy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.matrix import NO_EFFECT, Cell, Cells, spell
from sglsweep.plan.adaptive import Adaptive
from sglsweep.plan.by_memory import memory_hints
from sglsweep.plan.effective import as_requested
from sglsweep.plan.forecast import forecast
from sglsweep.plan.goal import Goal
from sglsweep.plan.outside import Remedies, helps, next_remedy
from sglsweep.plan.race import next_heat
from sglsweep.plan.stages import (
    Budget,
    Spent,
    attempts_left,
    share_spent,
    without_a_serving_cell,
)
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.forecast import Forecast
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.outside import Help
    from sglsweep.plan.strategy import Strategy

FRACTION = "mem-fraction-static"
ALL_EQUAL = "every cell that is left equals one that was launched"


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
class Beforehand:
    """What is known without an attempt of this run.

    Attributes:
        priors: attempts of earlier runs; hints: what is published. Both as a strategy sees cells.
        source: where the remedy in an outcome's diagnosis is known from.
    """

    priors: Sequence[Evidence] = ()
    hints: Sequence[Hint] = ()
    source: Callable[[Outcome], str] = lambda _: "the catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything a decision depends on.

    Attributes:
        goals: stages in order.
        strategy: makes the strategy for a goal.
        launch_key: what makes two cells the same launch.
        spent_hours: hours of attempts so far, over all sessions of the run.
        running: attempts that are not over: their cells are taken, and tell nothing yet.
        tokens: what the KV pool must hold.
        nan_check: the settings that make an attempt's SGLang say where a NaN comes from; empty
            where it has none. None: nobody wants suspicions confirmed.
        beforehand: for the forecast; the strategy has its own.
        remedy: whether a failed cell with its remedy may be launched; None: no remedy is.
        effective: the same cells by what SGLang makes of them: a strategy sees those. None: it
            sees what was asked for.
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
    running: Sequence[Attempt] = ()
    tokens: int | None = None
    nan_check: Callable[[Outcome], Mapping[str, Value]] | None = None
    effective: EffectiveCells | None = None
    beforehand: Beforehand = field(default_factory=Beforehand)
    remedy: Callable[[Outcome, Cell], bool] | None = None


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
    first = (
        _last_heat(question)
        or _alone_step(question)
        or _nan_step(question)
        or _included(question)
        or _memory_step(question)
    )
    if first:
        return Decision(step=first, equal={})
    return _by_goal(question, view)


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
        ready_s=outcome.timings.ready_s,
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
    begun = len(took) + len(question.running)
    if budget.attempts is not None and budget.attempts - begun <= _HEATS:
        return True
    left = None if budget.hours is None else budget.hours - question.spent_hours
    return left is not None and left <= _HEATS * max(took, default=0.0)


def _alone_step(question: Question) -> Launch | None:
    """Again, alone: an attempt that lacked what its neighbours had at the same time."""
    running = {a.cell.key for a in question.running}
    last = {o.attempt.cell.key: o for o in question.outcomes}
    for outcome in last.values():
        if not outcome.is_due_alone or outcome.attempt.cell.key in running:
            continue
        number, others = outcome.attempt.number, _numbers(outcome.end.beside)
        why = f"attempt {number} again, alone: beside {others} it is no evidence"
        return Launch(outcome.attempt.cell, why, relaunch_of=number)
    return None


def _numbers(found: Sequence[int]) -> str:
    return f"attempt{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}"


def _not_waited_for(question: Question) -> str:
    if not question.running:
        return ""
    return f" (not waiting for {_numbers([a.number for a in question.running])})"


def _just_over(question: Question) -> list[Outcome]:
    """Return the outcomes that may ask for a step of their own: the last that says something.

    Side by side an attempt may end after one with a higher number; then each such is looked at.
    """
    telling = [o for o in question.outcomes if o.verdict.is_evidence]
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
    launched = {o.attempt.cell.key for o in question.outcomes if o.verdict.is_evidence}
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


def _reached(question: Question, over: str) -> str:
    """Say what was reached when the budget ended."""
    serving = _serving(question)
    if not serving:
        return over
    if set(question.goals) == {Goal.FIRST_SERVING}:
        return f"attempt {serving[0]} serves"
    heat = next_heat(question.outcomes) if Goal.FASTEST in question.goals else None
    known = heat.why if isinstance(heat, Finish) else f"attempt {serving[0]} serves"
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
    taken = [seen.of(_base_on(a.cell, question, axes)) for a in question.running]
    warnings = memory_hints(seen.cells.axes, question.outcomes, question.tokens)
    return _View(seen, _without(seen.cells, taken), history, warnings)


def _ask(
    question: Question, view: _View, strategy: Strategy, equal: dict[str, int]
) -> Launch | Finish:
    axes = [axis.name for axis in question.cells.axes]
    by_key = {o.attempt.launch_key: o for o in question.outcomes if o.verdict.is_evidence}
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
