"""A run as a report sees it: frozen, complete, without a path of this machine.

What the loop records in run.json (`Journal.record`) and this reads; each may be absent:

    axes         [{"name", "values"}]               the matrix
    cells        number of cells to launch at most, excluded ones not counted
    excluded     [{"because", "count", "cell" or "when"}]   never launched, by reason
    refused      the same, where SGLang itself refuses, with "verdict" and "cause"
    equal        the same, where another cell stands for them
    goal         ["first-serving", ...]
    budget       {"hours", "attempts", ...}
    need         {"context", "concurrent"}
    quality_reference   {"when"} or {"answers", "source"}: what answers are compared with
    hypotheses   [{"id", "says", "predicts"}]
    bisections   [{"bad", "good", "values", "is_proven", "is_flake", "failing", "serving"}]
    forecast     {"after", "why", "next_serves", "any_serves", "cells_left", "helps", ...}
    effective    [{"attempt", "values"}]            what acted on the axes in each attempt
    becomes      {axis: {value: [what acts instead]}}   by SGLang's own resolution; values as JSON
    rehearsal    name of the world, where there is no real SGLang
    finish       why the sweep launches nothing more
    notes        [text]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sglsweep.attempt import EndKind, Outcome, StepState
from sglsweep.matrix import Axis, Cell, Value, spell
from sglsweep.plan.effective import recorded
from sglsweep.verdict import Milestone, MilestoneState, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Attempt

WITHOUT_ANSWERS = frozenset({"answers", "server-info"})
"""Steps of the proof in which the model says nothing."""
NO_EVIDENCE = frozenset(
    {
        Verdict.HOST_LOST,
        Verdict.INTERRUPTED,
        Verdict.KILLED,
        Verdict.INCOMPLETE,
        Verdict.GRAPH_CAPTURE_OK,
    }
)
"""Verdicts that say nothing for or against the flags that were launched."""


class StoredRun(Protocol):
    """What a report needs of a journal."""

    folder: Path

    @property
    def facts(self) -> Mapping[str, object]:
        """Everything in run.json."""
        ...

    def history(self) -> tuple[Outcome, ...]:
        """Finished attempts, by number."""
        ...

    def open_attempts(self) -> tuple[Attempt, ...]:
        """Attempts begun and not closed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Cells that were not launched, and why.

    Attributes:
        kind: "excluded" by the user, "refused" by SGLang, "equal" to another cell.
        what: the condition or the cell, as `flag=value` words.
        verdict: of refused cells, as a launch would have come to it. cause: likewise.
    """

    kind: str
    because: str
    count: int = 1
    what: str = ""
    verdict: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """Something the user believes, as a prediction: where `when` holds, the verdict is this."""

    id: str
    says: str
    when: Mapping[str, Value] = field(default_factory=dict)
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """What `sglsweep bisect` named between a failing and a serving attempt.

    Attributes:
        values: flag -> the failing attempt's value; empty where the failure was a flake.
        failing: with `serving`, the two attempts that differ in just these flags.
    """

    bad: int
    values: Mapping[str, Value] = field(default_factory=dict)
    is_proven: bool = False
    is_flake: bool = False
    failing: int | None = None
    serving: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Everything a report says comes from here; without slots, so that it can remember.

    Attributes:
        run: the word that names this run on a command line.
        outcomes: finished attempts, by number.
        need: tokens of context and requests at once that a server must hold.
        acted: number of an attempt -> what acted on the axes, where SGLang was asked first.
        becomes: axis -> requested value, spelled -> what acts in its place in every cell.
        forecast: what further attempts may bring, as the planner last worked it out.
    """

    run: str
    name: str
    model: str
    outcomes: tuple[Outcome, ...] = ()
    running: tuple[Attempt, ...] = ()
    axes: tuple[Axis, ...] = ()
    cells: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    goals: tuple[str, ...] = ()
    budget: Mapping[str, object] = field(default_factory=dict)
    need: Mapping[str, int] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = ()
    bisections: tuple[Bisected, ...] = ()
    acted: Mapping[int, Cell] = field(default_factory=dict)
    becomes: Mapping[str, Mapping[str, Sequence[Value]]] = field(default_factory=dict)
    forecast: Mapping[str, object] = field(default_factory=dict)
    reference: Mapping[str, object] = field(default_factory=dict)
    world: str = ""
    finish: str = ""
    notes: tuple[str, ...] = ()
    catalogue: str = ""
    tool: str = ""

    @cached_property
    def evidence(self) -> tuple[Outcome, ...]:
        """Attempts that say something about the flags they were launched with."""
        return tuple(o for o in self.outcomes if is_evidence(o))

    @cached_property
    def serving(self) -> tuple[Outcome, ...]:
        """Attempts that served."""
        return tuple(o for o in self.evidence if o.verdict is Verdict.SERVING)

    @cached_property
    def failing(self) -> tuple[Outcome, ...]:
        """Attempts that failed by their own doing."""
        return tuple(o for o in self.evidence if o.verdict is not Verdict.SERVING)

    @property
    def facts(self) -> Mapping[str, object]:
        """What the host was at the latest attempt that knew."""
        return next((o.facts for o in reversed(self.outcomes) if o.facts), {})

    def outcome(self, number: int) -> Outcome | None:
        """Return a finished attempt by its number."""
        return next((o for o in self.outcomes if o.attempt.number == number), None)

    def having(self, axis: str, value: Value) -> tuple[Outcome, ...]:
        """Return the telling attempts launched with this value of an axis."""
        wanted = spell(value)
        return tuple(o for o in self.evidence if spell(o.attempt.cell.get(axis)) == wanted)

    @cached_property
    def _by_launch(self) -> Mapping[str, tuple[Outcome, ...]]:
        found: dict[str, list[Outcome]] = {}
        for outcome in self.evidence:
            found.setdefault(outcome.attempt.launch_key, []).append(outcome)
        return {key: tuple(outcomes) for key, outcomes in found.items()}

    def repeats(self, outcome: Outcome) -> tuple[Outcome, ...]:
        """Return all telling attempts of the very same launch, this one included."""
        return self._by_launch.get(outcome.attempt.launch_key, ())

    def is_flaky(self, outcome: Outcome) -> bool:
        """True if the very same launch served once and failed another time, asked the same."""
        served = self.served_as(outcome)
        failed = [o for o in self.repeats(outcome) if o not in served]
        return bool(served) and not all(asked_more(o, served) for o in failed)

    def served_as(self, outcome: Outcome) -> tuple[Outcome, ...]:
        """Return the attempts of the very same launch that served."""
        return tuple(o for o in self.repeats(outcome) if o.verdict is Verdict.SERVING)


def asked_more(outcome: Outcome, served: tuple[Outcome, ...]) -> str:
    """Return the step at which an attempt failed and that none of `served` was asked; else ""."""
    failed = outcome.proof.first_failure if outcome.proof else None
    if failed is None or not served:
        return ""
    asked = {
        step.name
        for other in served
        for step in (other.proof.steps if other.proof else ())
        if step.state in {StepState.OK, StepState.SUSPECT}
    }
    return "" if failed.name in asked else failed.name


def is_doubtful(outcome: Outcome) -> bool:
    """True for a server of whose answers at least as many are suspect as are right."""
    steps = outcome.proof.steps if outcome.proof else ()
    odd = sum(step.state is StepState.SUSPECT for step in steps)
    right = sum(step.state is StepState.OK and step.name not in WITHOUT_ANSWERS for step in steps)
    return odd > 0 and odd >= right


def cells_left(run: RunView) -> int:
    """Return how many cells of the matrix no attempt has tried; 0 where that is not known."""
    tried = {o.attempt.cell.key for o in run.outcomes if o.is_evidence}
    return 0 if run.cells is None else max(0, run.cells - len(tried))


def is_evidence(outcome: Outcome) -> bool:
    """True where an attempt speaks about its own flags."""
    is_other = outcome.end.kind is EndKind.EQUAL or outcome.is_from_outside
    return outcome.verdict not in NO_EVIDENCE and not is_other


def is_partly(outcome: Outcome) -> bool:
    """True for a server that became ready and then failed."""
    return (
        is_evidence(outcome)
        and outcome.verdict is not Verdict.SERVING
        and (
            outcome.proof is not None
            or outcome.timings.ready_s is not None
            or outcome.diagnosis.milestones.get(Milestone.READY) is MilestoneState.OK
        )
    )


def view_of(stored: StoredRun) -> RunView:
    """Read a stored run."""
    facts = stored.facts
    outcomes = stored.history()
    left_out = _merged(
        _left_out(kind, entry)
        for kind in ("excluded", "refused", "equal")
        for entry in _objects(facts.get(kind))
    )
    return RunView(
        run=stored.folder.resolve().name,
        name=str(facts.get("name") or stored.folder.resolve().name),
        model=str(facts.get("model") or ""),
        outcomes=outcomes,
        running=stored.open_attempts(),
        axes=_axes(facts.get("axes"), outcomes),
        cells=_whole(facts.get("cells")),
        left_out=left_out,
        goals=_texts(facts.get("goal")),
        budget=_object(facts.get("budget")),
        need={k: n for k, v in _object(facts.get("need")).items() if (n := _whole(v))},
        hypotheses=tuple(_hypothesis(entry) for entry in _objects(facts.get("hypotheses"))),
        bisections=tuple(_bisections(facts.get("bisections"))),
        acted=recorded(facts.get("effective")),
        becomes=_becomes(facts.get("becomes")),
        forecast=_object(facts.get("forecast")),
        reference=_object(facts.get("quality_reference")),
        world=str(facts.get("rehearsal") or ""),
        finish=str(facts.get("finish") or ""),
        notes=_texts(facts.get("notes")),
        catalogue=str(facts.get("catalogue") or ""),
        tool=str(facts.get("tool") or ""),
    )


def _axes(stored: object, outcomes: Sequence[Outcome]) -> tuple[Axis, ...]:
    """Return the matrix as recorded, with what attempts had outside it."""
    values: dict[str, list[Value]] = {}
    for entry in _objects(stored):
        listed = entry.get("values")
        if isinstance(listed, list | tuple):
            distinct = {spell(v): v for v in listed if _is_value(v)}
            values[str(entry.get("name"))] = list(distinct.values())
    names = {name: None for o in outcomes for name in o.attempt.cell.values}
    for name in names:
        known = values.setdefault(name, [])
        for outcome in outcomes:
            value = outcome.attempt.cell.get(name)
            if spell(value) not in {spell(v) for v in known}:
                known.append(value)
    return tuple(Axis(name, tuple(found)) for name, found in values.items())


def _left_out(kind: str, entry: Mapping[str, object]) -> LeftOut:
    what = entry.get("when") or entry.get("cell") or {}
    words = (
        " ".join(f"{name}={_shown(value)}" for name, value in what.items())
        if isinstance(what, Mapping)
        else str(what)
    )
    return LeftOut(
        kind=kind,
        because=str(entry.get("because") or entry.get("why") or "no reason given"),
        count=_whole(entry.get("count")) or 1,
        what=words,
        verdict=str(entry.get("verdict") or ""),
        cause=str(entry.get("cause") or ""),
    )


def _merged(entries: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Put entries of one reason together; what they were is told only where it is one thing."""
    found: dict[tuple[str, str], list[LeftOut]] = {}
    for entry in entries:
        found.setdefault((entry.kind, entry.because), []).append(entry)
    return tuple(
        replace(
            same[0],
            count=sum(entry.count for entry in same),
            what=same[0].what if len({entry.what for entry in same}) == 1 else "",
        )
        for same in found.values()
    )


def _hypothesis(entry: Mapping[str, object]) -> Hypothesis:
    predicts = _object(entry.get("predicts"))
    when = {k: v for k, v in predicts.items() if k != "verdict" and _is_value(v)}
    return Hypothesis(
        id=str(entry.get("id") or "?"),
        says=str(entry.get("says") or ""),
        when=when,  # type: ignore[arg-type]  # _is_value above
        verdict=str(predicts.get("verdict") or ""),
    )


def _becomes(stored: object) -> dict[str, dict[str, tuple[Value, ...]]]:
    return {
        axis: {
            asked: tuple(value for value in acts if _is_value(value))
            for asked, acts in _object(values).items()
            if isinstance(acts, list | tuple)
        }
        for axis, values in _object(stored).items()
    }


def _bisections(stored: object) -> Iterable[Bisected]:
    """Yield the answers that name something; an entry that lacks its attempt is none."""
    for entry in _objects(stored):
        bad = _whole(entry.get("bad"))
        if bad is not None and entry.get("is_named"):
            values = _object(entry.get("values"))
            yield Bisected(
                bad=bad,
                values={k: v for k, v in values.items() if _is_value(v)},  # type: ignore[misc]
                is_proven=bool(entry.get("is_proven")),
                is_flake=bool(entry.get("is_flake")),
                failing=_whole(entry.get("failing")),
                serving=_whole(entry.get("serving")),
            )


def _shown(value: object) -> str:
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: object) -> Iterable[Mapping[str, object]]:
    entries = value if isinstance(value, list | tuple) else ()
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(v) for v in value) if isinstance(value, list | tuple) else ()
