"""Bisect a failing attempt of a run: what is known first, then the launches that decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep import report
from sglsweep.errors import ConfigError
from sglsweep.events import Note
from sglsweep.expand.scope import Scope
from sglsweep.matrix import Cell
from sglsweep.plan import bisect
from sglsweep.plan.bisect import Culprit
from sglsweep.plan.decide import evidence_of
from sglsweep.retriage import retriage_run
from sglsweep.sweep import (
    LOST_IN_A_ROW,
    command_for,
    foresee,
    launch_cell,
    lost_too_often,
    only_proven,
)
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.config.sweep import Sweep
    from sglsweep.expand import Expanded
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Axis, Value
    from sglsweep.plan.strategy import Evidence, Launch
    from sglsweep.sweep import Sweeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Two attempts of a run between which the fault lies, and what may be launched.

    Attributes:
        tables: build -> its flags, where they are known: they tell two names of one flag.
        most: launches at most; None = as many as it takes.
    """

    sweep: Sweep
    expanded: Expanded
    bad: int
    good: int | None = None
    tables: Mapping[str, FlagTable]
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What a bisection came to.

    Attributes:
        culprit: None where `most` launches did not suffice.
        launched: numbers of the attempts that it made.
    """

    bad: int
    good: int
    culprit: Culprit | None
    launched: tuple[int, ...] = ()


def run_bisection(sweeping: Sweeping, search: Search) -> Bisection | None:
    """Launch until the culprit is named; None where no attempt serves.

    Raises:
        ConfigError: the attempts cannot be compared.
        HostError: several attempts in a row said nothing of their flags.
    """
    _renew(sweeping)
    launched: list[int] = []
    refused: dict[str, Evidence] = {}
    lost = 0
    while True:
        case = case_of(search, sweeping.journal.history())
        if case is None:
            return None
        case = _with_refused(case, refused)
        step = _next(case, sweeping)
        found = Bisection(
            bad=case.bad.number,
            good=case.good.number,
            culprit=step if isinstance(step, Culprit) else None,
            launched=tuple(launched),
        )
        if isinstance(step, Culprit) or (search.most is not None and len(launched) >= search.most):
            _record(sweeping, found)
            return found
        if _is_refused(case, step.cell, sweeping, refused):
            continue
        outcome = launch_cell(
            sweeping, step.cell, why=f"bisect: {step.why}", probe=only_proven(sweeping)
        )
        report.write(sweeping.journal)
        launched.append(outcome.attempt.number)
        # What says nothing of its flags is launched again: not for ever.
        lost = 0 if outcome.is_evidence else lost + 1
        if lost >= LOST_IN_A_ROW:
            raise lost_too_often(sweeping, lost, outcome)


def _with_refused(case: bisect.Case, refused: Mapping[str, Evidence]) -> bisect.Case:
    """Add what SGLang refused: cells that fail for another reason, and are not launched."""
    if not refused:
        return case
    may_launch = case.may_launch
    return replace(
        case,
        history=[*case.history, *refused.values()],
        may_launch=lambda cell: cell.key not in refused and may_launch(cell),
    )


def _is_refused(
    case: bisect.Case, cell: Cell, sweeping: Sweeping, refused: dict[str, Evidence]
) -> bool:
    """Ask SGLang about a launch; remember, and tell, what it says no to.

    A failure that is itself SGLang's no is bisected by launches: they take seconds then.
    """
    if case.bad.phase.order <= Phase.ARGS.order or cell.key in refused:
        return False
    foreseen = foresee(sweeping, cell)
    evidence = foreseen.evidence
    if foreseen.refused is None or evidence is None:
        return False
    refused[cell.key] = evidence
    changed = ", ".join(f"{n}={cell.get(n)}" for n in cell.difference(case.good.cell))
    said = f"not launched, SGLang refuses it ({changed}): {foreseen.refused.because}"
    sweeping.listener.tell(Note(text=said))
    return True


def _renew(sweeping: Sweeping) -> None:
    """Judge older attempts by today's catalogue: causes of two editions do not compare."""
    journal, catalogue = sweeping.journal, sweeping.catalogue
    if all(o.diagnosis.catalogue == catalogue.version for o in journal.history()):
        return
    for change in retriage_run(journal, catalogue):
        sweeping.listener.tell(Note(text=f"by today's catalogue: {change}"))


def case_of(search: Search, outcomes: Sequence[Outcome]) -> bisect.Case | None:
    """Return the two attempts and all that is known; None where no attempt serves.

    Raises:
        ConfigError: BAD does not fail, GOOD does not serve, or one of them does not exist.
    """
    history = _evidence(search, outcomes)
    bad = _entry(history, search.bad)
    _refuse_no_failure(bad)
    if search.good is None:
        good = bisect.nearest_serving(bad, history)
    else:
        good = _entry(history, search.good)
        _refuse_no_success(good, history)
    if good is None:
        return None
    excluded = _excluded(search.expanded)
    return bisect.Case(
        axes=search.expanded.cells.axes,
        bad=bad,
        good=good,
        history=history,
        may_launch=lambda cell: not excluded(cell),
    )


def _evidence(search: Search, outcomes: Sequence[Outcome]) -> list[Evidence]:
    """Return the attempts with cells that all name the same flags, so that they compare.

    What a cell does not name comes from the sweep's `launch`.
    """
    scope = Scope(search.sweep, search.tables)
    names = dict.fromkeys(a.name for a in search.expanded.cells.axes)
    names |= dict.fromkeys(name for o in outcomes for name in o.attempt.cell.values)
    filled = {name: _single(scope.constant(name)) for name in names}
    axes = list(names)
    return [
        replace(evidence_of(outcome, axes), cell=Cell({**filled, **outcome.attempt.cell.values}))
        for outcome in outcomes
    ]


def _single(value: object) -> Value:
    """Return a flag's value; one with several words, which no cell can hold, as one text."""
    if isinstance(value, tuple):
        return " ".join(str(word) for word in value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _entry(history: Sequence[Evidence], number: int) -> Evidence:
    found = next((entry for entry in history if entry.number == number), None)
    if found is None:
        known = ", ".join(str(entry.number) for entry in history) or "none"
        raise ConfigError(
            f"no finished attempt {number} in this run",
            next_step=f"Finished attempts: {known}.",
        )
    return found


def _refuse_no_failure(bad: Evidence) -> None:
    if bad.verdict is Verdict.SERVING:
        raise ConfigError(
            f"attempt {bad.number} serves: there is no failure to bisect",
            next_step="Give the number of a failing attempt first; GOOD comes second.",
        )
    if not bad.verdict.is_evidence:
        raise ConfigError(
            f"attempt {bad.number} is {bad.verdict.value}: that says nothing about its flags",
            next_step="Relaunch it, then bisect the attempt that fails.",
        )


def _refuse_no_success(good: Evidence, history: Sequence[Evidence]) -> None:
    if good.verdict is Verdict.SERVING:
        return
    serving = [str(entry.number) for entry in history if entry.verdict is Verdict.SERVING]
    raise ConfigError(
        f"attempt {good.number} does not serve ({good.verdict.value})",
        next_step=f"Serving attempts: {', '.join(serving)}."
        if serving
        else "No attempt of this run serves; find one with `sglsweep sweep` first.",
    )


def _excluded(expanded: Expanded) -> Callable[[Cell], bool]:
    """Return whether the sweep says that a cell is not to be launched."""
    axes = expanded.cells.axes
    keys: set[str] | None = None

    def is_excluded(cell: Cell) -> bool:
        nonlocal keys
        if keys is None:
            keys = {_point(item.cell, axes) for item in expanded.excluded}
        return _point(cell, axes) in keys

    return is_excluded


def _point(cell: Cell, axes: Sequence[Axis]) -> str:
    return Cell((axis.name, cell.get(axis.name)) for axis in axes).key


def _next(case: bisect.Case, sweeping: Sweeping) -> Launch | Culprit:
    """Return the next step; a launch that was made in another spelling is not made again."""
    ground = sweeping.ground
    by_key = {
        o.attempt.launch_key: o.attempt.number for o in sweeping.journal.history() if o.is_evidence
    }
    history = list(case.history)
    while True:
        step = bisect.next_step(replace(case, history=history))
        if isinstance(step, Culprit) or step.cell == case.bad.cell:
            return step
        twin = by_key.get(command_for(ground, step.cell).launch_key)
        if twin is None:
            return step
        history.append(replace(_entry(history, twin), cell=step.cell))


def _record(sweeping: Sweeping, found: Bisection) -> None:
    """Write the answer into the run; an earlier one about the same two attempts goes."""
    stored = sweeping.journal.facts.get("bisections")
    kept = [
        entry
        for entry in (stored if isinstance(stored, list) else [])
        if (entry.get("bad"), entry.get("good")) != (found.bad, found.good)
    ]
    if found.culprit is not None:
        kept.append(as_json(found))
    sweeping.journal.record(bisections=kept)
    report.write(sweeping.journal)


def as_json(found: Bisection) -> dict[str, object]:
    """Return the answer as run.json and `--json` hold it."""
    culprit = found.culprit
    answer: dict[str, object] = {
        "bad": found.bad,
        "good": found.good,
        "launched": list(found.launched),
        "is_named": culprit is not None,
    }
    if culprit is None:
        return answer
    return {
        **answer,
        "values": dict(culprit.values),
        "is_proven": culprit.is_proven,
        "is_flake": not culprit.values and culprit.failing is not None,
        "failing": culprit.failing,
        "serving": culprit.serving,
        "why": culprit.why,
    }
