"""What a sweep would do, as data: for `plan`, which prints it or hands it out as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.expand import expand
from sglsweep.outline.estimate import (
    MemoryEstimate,
    TimeEstimate,
    memory_estimates,
    time_estimate,
)
from sglsweep.outline.past import THIS_RUN, past_of
from sglsweep.plan import strategies
from sglsweep.plan.effective import as_requested
from sglsweep.plan.hypotheses import Claim, on_effective
from sglsweep.plan.pairwise import combinations_shown, rows_to_launch
from sglsweep.plan.rehearse import Rehearsed, Suppose, rehearse
from sglsweep.plan.strategy import Evidence
from sglsweep.plan.table import table_of
from sglsweep.sweep import earlier_runs, effective_cells, strategy_for
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglsweep.config.sweep import Sweep
    from sglsweep.expand import Expanded
    from sglsweep.expand.resolved import Settled
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.strategy import Strategy
    from sglsweep.prepare import Ground
    from sglsweep.sweep import Settings

KNOWN = "known issue"


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
