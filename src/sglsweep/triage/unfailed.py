"""A log without a failure: it serves, it was ended, it went silent, or it just stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import Diagnosis
from sglsweep.triage.record import pieces
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.triage.ending import Ending
    from sglsweep.triage.reading import Reading

MAX_EVIDENCE = 2000
_SHELL_SIGNALS = 128
_WORDLESS_DEATHS = {-9, -6, -11}
_STATUSES = {
    2: (
        Verdict.BAD_CONFIG,
        "argparse-exit",
        "Exit status 2 is a refused argument; its text is missing in this log.",
    ),
    -2: (Verdict.KILLED, "killed-sigint", "It was interrupted before it was ready."),
    -6: (
        Verdict.CRASH,
        "native-abort",
        "A process aborted without a word; run it with a core dump or PYTHONFAULTHANDLER=1.",
    ),
    -9: (
        Verdict.KILLED,
        "killed-sigkill",
        "Nothing in the log says why: look at `dmesg -T | grep -i oom` and who else may kill it.",
    ),
    -11: (
        Verdict.CRASH,
        "segfault",
        "A native crash without a word; run it with PYTHONFAULTHANDLER=1 or a core dump.",
    ),
    -15: (
        Verdict.KILLED,
        "killed-sigterm",
        "Something outside ended the server before it was ready; look at who sent SIGTERM.",
    ),
}
_UNNAMED = "The log names no error; look at the output before it was redirected, and at dmesg."


def conclude(reading: Reading, ending: Ending) -> Diagnosis:
    """Return what a log without a failure amounts to."""
    phase, status = reading.progress.phase, _status(ending)
    if _serves(reading):
        if status in _WORDLESS_DEATHS and not reading.stop_line:
            return _by_status(status, phase)
        return _serving(reading, phase)
    if reading.stop_line:
        return _stopped(reading, phase)
    if hang := _silence(reading, ending, phase):
        return hang
    if status:
        return _by_status(status, phase)
    return _unfinished(reading, phase)


def _serves(reading: Reading) -> bool:
    """Ready without an excuse, or requests that were handled."""
    progress = reading.progress
    if progress.ready_line and not reading.skips_warmup:
        return True
    if progress.has_answer and (progress.first_prefill or progress.first_decode):
        return True
    return bool(progress.first_decode)


def _serving(reading: Reading, phase: Phase) -> Diagnosis:
    progress = reading.progress
    decode = pieces(0, reading.numbers.last_decode)
    shown = decode[-1].text if decode and progress.last_decode else ""
    return Diagnosis(
        verdict=Verdict.SERVING,
        phase=phase,
        cause="serving",
        line=progress.ready_line or progress.last_decode or progress.last_request,
        evidence="The server is fired up and ready to roll!" if progress.ready_line else shown,
        confidence="high" if progress.ready_line and progress.has_answer else "medium",
        next_step="Probe it: two prompts at once, a prompt twice, a long prompt, "
        "more than 40 decode steps, temperature above 0.",
    )


def _stopped(reading: Reading, phase: Phase) -> Diagnosis:
    verdict, cause, step = _STATUSES[-15]
    return Diagnosis(
        verdict=verdict,
        phase=phase,
        cause=cause,
        line=reading.stop_line,
        evidence="SIGTERM received",
        confidence="medium",
        next_step=step,
    )


def _unfinished(reading: Reading, phase: Phase) -> Diagnosis:
    progress = reading.progress
    if progress.captured:
        return Diagnosis(
            verdict=Verdict.GRAPH_CAPTURE_OK,
            phase=phase,
            cause="graph-capture-ok",
            line=progress.first.get(Phase.GRAPH_CAPTURE_DONE),
            next_step="Graphs are captured; a decode has still to prove the launch.",
        )
    return Diagnosis(
        verdict=Verdict.INCOMPLETE,
        phase=phase,
        cause=None,
        confidence="medium",
        next_step="The log ends early without a failure; "
        "give the whole log, --exit-status or --silence-s.",
    )


def _status(ending: Ending) -> int | None:
    """Return the exit status, a shell's 128+N as the signal it stands for."""
    status = ending.exit_status
    if status is not None and status > _SHELL_SIGNALS:
        return _SHELL_SIGNALS - status
    return status


def _by_status(status: int, phase: Phase) -> Diagnosis:
    """Say what an exit status alone tells about a log without a failure."""
    verdict, cause, step = _STATUSES.get(status, (Verdict.CRASH, "exit-status", _UNNAMED))
    return Diagnosis(
        verdict=verdict,
        phase=phase,
        cause=cause,
        evidence=f"exit status {status}",
        confidence="low",
        next_step=step,
    )


def _silence(reading: Reading, ending: Ending, phase: Phase) -> Diagnosis | None:
    """Return a hang where the log was silent for longer than its phase may be.

    A node above 0 prints no ready line: its silence means nothing.
    """
    silence = ending.silence_s
    if silence is None or reading.progress.is_other_node:
        return None
    from sglsweep.catalogue.limits import quiet_s  # noqa: PLC0415 - only silence needs its YAML

    limit = quiet_s(phase, is_compiling=reading.is_compiling)
    if limit is None or silence < limit:
        return None
    pending = reading.pending.strip()
    line = reading.lines + bool(pending)
    return Diagnosis(
        verdict=Verdict.HANG,
        phase=phase,
        cause=f"silent-{phase.value}",
        line=line or None,
        evidence=_last_state(pending or reading.last_raw),
        confidence="medium",
        next_step=f"Silent for {silence:g} s in {phase.value}, where {limit:g} s is the limit: "
        "look at `py-spy dump`, GPU power (100 % at low power is NCCL waiting) and disk reads.",
    )


def _last_state(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    return text.rsplit("\r", 1)[-1].strip()[-MAX_EVIDENCE:]
