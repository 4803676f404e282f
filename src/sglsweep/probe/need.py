"""Whether a server holds what the user needs: by arithmetic first, then for real.

A server that answers well but is too small is no success, and it is no crash either. Its step
fails with the verdict of what is in the way: a pool that is too small is memory (`oom`, cause
`kv-pool-below-need`), a context or a number of requests set too low is `bad-config`. So the
goal does not count it, and its next step is the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.probe import steps
from sglsweep.probe.requests import generate, ids, new_tokens
from sglsweep.probe.steps import ProofStepPlan, asking, skipped
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.probe.target import Target

_SMALL = 64
"""Tokens of a request where only a number of requests is needed."""


def need(target: Target) -> ProofStepPlan:
    """Return the step that asks for what is needed, or that knows already that it cannot be."""
    wanted = target.need
    if wanted.context is None and wanted.concurrent <= 1:
        return skipped(steps.NEED, "what is needed", "no `need` is given")
    context = wanted.context or _SMALL
    says = f"{wanted.concurrent} x {context:,} tokens at once, as needed"
    if (unmet := _unmet(target, context, says)) is not None:
        return unmet
    tokens = new_tokens(target, 16)
    size = context if target.longest is None else min(context, target.longest)
    requests = [
        generate(
            target,
            f"need-{i}",
            ids(target, max(size - tokens, 1), 300 + i),
            tokens=tokens,
            temperature=1.0,
        )
        for i in range(wanted.concurrent)
    ]
    return asking(
        steps.NEED,
        says,
        *requests,
        tokens=tokens,
        concurrency=wanted.concurrent,
        more_s=size * wanted.concurrent / 100.0,
    )


def _unmet(target: Target, context: int, says: str) -> ProofStepPlan | None:
    running = None if target.max_running is None else target.max_running * target.dp_size
    wanted = target.need.concurrent
    if target.context is not None and context > target.context:
        return _short_of(
            says,
            f"the server takes {target.context:,} tokens a request, {context:,} are needed",
            cause="context-below-need",
            next_step="Raise context-length, or choose a model with a longer context.",
        )
    if running is not None and wanted > running:
        return _short_of(
            says,
            f"the server runs {running:,} requests at once, {wanted:,} are needed",
            cause="running-requests-below-need",
            next_step="Raise max-running-requests.",
        )
    if target.pool is not None and context * wanted > target.pool:
        return _short_of(
            says,
            f"the KV pool holds {target.pool:,} tokens, {context * wanted:,} are needed",
            cause="kv-pool-below-need",
            next_step="Raise mem-fraction-static, use a smaller KV cache dtype, lower"
            " max-running-requests, or need less.",
            verdict=Verdict.OOM,
        )
    return None


def _short_of(
    says: str, why: str, *, cause: str, next_step: str, verdict: Verdict = Verdict.BAD_CONFIG
) -> ProofStepPlan:
    return ProofStepPlan(
        name=steps.NEED,
        says=says,
        unmet=why,
        unmet_verdict=verdict,
        unmet_cause=cause,
        next_step=next_step,
    )
