"""Which attempt stands at the top of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.plan.race import mean_speed
from sglsweep.report.numbers import KV_TOKENS, metric
from sglsweep.report.quality import is_doubtful_model
from sglsweep.report.view import is_doubtful
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView


def best_serving(run: RunView, among: Sequence[Outcome] | None = None) -> Outcome | None:
    """Return the serving attempt to recommend, of all or of some.

    In this order: never failed when repeated, holds what is needed, proven, answers like the
    model that was asked for, no suspect answers, faster where that is the goal, served more
    often, earlier.
    """
    serving = run.serving if among is None else among
    return max(serving, key=lambda outcome: _merit(run, outcome), default=None)


def _merit(run: RunView, outcome: Outcome) -> tuple[float, ...]:
    proof = outcome.proof
    speed = _speed(run, outcome)
    suspects = sum(s.state is StepState.SUSPECT for s in proof.steps) if proof else 0
    return (
        not run.is_flaky(outcome),
        holds_need(run, outcome) is not False,
        proof is not None and proof.holds and not is_doubtful(outcome),
        not is_doubtful_model(run, outcome),
        -suspects,
        speed if "fastest" in run.goals else 0.0,
        len(run.repeats(outcome)),
        -outcome.attempt.number,
    )


def _speed(run: RunView, outcome: Outcome) -> float:
    """Return the speed of its launches under the ladder, else of its proof's load."""
    served = [o for o in run.repeats(outcome) if o in run.serving]
    speed = mean_speed(served or [outcome])
    if speed is not None:
        return speed
    return (outcome.proof.tokens_per_s if outcome.proof else None) or 0.0


def holds_need(run: RunView, outcome: Outcome) -> bool | None:
    """Say whether the KV pool holds what is needed; None where either is not known."""
    tokens = metric(outcome, KV_TOKENS)
    needed = needed_tokens(run)
    return None if tokens is None or needed is None else tokens >= needed


def needed_tokens(run: RunView) -> int | None:
    """Return tokens of KV cache that the need amounts to; None where none is stated."""
    context = run.need.get("context")
    return context * run.need.get("concurrent", 1) if context else None


def nearest_miss(run: RunView) -> Outcome | None:
    """Return the failure that came furthest; the latest of equals."""
    if not run.failing:
        return None
    return max(run.failing, key=_distance)


def _distance(outcome: Outcome) -> tuple[int, int, int]:
    proof = outcome.proof
    passed = sum(s.state is StepState.OK for s in proof.steps) if proof else 0
    # A server that answers rubbish is no nearer to use than one that fails at the first decode.
    is_rubbish = outcome.verdict is Verdict.GARBAGE_OUTPUT
    return (outcome.diagnosis.phase.order, 0 if is_rubbish else passed, outcome.attempt.number)
