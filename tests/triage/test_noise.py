"""Lines that look bad and are not, suspects, and what only says that another process died."""

from __future__ import annotations

import pytest

from sglsweep import catalogue
from sglsweep.catalogue import Role, Signature
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.follow import Follower
from sglsweep.verdict import Verdict

KNOWN = catalogue.load()
START = "[2026-02-10 10:01:00 TP0] Load weight begin. avail mem=90.00 GB"
READY = "[2026-02-10 10:02:00] The server is fired up and ready to roll!"
ANSWER = '[2026-02-10 10:02:05] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK'
CAUSE = (
    "[2026-02-10 10:01:30 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/s/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total"
)


def of_role(*roles: Role) -> list[Signature]:
    return [s for s in KNOWN.signatures.values() if s.role in roles]


@pytest.mark.parametrize("entry", of_role(Role.HARMLESS, Role.ADVICE), ids=lambda s: s.id)
def test_healthy_launch_with_a_scary_line_serves(entry: Signature) -> None:
    for sample in entry.samples:
        for line in (f"[2026-02-10 10:01:10 TP0] {sample}", sample):
            log = "\n".join([START, line, READY, ANSWER, line, ""]).encode()
            follower = Follower(KNOWN)
            follower.feed(log)
            assert follower.terminal is None, line
            assert diagnose(log, KNOWN).verdict is Verdict.SERVING, line


@pytest.mark.parametrize("entry", of_role(Role.ADVICE), ids=lambda s: s.id)
def test_suspect_is_told_beside_a_failure(entry: Signature) -> None:
    log = "\n".join([START, *entry.samples, CAUSE, ""]).encode()
    said = diagnose(log, KNOWN)
    assert said.verdict is Verdict.OOM
    (suspect,) = [s for s in said.suspects if s.id == entry.id]
    assert suspect.line == 2


@pytest.mark.parametrize("entry", of_role(Role.CASCADE), ids=lambda s: s.id)
def test_cascade_never_wins_over_the_cause(entry: Signature) -> None:
    for sample in entry.samples:
        head = "Traceback (most recent call last):\n" if entry.site == "exception" else ""
        other = f"[2026-02-10 10:01:31 TP5] worker: {head}{sample}" if head else sample
        for parts in ([START, CAUSE, other], [START, other, CAUSE]):
            said = diagnose("\n".join([*parts, ""]).encode(), KNOWN)
            assert (said.verdict, said.rank) == (Verdict.OOM, "TP2"), sample


@pytest.mark.parametrize("entry", of_role(Role.CASCADE), ids=lambda s: s.id)
def test_cascade_alone_still_says_that_it_failed(entry: Signature) -> None:
    for sample in entry.samples:
        head = ["Traceback (most recent call last):"] if entry.site == "exception" else []
        said = diagnose("\n".join([START, *head, sample, ""]).encode(), KNOWN)
        assert said.verdict is entry.verdict, sample
        narrower = {s.id for s in KNOWN.signatures.values() if entry.id in s.refines}
        assert said.cause in {entry.id} | narrower
        assert said.confidence == "low"
