"""No answer, or one that is not the model's: dead, late, refused. The same for every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, StepState
from sglsweep.probe import steps
from sglsweep.probe.reading import generation
from sglsweep.probe.steps import failed, suspect
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.keeper_files import HttpResponse, Listener
    from sglsweep.probe.steps import ProofStepPlan
    from sglsweep.probe.target import Target

OK = 200
_CLIENT_REFUSED = {401, 403}
_SERVER_ERROR, _UNAVAILABLE = 500, 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known beside the answers, at the moment they came.

    Attributes:
        listener: who holds the port; None where nobody could tell.
        server_alive: the server's parent still lives.
        log_is_fatal: the log got a terminal line while this step was asked.
        elapsed_s: how long the whole step took.
    """

    target: Target
    listener: Listener | None = None
    server_alive: bool = True
    log_is_fatal: bool = False
    elapsed_s: float = 0.0


def refused(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep | None:
    """Judge what is the same for every step; None if there are answers to look at."""
    return (
        _not_ours(step, context)
        or _died(step, responses, context)
        or _timed_out(step, responses)
        or _server_error(step, responses)
        or _client_error(step, responses)
    )


def _not_ours(step: ProofStepPlan, context: Context) -> ProofStep | None:
    holder = context.listener
    # Nobody on the port is a server that died: the answers or the log tell.
    if holder is None or holder.is_ours:
        return None
    who = f"pid {holder.pid} ({holder.title or 'unknown'})" if holder.pid else "another user"
    return failed(
        step,
        f"the port belongs to {who}, not to this attempt",
        verdict=Verdict.ENV_ERROR,
        cause="port-in-use",
        next_step="Stop that process, or choose another port.",
    )


def _died(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep | None:
    if context.log_is_fatal:
        return failed(step, f"died in {step.says}: see the log", verdict=None)
    dead = next((r for r in responses if r.error not in {None, "timeout"}), None)
    if dead is not None:
        said = dead.error or "no answer"
        return failed(step, f"died in {step.says}: {said}", verdict=None, evidence=said)
    if len(responses) < len(step.requests):
        missing = len(step.requests) - len(responses)
        return failed(
            step,
            f"died in {step.says}: {missing} of {len(step.requests)} requests have no answer",
            verdict=None,
        )
    if not context.server_alive:
        return failed(step, f"died in {step.says}", verdict=None)
    return None


def _timed_out(step: ProofStepPlan, responses: Sequence[HttpResponse]) -> ProofStep | None:
    late = [r for r in responses if r.error == "timeout"]
    if not late:
        return None
    whose = "no answer" if len(responses) == 1 else f"{len(late)} of {len(responses)} not answered"
    waited = max(r.elapsed_s for r in late)
    return failed(
        step,
        f"hung in {step.says}: {whose} within {waited:.0f} s",
        verdict=Verdict.HANG,
        next_step="Look where the ranks stand (py-spy dump of the schedulers) before it is"
        " stopped; then change the backend that this step exercises.",
    )


def error_status(response: HttpResponse) -> int:
    """Return the status, also of a refusal that came inside a 200 (streams, aborts)."""
    if response.status != OK:
        return response.status or 0
    answer = generation(response) if '"abort"' in response.body or _is_error(response) else None
    if answer is None or answer.finish != "abort":
        return OK
    return answer.complaint_status or _SERVER_ERROR


def _is_error(response: HttpResponse) -> bool:
    return '"error"' in response.body


def words(response: HttpResponse) -> str:
    """Return what the server said with its refusal, on one line."""
    answer = generation(response)
    said = answer.complaint if answer is not None and answer.complaint else response.body
    return " ".join(said.split())[:300]


def _is_queue_full(response: HttpResponse) -> bool:
    """A full queue is the probe asking too much (`max-queued-requests`), not a fault."""
    return error_status(response) == _UNAVAILABLE and "queue is full" in response.body


def _server_error(step: ProofStepPlan, responses: Sequence[HttpResponse]) -> ProofStep | None:
    bad = next(
        (r for r in responses if error_status(r) >= _SERVER_ERROR and not _is_queue_full(r)),
        None,
    )
    if bad is None:
        return None
    if step.name == steps.SERVER_INFO:
        # A value that the endpoint cannot write as JSON says nothing about the model.
        return suspect(step, f"HTTP {error_status(bad)}", words(bad))
    return failed(
        step,
        f"HTTP {error_status(bad)} in {step.says}",
        verdict=Verdict.CRASH,
        evidence=words(bad),
        next_step="Read the traceback in the server's log; relaunch with --explain for its"
        " true place.",
    )


def _client_error(step: ProofStepPlan, responses: Sequence[HttpResponse]) -> ProofStep | None:
    turned_away = [r for r in responses if error_status(r) != OK]
    if step.name == steps.REQUESTS:
        return None
    if not turned_away or len(turned_away) < len(responses):
        return None
    status, why = error_status(turned_away[0]), words(turned_away[0])
    said = f"the server refused the probe: HTTP {status}: {why}"
    if status in _CLIENT_REFUSED:
        said = f"HTTP {status}: the server wants its API key"
    state = StepState.NOT_RUN if step.name in steps.CORE else StepState.NOT_APPLICABLE
    return ProofStep(name=step.name, state=state, detail=said, evidence=why)
