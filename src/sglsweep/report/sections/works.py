"""What works, with its numbers; and what becomes ready and then dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.report.best import best_serving
from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Paragraph,
    Strong,
    Table,
    joined,
    prose,
)
from sglsweep.report.launches import changes
from sglsweep.report.machine import is_without_gpu
from sglsweep.report.numbers import (
    CAPTURE_GB,
    CAPTURE_S,
    KV_GB,
    KV_TOKENS,
    LEFT_GB,
    WEIGHTS_GB,
    count,
    gib,
    listed,
    metric,
    plural,
    rate,
    seconds,
)
from sglsweep.report.view import is_doubtful, is_partly
from sglsweep.report.words import changed, evidence, flaky

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView


def works(run: RunView) -> list[Block]:
    """Return a row of numbers for each serving attempt, with what sets it apart."""
    best = best_serving(run)
    if best is None:
        return []
    columns = [c for c in _COLUMNS if any(c[1](o) != "-" for o in run.serving)]
    rows = [
        (
            (str(o.attempt.number),),
            _apart(run, o, best),
            *((number(o),) for _, number in columns),
        )
        for o in run.serving
    ]
    head = ("#", f"against {best.attempt.number}", *(title for title, _ in columns))
    return [
        Heading(2, ("What works",)),
        Table(head, tuple(rows)),
        Paragraph((_legend(run),)),
    ]


def _apart(run: RunView, outcome: Outcome, best: Outcome) -> Line:
    what: Line = ("recommended",) if outcome is best else changed(changes(best, outcome))
    doubts: list[Line] = [
        flaky(run, outcome),
        (Strong("most answers suspect"),) if is_doubtful(outcome) else (),
    ]
    return joined([what, *(doubt for doubt in doubts if doubt)], "; ")


def _legend(run: RunView) -> str:
    whose = "of the host" if is_without_gpu(run.facts) and not run.world else "per GPU"
    return f"Memory {whose}, as SGLang's log says it; ready counts from the launch.{_shared(run)}"


def _shared(run: RunView) -> str:
    """Say whose figures hold what neighbours on the same card took and gave back meanwhile."""
    numbers = [o.attempt.number for o in run.serving if o.end.sharing]
    if not numbers:
        return ""
    return (
        f" {listed(numbers)} shared a card with other attempts: weights, graph capture and memory "
        "left hold what those took meanwhile, and the speeds are not of a card alone."
    )


def _ready(outcome: Outcome) -> str:
    return seconds(outcome.timings.ready_s)


def _kv(outcome: Outcome) -> str:
    tokens = metric(outcome, KV_TOKENS)
    size = metric(outcome, KV_GB)
    words = [count(tokens) if tokens is not None else "", gib(size) if size else ""]
    return ", ".join(word for word in words if word) or "-"


def _capture(outcome: Outcome) -> str:
    spent, size = metric(outcome, CAPTURE_S), metric(outcome, CAPTURE_GB)
    if spent is None:
        return "-"
    return f"{seconds(spent)}, {gib(size)}" if size else seconds(spent)


def _speed(outcome: Outcome) -> str:
    proof = outcome.proof
    if proof is None or proof.tokens_per_s is None:
        return "-"
    at = f" at {proof.concurrency}" if proof.concurrency else ""
    return f"{rate(proof.tokens_per_s)}{at}"


def _first_token(outcome: Outcome) -> str:
    found = [metric(outcome, (f"ttft_{name}_s",)) for name in ("p50", "p99")]
    return (
        " / ".join(f"{v * 1000:,.0f}" for v in found if v is not None) + " ms"
        if any(found)
        else "-"
    )


def _each_token(outcome: Outcome) -> str:
    value = metric(outcome, ("tpot_p50_s",))
    return "-" if value is None else f"{value * 1000:,.1f} ms"


_COLUMNS = (
    ("ready", _ready),
    ("weights", lambda o: gib(metric(o, WEIGHTS_GB))),
    ("KV tokens", _kv),
    ("graph capture", _capture),
    ("memory left", lambda o: gib(metric(o, LEFT_GB))),
    ("output speed", _speed),
    ("first token, p50 / p99", _first_token),
    ("each further token", _each_token),
)


def partly_working(run: RunView) -> list[Block]:
    """Return attempts that became ready, and the probe under which they failed."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in run.outcomes:
        if is_partly(outcome):
            key = (_probe(outcome), outcome.diagnosis.cause or outcome.verdict.value)
            found.setdefault(key, []).append(outcome)
    if not found:
        return []
    items = tuple(_partly(outcomes) for outcomes in found.values())
    return [Heading(2, ("Partly working",)), Bullets(items)]


def _probe(outcome: Outcome) -> str:
    failed = outcome.proof.first_failure if outcome.proof else None
    return failed.name if failed else ""


def _partly(outcomes: list[Outcome]) -> Line:
    """Tell of attempts that failed alike at the same probe, by the first of them."""
    first = outcomes[0]
    failed = first.proof.first_failure if first.proof else None
    passed = sum(s.state is StepState.OK for s in first.proof.steps) if first.proof else 0
    where: Line = ()
    if failed:
        after = f" after {plural(passed, 'step')} passed" if len(outcomes) == 1 else ""
        where = (", failed at the probe ", Code(failed.name), after)
        where += (" (", *prose(failed.detail, limit=160), ")") if failed.detail else ()
    return (
        f"{listed([o.attempt.number for o in outcomes])} became ready",
        *where,
        ": ",
        Code(first.verdict.value),
        " ",
        *evidence(first, limit=160),
    )
