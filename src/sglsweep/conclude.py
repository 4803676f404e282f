"""What an attempt came to: the log's diagnosis, how the wait ended, and the proof, as one answer.

A log alone cannot say that a server serves, that it hangs, or that we stopped it ourselves.
What the log does say of a failure comes first: it is nearer to the cause than any time-out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from sglsweep.attempt import (
    BESIDE_OTHERS,
    WITHOUT_TOKENS,
    Diagnosis,
    End,
    EndKind,
    Proof,
    ProofStep,
    StepState,
    Suspect,
)
from sglsweep.triage.ending import Ending
from sglsweep.verdict import Milestone, MilestoneState, Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar
    from sglsweep.matrix import Value

_NO_FAILURE = {Verdict.SERVING, Verdict.GRAPH_CAPTURE_OK, Verdict.INCOMPLETE}
_OUR_DOING = {EndKind.INTERRUPTED, EndKind.DEADLINE, EndKind.HOST_LOST}


def ending_of(end: End) -> Ending:
    """Return what the triage of the log may know of the end.

    An exit status counts only where the server ended by itself: after our own stop it says
    nothing but that we stopped it.
    """
    is_own = end.kind in {EndKind.EXITED, EndKind.FATAL_LINE}
    return Ending(
        exit_status=end.exit_status if is_own else None,
        silence_s=end.silence_s if end.kind is EndKind.SILENCE else None,
    )


def conclude(
    diagnosis: Diagnosis, end: End, proof: Proof | None = None, *, equal: Diagnosis | None = None
) -> Diagnosis:
    """Return the final diagnosis.

    Args:
        diagnosis: of the log up to `end.stop_offset`, made with `ending_of(end)`.
        end: how the wait ended.
        proof: as far as it got; None if it was not begun.
        equal: for `EndKind.EQUAL`, the diagnosis of the attempt that this one equals.
    """
    final = _by_the_first_gone(_verdict(diagnosis, end, proof, equal), end)
    final = _by_the_kernel(final, end)
    final = _by_neighbours(final, end, proof)
    final = _by_the_port(_by_the_holder(final, end), end)
    return final if proof is None else _with_proof(final, proof)


RANK_GONE = "rank-gone"
LATE = "deadline"
"""Cause of an attempt whose deadline on the host passed: no answer about its cell."""
_ONLY_A_CASCADE = frozenset(
    {"gloo-peer-closed", "nccl-peer-closed", "child-failed", "scheduler-is-dead"}
    | {"child-exit-code", "child-unexpected-exit", "parent-lost-child", "crash-dump"}
)
"""Causes that only say that another process died."""


def _by_the_first_gone(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Name the rank that vanished where the log holds nothing but the others' lost connections."""
    if not end.first_gone or diagnosis.cause not in _ONLY_A_CASCADE:
        return _with_its_rank(diagnosis, end)
    rank = end.first_gone
    return replace(
        diagnosis,
        verdict=Verdict.KILLED,
        cause=RANK_GONE,
        rank=rank,
        blames=(),
        next_step=f"{rank}'s process was gone first, without a word in the log: ended from "
        "outside (the host's OOM killer: `dmesg -T | grep -i -E 'oom|killed process'`, a job "
        f"limit, somebody's kill -9). What {diagnosis.rank or 'the others'} printed came of it.",
        confidence="medium",
    )


_OF_A_RANK = frozenset(
    {Verdict.NAN_IN_PROBS, Verdict.DEVICE_ASSERT, Verdict.CUDA_FAULT, Verdict.KILLED}
)
"""What a kernel or the parent prints about one rank, without its name in front."""


def _with_its_rank(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Name the rank that was gone first where the log's own line names none."""
    is_told = diagnosis.rank is not None or diagnosis.line is None
    if is_told or not end.first_gone or diagnosis.verdict not in _OF_A_RANK:
        return diagnosis
    return replace(diagnosis, rank=end.first_gone)


def _by_the_kernel(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Name the kernel's OOM killer where the host counted one of its kills meanwhile."""
    of_a_kill = {"killed-sigkill", "killed-scheduler", RANK_GONE}
    if diagnosis.cause not in of_a_kill or not end.oom_kills:
        return diagnosis
    kills = "1 process" if end.oom_kills == 1 else f"{end.oom_kills} processes"
    return replace(
        diagnosis,
        cause="killed-host-oom",
        next_step=f"The kernel's OOM killer ended {kills} meanwhile: the host ran out of RAM, not "
        "the GPU. Load with less of it (fewer loader threads, no --cpu-offload-gb, a smaller "
        "HiCache), or give the container more.",
    )


_HELD_LEAST_MIB = 2048
"""A driver, a desktop and an idle context take less before a server starts."""


def _by_the_holder(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Name who had the GPU's memory before a server that ran out of it: no flag is to blame.

    SGLang sees only what is left, and advises to raise `mem-fraction-static`.
    """
    held = max(end.gpu_before_mib, default=0)
    if diagnosis.verdict is not Verdict.OOM or held < _HELD_LEAST_MIB:
        return diagnosis
    place = end.gpu_before_mib.index(held)
    card = end.gpu_cards[place] if end.gpu_cards else place
    whose = "; ".join(end.gpu_holders[:3]) or "processes that the host does not show"
    return replace(
        diagnosis,
        cause="oom-gpu-held",
        blames=(),
        remedy={},
        suspects=(*diagnosis.suspects, Suspect(diagnosis.cause or "oom", 0, diagnosis.next_step)),
        next_step=f"{held:,} MiB of card {card} were in use before this server started, by "
        f"{whose}. End that, then launch the cell again; the advice in the log only sees what "
        "was left.",
    )


def _by_the_port(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Say who has the port that the server could not get."""
    if diagnosis.cause != "port-in-use" or not end.port_holder:
        return diagnosis
    told = f"{end.port_holder} listens on it"
    return replace(diagnosis, next_step=_sentence(told, diagnosis.next_step))


_OF_THE_HOST = {
    "oom-host": "the host's memory",
    "killed-host-oom": "the host's memory",
    "shared-memory-too-small": "the host's shared memory",
    "process-limit": "processes of the same user",
    "port-in-use": "ports of the same host",
}
_OF_THE_CARD = {
    "unbalanced-gpu-memory": "memory of the same GPU",
    "gpu-not-available": "the same GPU",
    "gpu-hardware-fault": "the same GPU",
    "gpu-device-lost": "the same GPU",
    "cuda-unknown-error": "the same GPU",
    "xid": "the same GPU",
}


def _by_neighbours(diagnosis: Diagnosis, end: End, proof: Proof | None) -> Diagnosis:
    """Take back a verdict that attempts beside this one may have caused.

    It is no evidence about the cell: it has to be launched again, alone.
    """
    what, others = _had_by_others(diagnosis, end, proof)
    if not others:
        return _slowed(diagnosis, end)
    said = ", ".join(map(str, others))
    return replace(
        diagnosis,
        verdict=Verdict.INTERRUPTED,
        cause=BESIDE_OTHERS,
        blames=(),
        remedy={},
        next_step=f"{diagnosis.cause or diagnosis.verdict} beside attempt"
        f"{'s' if len(others) > 1 else ''} {said}, which had {what}: no answer about this cell. "
        "The sweep launches it again alone.",
        confidence="high",
    )


def _slowed(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Say of a hang that neighbours may have been why it took so long."""
    if diagnosis.verdict is not Verdict.HANG or not end.beside:
        return diagnosis
    said = f"It ran beside attempts {', '.join(map(str, end.beside))}, which may have slowed it"
    return replace(
        diagnosis,
        next_step=f"{diagnosis.next_step} {said}: `sglsweep relaunch` asks it alone.".strip(),
        confidence="low",
    )


def _had_by_others(
    diagnosis: Diagnosis, end: End, proof: Proof | None
) -> tuple[str, tuple[int, ...]]:
    """Return what this attempt lacked and others of the run had, and which; none, no others."""
    cause = diagnosis.cause or ""
    if cause == "port-in-use" and end.port_holder:
        return "", ()  # each slot has a port of its own: whoever holds it is nobody of the run
    if cause in _OF_THE_HOST:
        return _OF_THE_HOST[cause], end.beside
    if cause in _OF_THE_CARD:
        return _OF_THE_CARD[cause], end.sharing
    failed = proof.first_failure if proof is not None else None
    # A KV pool that holds less than is needed is as small as the neighbours made it.
    is_too_small = failed is not None and failed.name == "need" and diagnosis.line is None
    if is_too_small or diagnosis.verdict is Verdict.OOM:
        return "memory of the same GPU", end.sharing
    return "", ()


def _verdict(
    diagnosis: Diagnosis, end: End, proof: Proof | None, equal: Diagnosis | None
) -> Diagnosis:
    if end.kind is EndKind.EQUAL:
        return _equal(diagnosis, end, equal)
    if _log_tells(diagnosis, end):
        return _under_probe(diagnosis, proof)
    failed = proof.first_failure if proof is not None else None
    # Whoever stops a server under a probe breaks its connection: that is no crash.
    is_our_doing = end.kind in _OUR_DOING and failed is not None and failed.verdict is None
    if failed is not None and not is_our_doing:
        return _proof_failed(diagnosis, failed)
    has_ended_itself = end.kind in {EndKind.EXITED, EndKind.FATAL_LINE}
    if proof is not None and proof.holds and not has_ended_itself:
        return _serving(diagnosis, proof)
    return _by_end(diagnosis, end, proof)


def _log_tells(diagnosis: Diagnosis, end: End) -> bool:
    """Tell whether the log itself names a failure that is not our own doing."""
    if diagnosis.verdict in _NO_FAILURE:
        return False
    if diagnosis.verdict is Verdict.HANG and (diagnosis.cause or "").startswith("silent-"):
        return False
    has_ended_itself = end.kind in {EndKind.EXITED, EndKind.FATAL_LINE}
    is_a_stop = diagnosis.verdict is Verdict.KILLED and (
        diagnosis.line is None or diagnosis.cause in {"killed-sigterm", "killed-sigint"}
    )
    return has_ended_itself or not is_a_stop


def _by_end(  # noqa: C901, PLR0911 - one line for each kind
    diagnosis: Diagnosis, end: End, proof: Proof | None
) -> Diagnosis:
    match end.kind:
        case EndKind.FATAL_LINE:
            return _fatal(diagnosis, end)
        case EndKind.EXITED:
            return _exited(diagnosis, end)
        case EndKind.SILENCE:
            return _hang(diagnosis, f"silent-{diagnosis.phase}", end)
        case EndKind.CAP:
            return _hang(diagnosis, f"too-long-{diagnosis.phase}", end)
        case EndKind.LOG_LIMIT:
            return replace(
                _hang(diagnosis, "log-flood", end),
                next_step="The server prints without end: look at what its last lines repeat.",
            )
        case EndKind.PROVEN | EndKind.PROOF_FAILED:
            return _not_proven(diagnosis, end, proof)
        case EndKind.DEADLINE:
            return _stopped(diagnosis, LATE, "The attempt's time was over", end)
        case EndKind.INTERRUPTED | EndKind.EQUAL:
            return _stopped(diagnosis, "interrupted", "It was interrupted", end)
        case EndKind.HOST_LOST:
            return _host_lost(diagnosis, end)
        case _:
            assert_never(end.kind)


# -- what the proof says -----------------------------------------------------------------------


def _serving(diagnosis: Diagnosis, proof: Proof) -> Diagnosis:
    passed = sum(s.state is StepState.OK for s in proof.steps)
    doubts = [s for s in proof.steps if s.state is StepState.SUSPECT]
    said = f"The proof holds: {passed} of {passed + len(doubts)} steps passed"
    said += f", suspect: {', '.join(s.name for s in doubts)}." if doubts else "."
    return replace(
        diagnosis,
        verdict=Verdict.SERVING,
        cause="serving",
        phase=Phase.DECODE,
        next_step=said,
        confidence="medium" if doubts else "high",
    )


def _under_probe(diagnosis: Diagnosis, proof: Proof | None) -> Diagnosis:
    """Keep the log's diagnosis, and say at which question it happened."""
    failed = proof.first_failure if proof is not None else None
    if failed is None:
        return diagnosis
    return replace(diagnosis, phase=_phase_at(diagnosis.phase, failed))


def _phase_at(phase: Phase, step: ProofStep) -> Phase:
    return phase if step.name in WITHOUT_TOKENS else Phase.DECODE


_STEP_CAUSES = {
    Verdict.GARBAGE_OUTPUT: "proof-garbage",
    Verdict.HANG: "proof-hang",
    Verdict.CRASH: "proof-crash",
}


def _proof_failed(diagnosis: Diagnosis, step: ProofStep) -> Diagnosis:
    verdict = step.verdict or Verdict.CRASH
    cause = step.cause or _STEP_CAUSES.get(verdict, "proof-failed")
    if step.verdict is None:
        cause = "proof-died"
    return replace(
        diagnosis,
        verdict=verdict,
        phase=_phase_at(diagnosis.phase, step),
        cause=cause,
        rank=None,
        line=None,
        evidence=step.evidence or step.detail,
        next_step=_step_advice(step, cause, diagnosis.sglang_version),
        confidence="medium" if step.verdict is None else "high",
    )


def _step_advice(step: ProofStep, cause: str, version: str | None) -> str:
    said = f"{step.detail[:1].upper()}{step.detail[1:]}."
    if cause == "proof-garbage":
        return f"{said} {_nan_advice(version)}"
    if cause == "proof-died":
        return f"{said} The log has no word of it: look at dmesg and at the exit status."
    return f"{said} {step.next_step}".strip()


def _nan_advice(version: str | None) -> str:
    shown = " and ".join(
        f"{name.removeprefix('env.')}={value}" if name.startswith("env.") else f"--{name}"
        for name, value in nan_check(version).items()
    )
    return (
        f"Output like this is most often NaN: launch once more with {shown}, which"
        " names the first place (`probe: {confirm-nan: true}` does it by itself); then change"
        " what computes it (KV dtype, attention, quantised GEMM)."
    )


def nan_check(version: str | None, *, has_flag: bool | None = None) -> Mapping[str, Value]:
    """Return what makes this SGLang say where a NaN comes from; empty where it cannot.

    0.3.6 to 0.5.9 have a flag. 0.5.15 and 0.5.17 have SGLANG_ENABLE_ASYNC_ASSERT in its place, and
    0.5.23 has SGLANG_ENABLE_NAN_LOGITS_CHECK beside it; where the version lies between or is not
    known both are set, since a variable that a build does not know does nothing.

    Args:
        version: as the log or the build says it.
        has_flag: whether the build's own flags hold `enable-nan-detection`; None: not known.
    """
    digits = re.match(r"\d+(\.\d+)*", version or "")
    number = tuple(int(p) for p in digits[0].split(".")) if digits else None
    is_old = number is not None and number < (0, 5, 10)
    if has_flag or (has_flag is None and is_old):
        return {"enable-nan-detection": True}
    if is_old:
        return {}
    newer = {"env.SGLANG_ENABLE_NAN_LOGITS_CHECK": 1}
    if number is not None and number >= (0, 5, 23):
        return newer
    return {"env.SGLANG_ENABLE_ASYNC_ASSERT": 1, **newer}


def _not_proven(diagnosis: Diagnosis, end: End, proof: Proof | None) -> Diagnosis:
    steps = proof.steps if proof is not None else ()
    refused = next((s for s in steps if s.state is StepState.NOT_RUN and s.detail), None)
    odd = [s for s in steps if s.state is StepState.SUSPECT]
    why = f"{refused.name}: {refused.detail}" if refused is not None else end.detail
    if refused is None and odd:
        why = f"most answers are odd ({odd[0].name}: {odd[0].detail})"
    return replace(
        diagnosis,
        verdict=Verdict.INCOMPLETE,
        cause="not-proven",
        line=None,
        evidence=refused.evidence if refused is not None else "",
        next_step=f"Ready, but nothing is proven: {why or 'no step was asked'}."
        + (f" {_nan_advice(diagnosis.sglang_version)}" if refused is None and odd else ""),
        confidence="medium",
    )


def _with_proof(diagnosis: Diagnosis, proof: Proof) -> Diagnosis:
    failed = proof.first_failure
    has_tokens = any(
        s.state in {StepState.OK, StepState.SUSPECT}
        for s in proof.steps
        if s.name not in WITHOUT_TOKENS
    )
    milestones = dict(diagnosis.milestones)
    if has_tokens or (failed is not None and failed.name not in WITHOUT_TOKENS):
        milestones |= dict.fromkeys((Milestone.WARMUP, Milestone.READY), MilestoneState.OK)
        is_broken = failed is not None and failed.name != "need"
        milestones[Milestone.DECODE] = MilestoneState.FAILED if is_broken else MilestoneState.OK
    numbers: dict[str, Scalar] = {}
    for step in proof.steps:
        numbers |= dict(step.numbers) if step.name in {"load", "logprobs"} else {}
    if failed is not None:
        numbers["proof_failed_step"] = failed.name
    return replace(
        diagnosis,
        milestones=milestones,
        metrics={**diagnosis.metrics, **numbers},
        suspects=(
            *diagnosis.suspects,
            *_suspects(proof, is_cause_in_log=diagnosis.line is not None),
        ),
    )


def _suspects(proof: Proof, *, is_cause_in_log: bool) -> list[Suspect]:
    """What the proof found odd; line 0, since none of it stands in the log.

    The failed step is among them where the log names the cause: it says what set it off.
    """
    told = {StepState.SUSPECT, StepState.FAILED} if is_cause_in_log else {StepState.SUSPECT}
    return [
        Suspect(f"proof-{s.name}", 0, f"{s.detail}: {s.evidence}" if s.evidence else s.detail)
        for s in proof.steps
        if s.state in told
    ]


# -- what the server says of itself --------------------------------------------------------------


def with_server_words(diagnosis: Diagnosis, server_info: Mapping[str, object]) -> Diagnosis:
    """Join what the running server says of its arguments to what its log says.

    The log's line is written before the model is loaded; what was changed after it is told. A
    log that hides the line (`log-level: warning`) gets the server's arguments in its place.
    """
    said = {
        name.replace("-", "_"): value
        for name, value in server_info.items()
        if isinstance(value, bool | int | float | str) and name not in _NO_ARGUMENTS
    }
    if not diagnosis.effective:
        return replace(diagnosis, effective=said)
    changed = [
        f"{name}: {value} in the log, {said[own]} on the running server"
        for name, value in diagnosis.effective.items()
        if (own := name.replace("-", "_")) in said and _differs(value, said[own])
    ]
    if not changed:
        return diagnosis
    note = Suspect("server-info-differs", 0, "; ".join(changed))
    return replace(diagnosis, suspects=(*diagnosis.suspects, note))


_NO_ARGUMENTS = frozenset(
    {"status", "version", "rehearsal", "max_total_num_tokens", "max_req_input_len", "frontend"}
    | {"last_gen_throughput", "effective_max_running_requests_per_dp", "world_size"}
)
"""What /server_info holds beside the server's arguments."""


def _differs(logged: Scalar, said: Scalar) -> bool:
    """Compare a value of the log with the server's; one that the log leaves open may be chosen."""
    return logged is not None and logged != said and str(logged) != str(said)


# -- what the end says -------------------------------------------------------------------------


def _fatal(diagnosis: Diagnosis, end: End) -> Diagnosis:
    return replace(
        diagnosis,
        verdict=Verdict.CRASH,
        cause="fatal-line",
        evidence=end.detail,
        next_step="The line that ended the wait is not in the catalogue's final reading: look"
        " at the log around it.",
        confidence="low",
    )


_SIGNALS = {
    2: (Verdict.KILLED, "killed-sigint", "Somebody interrupted it."),
    6: (Verdict.CRASH, "native-abort", "It aborted: run it with PYTHONFAULTHANDLER=1."),
    9: (Verdict.KILLED, "killed-sigkill", "Look at `dmesg -T | grep -i oom`, and who kills it."),
    11: (Verdict.CRASH, "segfault", "A native crash: run it with PYTHONFAULTHANDLER=1."),
    15: (Verdict.KILLED, "killed-sigterm", "Something outside ended it: find out what."),
}


def _exited(diagnosis: Diagnosis, end: End) -> Diagnosis:
    """Judge a server that ended by itself though its log names no failure."""
    status = end.exit_status
    number = _signal(status)
    verdict, cause, advice = _SIGNALS.get(
        number or 0, (Verdict.CRASH, "exit-status", "The log names no error; look at dmesg.")
    )
    if status == 0:
        advice = (
            "A server does not end by itself: as the first process of a container SGLang's"
            " failures end with status 0 too."
        )
    return replace(
        diagnosis,
        verdict=verdict,
        cause=cause,
        line=None,
        evidence="exit status unknown" if status is None else f"exit status {status}",
        next_step=_sentence(end.detail, advice),
        confidence="low",
    )


_SHELL_SIGNALS = 128


def _signal(status: int | None) -> int | None:
    if status is None or 0 <= status <= _SHELL_SIGNALS:
        return None
    return -status if status < 0 else status - _SHELL_SIGNALS


def _hang(diagnosis: Diagnosis, cause: str, end: End) -> Diagnosis:
    """Say hang; the evidence stays the last line that the log has, if it has one."""
    advice = (
        "Look where the ranks stand (`py-spy dump`), at GPU power (100 % used at low power is"
        " ranks waiting for each other) and at disk reads; if it is only slow, raise"
        f" `limits: {{{diagnosis.phase}: ...}}`."
    )
    return replace(
        diagnosis,
        verdict=Verdict.HANG,
        cause=cause,
        evidence=diagnosis.evidence or end.detail,
        next_step=_sentence(end.detail, advice),
        confidence="medium",
    )


def _stopped(diagnosis: Diagnosis, cause: str, why: str, end: End) -> Diagnosis:
    return replace(
        diagnosis,
        verdict=Verdict.INTERRUPTED,
        cause=cause,
        line=None,
        evidence="",
        next_step=_sentence(
            end.detail or why, f"It had come to {diagnosis.phase}; that proves nothing."
        ),
        confidence="high",
    )


def _host_lost(diagnosis: Diagnosis, end: End) -> Diagnosis:
    return replace(
        diagnosis,
        verdict=Verdict.HOST_LOST,
        cause="host-lost",
        line=None,
        evidence=end.detail,
        next_step="See whether the machine is up and the link holds; this cell is still open.",
        confidence="high",
    )


def _equal(diagnosis: Diagnosis, end: End, equal: Diagnosis | None) -> Diagnosis:
    """Give an attempt that SGLang resolved to a finished one that one's answer."""
    which = f"attempt {end.equal_to}" if end.equal_to is not None else "a finished attempt"
    said = f"Resolved to the same configuration as {which}, so it was not seen through."
    if equal is None:
        return replace(
            diagnosis, verdict=Verdict.INCOMPLETE, cause="equal", next_step=said, evidence=""
        )
    return replace(
        equal,
        line=None,
        next_step=f"{said} {equal.next_step}".strip(),
        requested=diagnosis.requested or equal.requested,
        effective=diagnosis.effective or equal.effective,
    )


def _sentence(first: str, then: str) -> str:
    return f"{first[:1].upper()}{first[1:]}. {then}" if first else then
