"""Who ran beside whom, what that makes of a verdict, and what it counts for a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scenes import attempt, outcome
from sglsweep.attempt import (
    BESIDE_OTHERS,
    Attempt,
    Diagnosis,
    End,
    EndKind,
    Outcome,
    Proof,
    ProofStep,
    StepState,
    Timings,
)
from sglsweep.beside import own_signs, with_neighbours
from sglsweep.conclude import conclude
from sglsweep.journal import Journal, RunIdentity
from sglsweep.keeper_files import Life
from sglsweep.plan.spent import spent_s
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDED = End(kind=EndKind.EXITED, exit_status=1)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    identity = RunIdentity(
        name="x", model="m", launch={}, sweep_text="name: x\n", host="local", catalogue="1"
    )
    with Journal.create_or_resume(tmp_path / "run", identity) as made:
        yield made


def at(number: int, clock: str, gpus: tuple[int, ...] | None = None) -> Attempt:
    return replace(attempt(number), started_at=f"2026-02-10T{clock}Z", gpus=gpus)


def over(of: Attempt, clock: str, seconds: float = 60.0, beside: tuple[int, ...] = ()) -> Outcome:
    made = outcome(of)
    timings = Timings(total_s=seconds)
    return replace(
        made,
        ended_at=f"2026-02-10T{clock}Z",
        timings=timings,
        end=replace(made.end, beside=beside),
    )


def test_neighbours_are_those_whose_times_overlap(journal: Journal) -> None:
    before, beside, running, own = (
        at(1, "10:00:00", (0,)),
        at(2, "10:00:10", (1,)),
        at(3, "10:05:00", (0, 1)),
        at(4, "10:01:00", (1,)),
    )
    for one in (before, beside, running, own):
        journal.open(one, {})
    journal.close(over(before, "10:01:00"))
    journal.close(over(beside, "10:04:00"))
    end = with_neighbours(ENDED, journal, own, {})
    assert end.beside == (2, 3)
    assert end.sharing == (2, 3)
    assert with_neighbours(ENDED, journal, at(5, "10:01:00", (7,)), {}).sharing == ()


def test_cards_that_nobody_chose_may_be_the_same(journal: Journal) -> None:
    own, other = at(1, "10:00:00"), at(2, "10:00:00", (3,))
    journal.open(own, {})
    journal.open(other, {})
    assert with_neighbours(ENDED, journal, own, {"gpus": [{"index": 3}]}).sharing == (2,)
    made_up = replace(own, argv=("-m", "sglsweep.rehearsal"))
    assert with_neighbours(ENDED, journal, made_up, {"gpus": []}).sharing == ()


def found(verdict: Verdict, cause: str, *, line: int | None = 7) -> Diagnosis:
    return Diagnosis(verdict=verdict, phase=Phase.KV_CACHE, cause=cause, line=line, evidence="x")


@pytest.mark.parametrize(
    ("diagnosis", "end"),
    [
        (found(Verdict.OOM, "oom-kv-pool"), replace(ENDED, sharing=(2,))),
        (found(Verdict.OOM, "oom-host"), replace(ENDED, beside=(2,))),
        (found(Verdict.KILLED, "killed-sigkill"), replace(ENDED, beside=(2,), oom_kills=1)),
        (found(Verdict.ENV_ERROR, "port-in-use"), replace(ENDED, beside=(2,))),
        (found(Verdict.CUDA_FAULT, "gpu-device-lost"), replace(ENDED, sharing=(2,))),
    ],
)
def test_what_neighbours_may_have_caused_is_no_evidence(diagnosis: Diagnosis, end: End) -> None:
    said = conclude(diagnosis, end)
    assert (said.verdict, said.cause) == (Verdict.INTERRUPTED, BESIDE_OTHERS)
    assert "beside attempt 2" in said.next_step
    assert said.evidence == "x", "the line that shows it stays"
    assert conclude(diagnosis, replace(end, beside=(), sharing=())).verdict.is_evidence


@pytest.mark.parametrize(
    ("diagnosis", "end"),
    [
        (found(Verdict.OOM, "oom-kv-pool"), replace(ENDED, beside=(2,))),
        (found(Verdict.NAN_IN_PROBS, "nan-probability-tensor"), replace(ENDED, sharing=(2,))),
        (found(Verdict.BAD_CONFIG, "bad-argument"), replace(ENDED, sharing=(2,))),
    ],
)
def test_what_is_the_cell_s_own_stays_evidence(diagnosis: Diagnosis, end: End) -> None:
    assert conclude(diagnosis, end) == diagnosis


def test_a_pool_too_small_for_the_need_beside_others_is_no_evidence() -> None:
    step = ProofStep(name="need", state=StepState.FAILED, verdict=Verdict.BAD_CONFIG)
    quiet = Diagnosis(verdict=Verdict.SERVING, phase=Phase.READY, cause="serving")
    end = End(kind=EndKind.PROOF_FAILED, sharing=(2,), beside=(2,))
    assert conclude(quiet, end, Proof(steps=(step,))).cause == BESIDE_OTHERS
    alone = conclude(quiet, End(kind=EndKind.PROOF_FAILED), Proof(steps=(step,)))
    assert alone.verdict is Verdict.BAD_CONFIG


def test_a_hang_beside_others_says_so() -> None:
    silent = End(kind=EndKind.SILENCE, silence_s=900.0, detail="no output for 15 m", beside=(2, 5))
    reached = Diagnosis(verdict=Verdict.INCOMPLETE, phase=Phase.WEIGHTS, cause=None)
    said = conclude(reached, silent)
    assert said.verdict is Verdict.HANG
    assert "beside attempts 2, 5" in said.next_step
    assert said.confidence == "low"
    assert conclude(reached, replace(silent, beside=())).confidence == "medium"


def test_signs_of_the_whole_machine_are_nobody_s_own() -> None:
    life = Life(
        cpu_s=3.0,
        net_rx_bytes=5,
        page_cache_bytes=6,
        gpu_used_mib=(7, 8),
        gpu_util=(99,),
        gpu_power_w=(90,),
    )
    apart = own_signs(life, shares_gpus=False)
    assert apart == replace(life, net_rx_bytes=0, page_cache_bytes=0)
    shared = own_signs(life, shares_gpus=True)
    assert shared.gpu_used_mib == (0, 0), "that there are two cards stays known"
    assert (shared.gpu_util, shared.cpu_s) == ((), 3.0)


def test_hours_side_by_side_count_once() -> None:
    one = over(at(1, "10:00:00"), "10:01:00", 60.0, beside=(2,))
    two = over(at(2, "10:00:30"), "10:01:30", 60.0, beside=(1,))
    alone = over(at(3, "10:01:30"), "10:02:10", 40.4)
    assert spent_s([one, two, alone]) == pytest.approx(90.0 + 40.4)
    assert spent_s([alone]) == 40.4


def test_what_runs_counts_until_now() -> None:
    begun = at(1, "10:00:00")
    later = at(2, "10:00:30")
    now = 1770717660.0  # 10:01:00 of that day
    assert spent_s([], [begun, later], now=now) == pytest.approx(60.0)
