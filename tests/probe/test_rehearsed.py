"""Every kind of failure that waits for its question is found at that question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from probe.asker import Asker
from rehearsal.launching import READY, launched, world_file
from sglsweep.attempt import StepState
from sglsweep.keeper_files import Listener
from sglsweep.probe.proof import Asked, from_launch, prove
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.probe.proof import ProofStepPlan

WORLD = """
axes: {{attention-backend: [flashinfer, triton]}}
rules:
  - when: {{attention-backend: triton}}
    verdict: {verdict}
    cause: {cause}
    phase: decode
    blames: []
    at: {at}
"""


@pytest.mark.parametrize(
    ("at", "step"),
    [
        ("first", "greedy"),
        ("sampled", "sampled"),
        ("two", "two-at-once"),
        ("prefix", "prefix-hit"),
        ("steps", "long-decode"),
        ("long", "chunked-prefill"),
        ("logprobs", "logprobs"),
        ("streamed", "streaming"),
        ("chat", "chat"),
        ("tools", "tools"),
        ("context", "long-context"),
        ("load", "load"),
        ("batch", "batch"),
    ],
)
def test_a_server_dies_at_the_question_it_cannot_bear(at: str, step: str, tmp_path: Path) -> None:
    world = world_file(
        tmp_path, WORLD.format(verdict="kernel-unsupported", cause="unsupported-arch", at=at)
    )
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line(READY)
        target = from_launch({"tool_call_parser": "glm45"})
        proof = prove(target, Asker(standin.port)).proof
    assert proof.first_failure is not None, proof
    assert (proof.first_failure.name, proof.first_failure.verdict) == (step, None)


def test_a_server_that_says_token_0_for_ever_is_garbage(tmp_path: Path) -> None:
    world = world_file(
        tmp_path, WORLD.format(verdict="garbage-output", cause="token-collapse", at="first")
    )
    with launched(tmp_path, "--attention-backend", "triton", world=world) as standin:
        standin.await_line(READY)
        failed = prove(from_launch({}), Asker(standin.port)).proof.first_failure
    assert failed is not None
    assert (failed.name, failed.verdict) == ("sampled", Verdict.GARBAGE_OUTPUT)


def test_a_server_without_a_fault_is_proven(tmp_path: Path) -> None:
    world = world_file(tmp_path, WORLD.format(verdict="crash", cause="unknown", at="first"))
    with launched(tmp_path, "--attention-backend", "flashinfer", world=world) as standin:
        standin.await_line(READY)
        proof = prove(from_launch({}), Asker(standin.port)).proof
    assert proof.holds, proof


def test_a_server_that_cannot_say_how_it_is_configured_is_suspect_there_and_serves(
    tmp_path: Path,
) -> None:
    world = world_file(tmp_path, WORLD.format(verdict="crash", cause="unknown", at="first"))
    with launched(
        tmp_path,
        "--attention-backend",
        "flashinfer",
        "--mischief",
        "broken-server-info",
        world=world,
    ) as standin:
        standin.await_line(READY)
        proof = prove(from_launch({}), Asker(standin.port)).proof
    states = {s.name: s.state for s in proof.steps}
    assert states["server-info"] is StepState.SUSPECT
    assert proof.holds


def test_the_answer_of_somebody_else_fails_at_the_first_step(tmp_path: Path) -> None:
    world = world_file(tmp_path, WORLD.format(verdict="crash", cause="unknown", at="first"))
    with launched(tmp_path, "--attention-backend", "flashinfer", world=world) as standin:
        standin.await_line(READY)
        stranger = Listener(pid=1, is_ours=False, address="127.0.0.1", title="nginx")
        asker = Asker(standin.port)

        def ask(step: ProofStepPlan) -> Asked:
            return replace(asker(step), listener=stranger)

        failed = prove(from_launch({}), ask).proof.first_failure
    assert failed is not None
    assert (failed.name, failed.cause) == ("answers", "port-in-use")
