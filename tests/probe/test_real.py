"""The proof against real SGLang on this machine's CPU."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from models import make_gpt2
from probe.asker import Asker
from real_python import real_python
from sglsweep import catalogue
from sglsweep.attempt import End, Ladder, ProofStep, StepState
from sglsweep.catalogue import limits
from sglsweep.probe.ladder import Climb
from sglsweep.probe.proof import Context, ProbeSettings, Session, from_launch, judge, prove
from sglsweep.probe.requests import generate, ids
from sglsweep.probe.steps import asking
from sglsweep.probe.target import Target, Traffic
from sglsweep.triage.follow import Follower
from sglsweep.verdict import Verdict
from sglsweep.watch import ReadyForProof, Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

CONFIG = {"vocab_size": 512, "bos_token_id": 0, "eos_token_id": 2}


@pytest.fixture(scope="session")
def sglang() -> Path:
    return real_python()


@contextmanager
def serving(python: Path, folder: Path, mode: str, *flags: str) -> Iterator[int]:
    """Launch a tiny model and watch it, as a sweep does, until it is ready for the proof."""
    model = make_gpt2(python, folder / mode, mode)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [python, "-m", "sglang.launch_server", "--model-path", model, "--device", "cpu"]
    argv += ["--port", port, "--max-total-tokens", 8192, "--chunked-prefill-size", 512]
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [str(word) for word in (*argv, "--sleep-on-idle", *flags)],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        wait_until_ready(server, log)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    follower, offset = Follower(catalogue.load()), 0
    watcher = Watcher(limits.load(), started_at=time.monotonic())
    while True:
        status = server.poll()
        chunk = log.read_bytes()[offset:]
        follower.feed(chunk)
        offset += len(chunk)
        seen = watcher.observe(
            time.monotonic(), follower, None, server_alive=status is None, exit_status=status
        )
        assert not isinstance(seen, End), seen
        if isinstance(seen, ReadyForProof):
            return
        time.sleep(0.2)


def proven(port: int, *, has_random_weights: bool = False) -> Session:
    settings = ProbeSettings(has_random_weights=has_random_weights)
    return prove(from_launch({}, CONFIG, settings=settings), Asker(port))


def climbed(port: int, target: Target) -> Ladder:
    climb = Climb(target, Traffic(input=24, output=16, rungs=(1, 4), slo={"e2e_p90": 600.0}))
    asker = Asker(port)
    while (step := climb.next()) is not None:
        climb.judge(step, asker(step))
    assert climb.broke is None, climb.broke
    return climb.ladder


def overflowed(port: int) -> tuple[ProofStep, ProofStep]:
    """Ask for more than the context holds, then for a little: a refusal is no crash."""
    boasted = Target(context=100_000, vocab=512, special_ids=frozenset({0, 2}))
    asker = Asker(port)
    steps = []
    for count in (3000, 20):
        request = generate(boasted, "x", ids(boasted, count, seed=count), tokens=8)
        step = asking("long-context", f"a prompt of {count} tokens", request, tokens=8)
        asked = asker(step)
        steps.append(judge(step, asked.responses, Context(target=boasted)))
    return steps[0], steps[1]


def test_a_healthy_server_is_proven_and_climbs_its_ladder(sglang: Path, tmp_path: Path) -> None:
    with serving(sglang, tmp_path, "ok") as port:
        session = proven(port)
        refusal, after = overflowed(port)
        ladder = climbed(port, session.target)
    assert refusal.state is StepState.NOT_APPLICABLE, refusal
    assert "longer than the model's context length" in refusal.detail
    assert after.state is StepState.OK
    assert [r.concurrency for r in ladder.rungs] == [1, 4]
    for rung in ladder.rungs:
        assert rung.meets_slo
        assert rung.tokens_per_s > 0
        assert {"ttft_p99_s", "tpot_p50_s", "e2e_p90_s"} <= set(rung.numbers)
    states = {s.name: s.state for s in session.proof.steps}
    assert session.proof.holds, session.proof
    for name in ("sampled", "two-at-once", "prefix-hit", "chunked-prefill", "load", "batch"):
        assert states[name] is StepState.OK, [s for s in session.proof.steps if s.name == name]
    assert session.proof.tokens_per_s
    assert session.server_info["max_total_num_tokens"] == 8192


def test_a_model_of_nans_is_healthy_to_curl_and_garbage_to_the_proof(
    sglang: Path, tmp_path: Path
) -> None:
    with serving(sglang, tmp_path, "nan") as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as health:
            assert health.status == 200
        proofs = [proven(port, has_random_weights=known).proof for known in (False, True)]
    for proof in proofs:
        assert proof.first_failure is not None
        assert proof.first_failure.verdict is Verdict.GARBAGE_OUTPUT
        assert proof.first_failure.name == "sampled"
        assert "token id 0 in all of 34 tokens" in proof.first_failure.detail


def test_weights_that_were_never_loaded_are_known_as_such(sglang: Path, tmp_path: Path) -> None:
    with serving(sglang, tmp_path, "ok", "--load-format", "dummy") as port:
        session = proven(port)
    assert session.target.has_random_weights
    assert session.proof.holds, session.proof
