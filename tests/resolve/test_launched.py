"""A launch's own arguments against another launch's, and against what was foreseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.attempt import Attempt, Diagnosis, End, EndKind, Outcome
from sglsweep.equal import equal_outcome
from sglsweep.expand.asked import Resolved, State
from sglsweep.expand.resolved import launched_otherwise
from sglsweep.matrix import Cell
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar

PRINTED: dict[str, Scalar] = {
    "attention_backend": "nsa",
    "kv_cache_dtype": "fp8_e4m3",
    "port": 30000,
    "random_seed": 7,
    "api_key": None,
}
KNOWN: dict[str, Scalar] = {
    "attention-backend": "nsa",
    "kv-cache-dtype": "fp8_e4m3",
    "port": 30001,
}


def _attempt(number: int, launch_key: str, **env: str) -> Attempt:
    return Attempt(
        number=number,
        cell=Cell({"n": number}),
        build="main",
        model="m",
        python="python3",
        argv=("-m", "sglang.launch_server"),
        env=env,
        launch_key=launch_key,
        host="local",
        port=30000,
        why="because",
        started_at="2026-11-29T10:00:00Z",
        keeper_dir="/home/me/.sglsweep/runs/x/0001",
    )


def _finished(
    effective: Mapping[str, Scalar],
    verdict: Verdict = Verdict.SERVING,
    cause: str | None = None,
    **env: str,
) -> Outcome:
    return Outcome(
        attempt=_attempt(1, "one", **env),
        end=End(kind=EndKind.EXITED),
        diagnosis=Diagnosis(
            verdict=verdict, phase=Phase.DECODE, cause=cause, effective=dict(effective)
        ),
    )


def test_an_attempt_with_a_finished_ones_arguments_is_known_as_its_equal() -> None:
    twin = equal_outcome(_attempt(2, "two"), PRINTED, [_finished(KNOWN)])
    assert twin is not None
    assert twin.attempt.number == 1


@pytest.mark.parametrize(
    "other",
    [
        _finished({**KNOWN, "attention-backend": "triton"}),
        _finished({"attention-backend": "nsa"}),
        _finished({}),
        _finished(KNOWN, Verdict.HOST_LOST),
        _finished(KNOWN, Verdict.KILLED),
        _finished(KNOWN, Verdict.ENV_ERROR, "dist-port-in-use"),
        _finished(KNOWN, Verdict.OOM, "oom-gpu-held"),
        _finished(KNOWN, SGLANG_X="1"),
    ],
    ids=[
        "another value",
        "an argument is missing",
        "nothing known",
        "no evidence",
        "killed from outside",
        "the port was somebody else's",
        "the card was somebody else's",
        "environment",
    ],
)
def test_an_attempt_that_may_come_out_otherwise_is_launched(other: Outcome) -> None:
    assert equal_outcome(_attempt(2, "two"), PRINTED, [other]) is None


def _answer(**effective: object) -> Resolved:
    return Resolved(state=State.RESOLVED, effective=effective)


def test_a_launch_that_resolves_otherwise_is_found() -> None:
    answer = _answer(attention_backend="nsa", kv_cache_dtype="bfloat16")
    found = launched_otherwise(answer, {"attention-backend": "triton", "kv-cache-dtype": "bf16"})
    assert found == {"attention-backend": ("nsa", "triton")}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Resolved(state=State.UNKNOWN),
        _answer(
            attention_backend="auto", port=1, random_seed=2, model_path="/cache/m", hooks=["a"]
        ),
    ],
    ids=["never asked", "not known", "only what may differ"],
)
def test_what_was_not_foreseen_is_no_difference(answer: Resolved | None) -> None:
    launched: dict[str, Scalar] = {
        "attention-backend": "triton",
        "port": 30000,
        "random-seed": 7,
        "model-path": "m",
        "hooks": "['a']",
    }
    assert launched_otherwise(answer, launched) == {}
