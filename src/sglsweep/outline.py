"""What a sweep would do, as data: for `plan`, which prints it or hands it out as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.expand import expand
from sglsweep.past import THIS_RUN, past_of
from sglsweep.plan import strategies
from sglsweep.plan.effective import as_requested
from sglsweep.plan.hypotheses import Claim, on_effective
from sglsweep.plan.memory import FRACTION, MARGIN_GB
from sglsweep.plan.pairwise import combinations_shown, rows_to_launch, word_for
from sglsweep.plan.rehearse import Rehearsed, Suppose, rehearse
from sglsweep.plan.strategy import Evidence
from sglsweep.plan.table import table_of
from sglsweep.sweep import earlier_runs, effective_cells, strategy_for
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.config.sweep import Sweep
    from sglsweep.expand import Expanded
    from sglsweep.expand.resolved import Settled
    from sglsweep.past import Past, Seen
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.strategy import Strategy
    from sglsweep.prepare import Ground
    from sglsweep.sweep import Settings

KNOWN = "known issue"
USUAL_S = 300.0
"""Seconds of an attempt where nothing better is known: the lead case's took 3 to 5 minutes."""
_FRACTIONS = (0.80, 0.85, 0.90)
"""Shown where the sweep names no fraction."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Cells of one kind that share a reason.

    Attributes:
        kind: "excluded", "refused", "equal" or `KNOWN`, which comes last.
        instead: what works in their place, where that is known.
        source: where that is known from.
    """

    kind: str
    because: str
    count: int
    instead: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """How long it may take.

    Attributes:
        attempts: launches at most.
        each_s: seconds of one.
        source: where that is from, as a sentence's end.
    """

    attempts: int
    each_s: float
    source: str
    budget_hours: float | None = None

    @property
    def total_s(self) -> float:
        """Seconds of all of them, the budget aside."""
        return self.attempts * self.each_s


@dataclass(frozen=True, slots=True, kw_only=True)
class AtFraction:
    """What an earlier attempt's figures say of one fraction."""

    fraction: float
    pool_gb: float | None
    tokens: int | None
    left_gb: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What one KV dtype's latest attempt says of the fractions of this sweep.

    Attributes:
        free_gb: free before the weights there.
        enough: the smallest fraction whose pool holds what is needed; None: nothing is needed, or
            not known.
    """

    where: str
    attempt: int
    kv_dtype: str
    fraction: float
    free_gb: float
    smallest: float
    largest: float | None
    is_capped: bool
    at: tuple[AtFraction, ...]
    needed: int | None = None
    enough: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """A covering array of the matrix.

    Attributes:
        order: values of so many flags are shown together.
        combinations: how many of them some cell has; `exclude` forbids the rest.
        rows: launches that show them all, those of `include` aside.
    """

    order: int
    combinations: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Everything that `plan` tells.

    Attributes:
        cells: by what SGLang makes of them, where it was asked.
        notes: what the file asks for in vain, what was taken from which earlier run.
        is_checked: flags and values were checked against an SGLang.
        covering: only for strategy pairwise.
        done: attempts that this sweep's run holds already.
    """

    sweep: Sweep
    expanded: Expanded
    cells: EffectiveCells
    counted: tuple[Counted, ...]
    notes: tuple[str, ...]
    is_checked: bool
    time: TimeEstimate
    memory: tuple[MemoryEstimate, ...]
    covering: Covering | None
    decisions: Mapping[Suppose, Rehearsed]
    strategy: str
    done: int = 0


def outline(sweep: Sweep, ground: Ground | None, settings: Settings, first: int) -> Outline:
    """Return what a sweep would do.

    Args:
        sweep: what the file asks for.
        ground: the sweep with what its host said; None: no host was asked.
        settings: how the sweep chooses.
        first: how many first launches to foresee.

    Raises:
        ConfigError: there is no such strategy, or no such order.
    """
    expanded = ground.expanded if ground else expand(sweep)
    settled = ground.settled if ground else None
    seen = effective_cells(ground) if ground else as_requested(expanded.cells)
    past = past_of(sweep)
    own = past[0] if past and past[0].relation == THIS_RUN else None
    goal = str(sweep.goal[0])
    strategy = strategy_for(ground, settings, goal) if ground else _offline(sweep, seen, settings)
    is_covering = settings.strategy == "pairwise"
    return Outline(
        sweep=sweep,
        expanded=expanded,
        cells=seen,
        counted=counted(expanded, settled),
        notes=tuple(_notes(sweep, expanded, ground)),
        is_checked=ground is not None,
        time=time_estimate(sweep, expanded, past),
        memory=memory_estimates(sweep, past),
        covering=covering(seen, expanded, settings.order) if is_covering else None,
        decisions=first_decisions(strategy, seen, expanded, first),
        strategy=settings.strategy,
        done=len(own.attempts_s) if own else 0,
    )


def _offline(sweep: Sweep, seen: EffectiveCells, settings: Settings) -> Strategy:
    """Return the strategy as far as it goes without a host: neither priors nor the catalogue."""
    claims = [on_effective(Claim(h.id, h.when), seen) for h in sweep.hypotheses if h.when]
    return strategies.make(
        settings.strategy,
        seed=settings.seed,
        goal=str(sweep.goal[0]),
        claims=[claim for claim in claims if claim is not None],
        order=settings.order,
    )


def _notes(sweep: Sweep, expanded: Expanded, ground: Ground | None) -> Iterator[str]:
    yield from (f"{n.where}: {n.text}" for n in (*sweep.unsupported, *expanded.notes))
    if ground is not None:
        yield from (f"{taken.run.where}: {taken.why}" for taken in earlier_runs(ground))
    elif sweep.prior:
        yield "what `prior` teaches is weighed with --probe: it depends on the host's SGLang, GPU"


def counted(expanded: Expanded, settled: Settled | None) -> tuple[Counted, ...]:
    """Return why cells are not launched, or come last, with how many each reason concerns."""
    found = [
        Counted("excluded", because, count) for because, count in expanded.excluded_counts.items()
    ]
    if settled is None:
        return tuple(found)
    refused = Counter(item.told for item in settled.refused)
    equal = Counter(item.because for item in settled.merged)
    issues = {item.issue.id: item.issue for item in settled.suspects}
    met = Counter(item.issue.id for item in settled.suspects)
    found += [Counted("refused", because, count) for because, count in refused.items()]
    found += [Counted("equal", because, count) for because, count in equal.items()]
    found += [
        Counted(KNOWN, issue.reason, met[name], issue.instead, issue.source)
        for name, issue in issues.items()
    ]
    return tuple(found)


def time_estimate(sweep: Sweep, expanded: Expanded, past: Sequence[Past]) -> TimeEstimate:
    """Return how long the sweep may take at most, by the nearest run that tells."""
    cells = len(expanded.cells) + len(expanded.includes)
    budget = sweep.budget
    known = next((p for p in past if p.mean_s is not None), None)
    attempts = min(cells, budget.attempts) if budget.attempts else cells
    if known is None or known.mean_s is None:
        source = "nothing was launched here yet, so by the lead case: 3 to 5 minutes on 8 GPUs"
        each = USUAL_S
    else:
        count = len(known.attempts_s)
        each = known.mean_s
        source = f"the mean of {count} attempt{'' if count == 1 else 's'} of {known.where}, "
        source += known.relation
    return TimeEstimate(attempts=attempts, each_s=each, source=source, budget_hours=budget.hours)


def memory_estimates(sweep: Sweep, past: Sequence[Past]) -> tuple[MemoryEstimate, ...]:
    """Return what the nearest run's attempts say of this sweep's fractions, one a KV dtype."""
    known = next((p for p in past if p.seen), None)
    if known is None:
        return ()
    latest: dict[str, Seen] = {}
    for seen in known.seen:
        before = latest.get(seen.kv_dtype)
        if before is None or seen.memory.pool_tokens or not before.memory.pool_tokens:
            latest[seen.kv_dtype] = seen
    return tuple(_estimate(sweep, known.where, seen) for seen in latest.values())


def _estimate(sweep: Sweep, where: str, seen: Seen) -> MemoryEstimate:
    memory = seen.memory
    need = sweep.need
    needed = None if need.context is None else need.context * (need.concurrent or 1)
    return MemoryEstimate(
        where=where,
        attempt=seen.attempt,
        kv_dtype=seen.kv_dtype,
        fraction=memory.fraction,
        free_gb=memory.before_weights_gb or 0.0,
        smallest=memory.smallest or 0.0,
        largest=memory.largest(),
        is_capped=memory.is_capped,
        at=tuple(
            AtFraction(
                fraction=fraction,
                pool_gb=memory.pool_gb_at(fraction),
                tokens=memory.tokens_at(fraction),
                left_gb=memory.left_gb_at(fraction),
            )
            for fraction in fractions_of(sweep)
        ),
        needed=needed,
        enough=memory.fraction_for(needed) if needed else None,
    )


def fractions_of(sweep: Sweep) -> tuple[float, ...]:
    """Return the fractions that the sweep may launch with; some usual ones where it names none."""
    if sweep.auto is not None:
        return tuple(dict.fromkeys((sweep.auto.start, sweep.auto.max)))
    named = [sweep.launch.flags.get(FRACTION)]
    for axis in sweep.axes:
        if axis.name == FRACTION:
            named = list(axis.values)
    numbers = [float(v) for v in named if isinstance(v, int | float) and not isinstance(v, bool)]
    return tuple(dict.fromkeys(sorted(numbers))) or _FRACTIONS


def first_decisions(
    strategy: Strategy, seen: EffectiveCells, expanded: Expanded, count: int
) -> Mapping[Suppose, Rehearsed]:
    """Return the first launches under each supposition."""
    return {
        suppose: rehearse(strategy, seen, expanded.includes, suppose, count) for suppose in Suppose
    }


def covering(seen: EffectiveCells, expanded: Expanded, order: int) -> Covering | None:
    """Return the covering array that strategy pairwise would launch; None where there is none."""
    if len(seen.cells.axes) < order or not len(seen.cells):
        return None
    table = table_of(seen.cells)
    included = [
        Evidence(number=n, cell=seen.of(cell), verdict=Verdict.CRASH, phase=Phase.DECODE)
        for n, cell in enumerate(expanded.includes, start=1)
    ]
    rows = rows_to_launch(table, order, included)
    return Covering(order=order, combinations=combinations_shown(table, order), rows=len(rows))


# -- as JSON -----------------------------------------------------------------------------------


def outline_json(found: Outline) -> dict[str, object]:
    """Return all of it as data."""
    sweep = found.sweep
    return {
        "schema": 1,
        "name": sweep.name,
        "host": sweep.host,
        "model": sweep.model.name,
        "goal": [str(goal) for goal in sweep.goal],
        "is_checked": found.is_checked,
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in sweep.axes],
        "cells": len(found.expanded.cells),
        "included": [dict(cell.values) for cell in found.expanded.includes],
        "not_launched": [_counted_json(c) for c in found.counted if c.kind != KNOWN],
        "known_issues": [_counted_json(c) for c in found.counted if c.kind == KNOWN],
        "notes": list(found.notes),
        "attempts_done": found.done,
        "time": _time_json(found.time),
        "memory": _memory_json(found.memory),
        "covering": None if found.covering is None else _covering_json(found.covering),
        "strategy": found.strategy,
        "decisions": {
            suppose.name.lower(): _decisions_json(suppose, rehearsed)
            for suppose, rehearsed in found.decisions.items()
        },
    }


def _counted_json(item: Counted) -> dict[str, object]:
    document: dict[str, object] = {
        "kind": item.kind,
        "because": item.because,
        "count": item.count,
    }
    if item.kind == KNOWN:
        document |= {"instead": item.instead, "source": item.source}
    return document


def _time_json(time: TimeEstimate) -> dict[str, object]:
    return {
        "attempts": time.attempts,
        "each_s": round(time.each_s, 1),
        "total_s": round(time.total_s, 1),
        "budget_hours": time.budget_hours,
        "source": time.source,
    }


def _memory_json(found: Sequence[MemoryEstimate]) -> dict[str, object]:
    return {"margin_gb": MARGIN_GB, "known": [_estimate_json(e) for e in found]}


def _estimate_json(e: MemoryEstimate) -> dict[str, object]:
    return {
        "from": {"run": e.where, "attempt": e.attempt, "fraction": e.fraction},
        "kv_dtype": e.kv_dtype or None,
        "before_weights_gb": e.free_gb,
        "f_min": round(e.smallest, 4),
        "f_max": _rounded(e.largest, 4),
        "is_capped": e.is_capped,
        "needed_tokens": e.needed,
        "f_enough": _rounded(e.enough, 4),
        "at": [
            {
                "fraction": a.fraction,
                "pool_gb": _rounded(a.pool_gb, 2),
                "tokens": a.tokens,
                "left_gb": _rounded(a.left_gb, 2),
            }
            for a in e.at
        ],
    }


def _covering_json(found: Covering) -> dict[str, object]:
    return {
        "order": found.order,
        "of": word_for(found.order),
        "combinations": found.combinations,
        "rows": found.rows,
    }


def _decisions_json(suppose: Suppose, rehearsed: Rehearsed) -> dict[str, object]:
    return {
        "supposing": suppose.value,
        "launches": [
            {"key": s.cell.short_key, "cell": dict(s.cell.values), "why": s.why}
            for s in rehearsed.steps
        ],
        "end": rehearsed.end or None,
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
