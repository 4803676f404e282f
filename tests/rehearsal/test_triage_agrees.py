"""What a world decides can be read off the stand-in's log: triage comes to the same verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.launching import READY, launched, world_file
from sglsweep.catalogue import load
from sglsweep.rehearsal.failures import failures
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.ending import Ending
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from pathlib import Path

    from rehearsal.launching import Standin
    from sglsweep.attempt import Diagnosis
    from sglsweep.rehearsal.failures import Failure

# What a log alone cannot say: silence needs a watcher, degenerate answers need the proof.
_UNSEEN = {"garbage", "hang"}
CASES = [
    pytest.param(failure, phase, version, id=f"{failure.cause[0]}-{phase}-{version}")
    for failure in failures()
    for phase, version in ((failure.phases[0], "0.5.9"), (failure.phases[-1], "0.5.23"))
    if failure.kind not in _UNSEEN
]


KNOWN = set(load().signatures)


def provoke(standin: Standin, failure: Failure) -> None:
    """Send what sets a failure off: requests of every kind."""
    standin.await_line(READY)
    for ids, temperature, tokens in (
        (range(80), 0.0, 4),
        (range(80), 1.0, 60),
        (range(9000), 0.0, 4),
    ):
        if not standin.generate(ids, temperature=temperature, tokens=tokens):
            return
    batch = {"input_ids": [list(range(9))] * 8, "sampling_params": {"max_new_tokens": 8}}
    standin.ask("/generate", batch)
    assert failure.kind == "garbage" or standin.await_end() is not None


def diagnosed(standin: Standin) -> Diagnosis:
    status = standin.await_end()
    return diagnose(standin.log_file.read_bytes(), load(), ending=Ending(exit_status=status))


@pytest.mark.parametrize(("failure", "phase", "version"), CASES)
def test_triage_comes_to_what_the_world_decided(
    tmp_path: Path, failure: Failure, phase: str, version: str
) -> None:
    world = world_file(
        tmp_path,
        "axes: {attention-backend: [null, triton]}\n"
        "rules:\n"
        "  - when: {attention-backend: triton}\n"
        f"    verdict: {failure.verdict}\n"
        f"    cause: {failure.cause[0]}\n"
        f"    phase: {phase}\n"
        f'rehearsal: {{sglang-version: "{version}"}}\n',
    )
    flags = ("--attention-backend", "triton", "--time-scale", "0.003")
    with launched(tmp_path, *flags, world=world) as standin:
        if Phase(phase) in {Phase.READY, Phase.DECODE}:
            provoke(standin, failure)
        found = diagnosed(standin)
    assert found.verdict == failure.verdict, found.evidence
    if failure.kind != "stranger":  # a taken port has no phase of its own
        assert found.phase == phase
    if failure.cause[0] in KNOWN:
        assert found.cause == failure.cause[0]


def test_a_healthy_launch_is_diagnosed_as_serving(tmp_path: Path) -> None:
    for version in ("0.5.9", "0.5.23"):
        flags = ("--kv-cache-dtype", "bf16", "--mem-fraction-static", "0.88")
        words = (*flags, "--sglang-version", version, "--attention-backend", "flashinfer")
        with launched(tmp_path, *words, ranks=8) as standin:
            standin.await_line(READY)
            standin.generate(range(50), temperature=1.0, tokens=50)
            found = diagnose(standin.log_file.read_bytes(), load())
            assert (found.verdict, found.phase) == ("serving", "decode")
            assert found.sglang_version in {None, version}
