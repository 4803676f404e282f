"""What run.json says of a run beside its attempts, and what is said before the first of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sglsweep.attempt import numbered
from sglsweep.expand.resolved import launched_otherwise
from sglsweep.plan.effective import become, to_record
from sglsweep.plan.outside import to_json
from sglsweep.plan.question import base_of
from sglsweep.plan.strategy import Finish
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.expand.asked import Refused
    from sglsweep.expand.resolved import Settled
    from sglsweep.matrix import Cell
    from sglsweep.plan.decide import Decision
    from sglsweep.plan.prior import Taken
    from sglsweep.plan.question import Auto
    from sglsweep.prepare import Ground


def run_facts(
    ground: Ground,
    history: Sequence[Outcome],
    decision: Decision,
    *,
    acting: Iterable[tuple[int, Cell]],
    priors: Sequence[Taken],
) -> dict[str, object]:
    """Return what a run is about, for the report and for whoever resumes.

    Args:
        ground: what was known before the first launch.
        history: the run's finished attempts.
        decision: the latest.
        acting: number of an attempt, what acted in it (see `acting_in`).
        priors: earlier runs as evidence.
    """
    sweep, settled = ground.sweep, ground.settled
    return {
        "axes": [{"name": a.name, "values": list(a.values)} for a in ground.expanded.cells.axes],
        "cells": len(ground.expanded.cells) + len(ground.expanded.includes),
        **_left_out(ground, decision),
        "effective": to_record(acting),
        "becomes": become(settled.effective) if settled else {},
        "goal": [str(goal) for goal in sweep.goal],
        "budget": {
            "hours": sweep.budget.hours,
            "attempts": sweep.budget.attempts,
            "keep": sweep.budget.keep,
        },
        "need": {"context": sweep.need.context, "concurrent": sweep.need.concurrent},
        "quality_reference": sweep.quality_reference,
        "priors": [_prior(taken) for taken in priors],
        "hypotheses": [
            {"id": h.id, "says": h.says, "predicts": {**_single(h.when), **_single(h.outcome)}}
            for h in sweep.hypotheses
        ],
        "rehearsal": _world(ground),
        "finish": decision.step.why if isinstance(decision.step, Finish) else None,
        "forecast": _forecast(decision, len(history)),
        "notes": [
            *(f"{n.where}: {n.text}" for n in (*sweep.unsupported, *ground.expanded.notes)),
            *_prior_notes(priors),
            *_resolution_notes(settled, history),
        ],
    }


def acting_in(
    ground: Ground, history: Sequence[Outcome], auto: Auto | None
) -> Iterator[tuple[int, Cell]]:
    """Yield what acted in each finished attempt, where SGLang was asked."""
    if ground.settled is None:
        return
    bases = {o.attempt.number: base_of(o.attempt.cell, auto) for o in history}
    seen = ground.settled.effective.after(
        (bases[o.attempt.number], o.diagnosis.effective) for o in history
    )
    for number, base in bases.items():
        yield number, seen.of(base)


def told_before(ground: Ground, priors: Sequence[Taken]) -> list[str]:
    """Return what to tell before the first launch: what is asked in vain, what asking brought."""
    notes = [f"{n.where}: {n.text}" for n in (*ground.sweep.unsupported, *ground.expanded.notes)]
    told = [f"note: {text}" for text in (*notes, *_prior_notes(priors))]
    return told if ground.settled is None else [*told, _asked_words(ground.settled)]


def _left_out(ground: Ground, decision: Decision) -> dict[str, list[dict[str, object]]]:
    """Return the cells that are not launched, by why not."""
    settled = ground.settled
    excluded: list[dict[str, object]] = [
        {"because": because, "count": count}
        for because, count in ground.expanded.excluded_counts.items()
    ]
    equal: list[dict[str, object]] = [
        {"because": f"the same launch as attempt {number}", "count": 1, "cell": key}
        for key, number in decision.equal.items()
    ]
    if settled is None:
        return {"excluded": excluded, "refused": [], "equal": equal}
    merged = _by_reason((m.because, m.cell) for m in settled.merged)
    return {
        "excluded": excluded,
        "refused": _refused(settled.refused),
        "equal": [*equal, *merged],
    }


def _forecast(decision: Decision, after: int) -> dict[str, object] | None:
    """Return what is to be expected as run.json holds it; None before an attempt says anything."""
    if decision.forecast is None:
        return None
    return {"after": after, **to_json(decision.forecast, decision.helps)}


def _refused(found: Sequence[Refused]) -> list[dict[str, object]]:
    """Return what SGLang refuses as the outcomes that it is, by SGLang's words."""
    judged = {r.because: r for r in found}
    return [
        {
            **entry,
            "verdict": str(judged[str(entry["because"])].verdict),
            "phase": str(Phase.ARGS),
            "cause": judged[str(entry["because"])].cause or None,
        }
        for entry in _by_reason((r.because, r.cell) for r in found)
    ]


def _by_reason(entries: Iterable[tuple[str, Cell]]) -> list[dict[str, object]]:
    """Count cells by reason; what one cell was is told where it is the only one."""
    found: dict[str, list[Cell]] = {}
    for because, cell in entries:
        found.setdefault(because, []).append(cell)
    return [
        {"because": because, "count": len(cells)}
        | ({"cell": dict(cells[0].values)} if len(cells) == 1 else {})
        for because, cells in found.items()
    ]


def _prior(taken: Taken) -> dict[str, object]:
    return {
        "run": taken.run.name,
        "attempts": len(taken.run.attempts),
        "taken": len(taken.evidence),
        "weight": taken.weights[1],
        "why": taken.why,
    }


def _prior_notes(priors: Sequence[Taken]) -> list[str]:
    return [f"{taken.run.where}: {taken.why}" for taken in priors]


def _resolution_notes(settled: Settled | None, history: Sequence[Outcome]) -> list[str]:
    """Say what is known to fail and is launched last, and where a launch came out otherwise."""
    if settled is None:
        return []
    issues = {s.issue.id: s.issue for s in settled.suspects}
    counts = Counter(s.issue.id for s in settled.suspects)
    notes = [
        f"known not to work, launched last ({counts[i.id]} cells): {i.reason} "
        f"Instead: {i.instead} ({i.source})"
        for i in issues.values()
    ]
    return notes + _resolved_otherwise(settled, history)


def _resolved_otherwise(settled: Settled, history: Sequence[Outcome]) -> list[str]:
    """Say where the launched server took other values than SGLang had said when asked first."""
    found: dict[str, list[int]] = {}
    for outcome in history:
        answer = settled.answers.get(outcome.attempt.cell.key)
        other = launched_otherwise(answer, outcome.diagnosis.effective)
        if other:
            shown = ", ".join(f"{n} {b} instead of {a}" for n, (a, b) in list(other.items())[:5])
            found.setdefault(shown, []).append(outcome.attempt.number)
    return [
        f"{numbered(numbers)} took other values than SGLang had said before the launch: {shown}"
        for shown, numbers in found.items()
    ]


def _single(conditions: Mapping[str, Sequence[object]]) -> dict[str, object]:
    return {name: values[0] for name, values in conditions.items() if values}


def _world(ground: Ground) -> str | None:
    worlds = [b.rehearsal for b in ground.sweep.builds.values() if b.rehearsal is not None]
    return worlds[0].stem if worlds else None


def _asked_words(settled: Settled) -> str:
    """Say what came of asking; the words of the refusal that most cells met."""
    words = [f"{len(settled.answers)} cells were asked about"]
    if settled.refused:
        (because, _), *_ = Counter(r.told for r in settled.refused).most_common(1)
        words.append(f"SGLang refuses {len(settled.refused)} ({because})")
    if settled.merged:
        words.append(f"{len(settled.merged)} are equal to another")
    if settled.suspects:
        words.append(f"{len(settled.suspects)} of the rest are known not to work")
    return "; ".join(words)
