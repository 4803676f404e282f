"""The steps of the proof: their names, what is asked, and what an answer can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, StepState

if TYPE_CHECKING:
    from sglsweep.keeper_files import HttpRequest
    from sglsweep.verdict import Verdict

ANSWERS, SERVER_INFO, GREEDY, SAMPLED = "answers", "server-info", "greedy", "sampled"
TWO_AT_ONCE, PREFIX_HIT, LONG_DECODE = "two-at-once", "prefix-hit", "long-decode"
CHUNKED_PREFILL, LOGPROBS, STREAMING = "chunked-prefill", "logprobs", "streaming"
CHAT, TOOLS, KNOWN_ANSWERS = "chat", "tools", "known-answers"
BATCH, LONG_CONTEXT, LOAD, NEED = "batch", "long-context", "load", "need"
REQUESTS = "requests"
EMBEDS = "embeds"
QUALITY, LADDER, SOAK = "quality", "ladder", "soak"
"""Asked after the proof, where the sweep wants it; a failure there is a failure of the server."""

CORE = frozenset({ANSWERS, GREEDY, SAMPLED, EMBEDS})
"""Steps without which nothing is proven: refused there means not proven, not "not applicable"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofStepPlan:
    """One question of the proof.

    Attributes:
        says: what is asked, as the end of the sentence "it died in ...".
        requests: to be asked `concurrency` at a time; with 1, one after another in this order.
        timeout_s: for the whole step; each request has its own limit too.
        tokens: output tokens asked of each request; 0 where it is not about that.
        is_sampled: at temperature 1, each request with another prompt.
        not_applicable: why this step is not asked; it then has no requests.
        unmet: why the answer is known to be no; it then has no requests.
        unmet_verdict: what that makes of the attempt.
        unmet_cause: and under which id.
        next_step: what to do if this step fails.
    """

    name: str
    says: str
    requests: tuple[HttpRequest, ...] = ()
    concurrency: int = 1
    timeout_s: float = 60.0
    tokens: int = 0
    is_sampled: bool = False
    not_applicable: str = ""
    unmet: str = ""
    unmet_verdict: Verdict | None = None
    unmet_cause: str | None = None
    next_step: str = ""


def asking(  # noqa: PLR0913 - a step has that many sides, all by name
    name: str,
    says: str,
    *requests: HttpRequest,
    tokens: int = 0,
    concurrency: int = 1,
    is_sampled: bool = False,
    more_s: float = 30.0,
) -> ProofStepPlan:
    """Return a step that asks; it may take as long as its slowest request and `more_s`."""
    return ProofStepPlan(
        name=name,
        says=says,
        requests=requests,
        concurrency=concurrency,
        timeout_s=max(r.timeout_s or 0.0 for r in requests) + more_s,
        tokens=tokens,
        is_sampled=is_sampled,
    )


def skipped(name: str, says: str, why: str) -> ProofStepPlan:
    """Return a step that cannot be asked of this server."""
    return ProofStepPlan(name=name, says=says, not_applicable=why)


def failed(  # noqa: PLR0913 - all by name
    step: ProofStepPlan,
    detail: str,
    *,
    verdict: Verdict | None,
    evidence: str = "",
    cause: str | None = None,
    next_step: str = "",
) -> ProofStep:
    """Return a step whose answer makes `verdict` of the attempt; None: the log must tell."""
    return ProofStep(
        name=step.name,
        state=StepState.FAILED,
        detail=detail,
        verdict=verdict,
        evidence=evidence,
        cause=cause,
        next_step=next_step,
    )


def ok(step: ProofStepPlan, detail: str, numbers: dict[str, float] | None = None) -> ProofStep:
    """Return a step that was answered well."""
    return ProofStep(name=step.name, state=StepState.OK, detail=detail, numbers=numbers or {})


def suspect(step: ProofStepPlan, detail: str, evidence: str = "") -> ProofStep:
    """Return a step whose answer is odd, and no proof of a fault."""
    return ProofStep(name=step.name, state=StepState.SUSPECT, detail=detail, evidence=evidence)
