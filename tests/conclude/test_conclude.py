from __future__ import annotations

from dataclasses import replace

import pytest

from sglsweep.attempt import Blame, Diagnosis, End, EndKind, Proof, ProofStep, StepState
from sglsweep.conclude import conclude, ending_of, nan_check, with_server_words
from sglsweep.verdict import Milestone, MilestoneState, Phase, Verdict

READY = Diagnosis(verdict=Verdict.SERVING, phase=Phase.READY, cause="serving", line=90)
LOADING = Diagnosis(verdict=Verdict.INCOMPLETE, phase=Phase.WEIGHTS, cause=None)
OOM = Diagnosis(
    verdict=Verdict.OOM,
    phase=Phase.READY,
    cause="oom-runtime",
    line=99,
    evidence="torch.OutOfMemoryError",
    next_step="lower it",
)
SIGTERM = Diagnosis(verdict=Verdict.KILLED, phase=Phase.WEIGHTS, cause="killed-sigterm", line=7)


def step(name: str, state: StepState = StepState.OK, **more: object) -> ProofStep:
    return replace(ProofStep(name=name, state=state), **more)  # type: ignore[arg-type]


GOOD = Proof(steps=(step("answers"), step("greedy"), step("sampled"), step("load")))


def failing(name: str, verdict: Verdict | None, **more: object) -> Proof:
    failed = step(name, StepState.FAILED, verdict=verdict, detail=f"broken in {name}", **more)
    return Proof(steps=(step("answers"), step("greedy"), failed))


def end(kind: EndKind, **more: object) -> End:
    return replace(End(kind=kind), **more)  # type: ignore[arg-type]


# -- serving -----------------------------------------------------------------------------------


def test_serving_needs_a_proof_that_holds() -> None:
    final = conclude(READY, end(EndKind.PROVEN), GOOD)
    assert final.verdict is Verdict.SERVING
    assert final.phase is Phase.DECODE
    assert final.milestones[Milestone.DECODE] is MilestoneState.OK


@pytest.mark.parametrize("kind", [k for k in EndKind if k is not EndKind.EQUAL])
def test_a_ready_line_alone_never_makes_a_sweep_say_serving(kind: EndKind) -> None:
    assert conclude(READY, end(kind), None).verdict is not Verdict.SERVING


def test_a_proof_that_could_not_be_asked_proves_nothing() -> None:
    refused = step("greedy", StepState.NOT_RUN, detail="HTTP 401: the server wants its API key")
    final = conclude(READY, end(EndKind.PROVEN), Proof(steps=(step("answers"), refused)))
    assert (final.verdict, final.cause) == (Verdict.INCOMPLETE, "not-proven")
    assert "API key" in final.next_step


def test_doubts_do_not_unmake_serving_and_are_told() -> None:
    doubt = step("logprobs", StepState.SUSPECT, detail="no better than chance")
    final = conclude(READY, end(EndKind.PROVEN), Proof(steps=(*GOOD.steps, doubt)))
    assert final.verdict is Verdict.SERVING
    assert [(s.id, s.text) for s in final.suspects] == [
        ("proof-logprobs", "no better than chance")
    ]
    assert "logprobs" in final.next_step


def test_a_proven_server_that_is_then_interrupted_still_served() -> None:
    for kind in (EndKind.INTERRUPTED, EndKind.DEADLINE):
        assert conclude(READY, end(kind), GOOD).verdict is Verdict.SERVING


def test_a_proven_server_that_then_ends_by_itself_does_not_serve() -> None:
    final = conclude(READY, end(EndKind.EXITED, exit_status=-11), GOOD)
    assert (final.verdict, final.cause) == (Verdict.CRASH, "segfault")


def test_the_speed_of_the_load_becomes_a_metric() -> None:
    load = step("load", numbers={"tokens_per_s": 310.5})
    final = conclude(READY, end(EndKind.PROVEN), Proof(steps=(*GOOD.steps[:3], load)))
    assert final.metrics["tokens_per_s"] == 310.5


# -- failures of the proof ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "cause"),
    [
        (Verdict.GARBAGE_OUTPUT, "proof-garbage"),
        (Verdict.HANG, "proof-hang"),
        (Verdict.CRASH, "proof-crash"),
    ],
)
def test_a_failed_step_is_the_verdict(verdict: Verdict, cause: str) -> None:
    proof = failing("sampled", verdict, evidence="'!!!!'")
    final = conclude(READY, end(EndKind.PROOF_FAILED), proof)
    assert (final.verdict, final.cause, final.phase) == (verdict, cause, Phase.DECODE)
    assert final.evidence == "'!!!!'"
    assert final.line is None
    assert final.metrics["proof_failed_step"] == "sampled"
    assert final.suspects == ()
    assert final.milestones[Milestone.READY] is MilestoneState.OK
    assert final.milestones[Milestone.DECODE] is MilestoneState.FAILED


def test_the_log_says_why_a_server_died_under_a_probe() -> None:
    final = conclude(OOM, end(EndKind.FATAL_LINE), failing("chunked-prefill", None))
    assert (final.verdict, final.cause, final.line) == (Verdict.OOM, "oom-runtime", 99)
    assert final.phase is Phase.DECODE
    assert final.metrics["proof_failed_step"] == "chunked-prefill"
    assert [s.id for s in final.suspects] == ["proof-chunked-prefill"]


def test_a_server_that_died_without_a_word_crashed() -> None:
    final = conclude(READY, end(EndKind.PROOF_FAILED), failing("two-at-once", None))
    assert (final.verdict, final.cause) == (Verdict.CRASH, "proof-died")


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (EndKind.INTERRUPTED, Verdict.INTERRUPTED),
        (EndKind.DEADLINE, Verdict.INTERRUPTED),
        (EndKind.HOST_LOST, Verdict.HOST_LOST),
    ],
)
def test_a_connection_that_our_own_stop_broke_is_no_crash(kind: EndKind, verdict: Verdict) -> None:
    final = conclude(READY, end(kind), failing("load", None))
    assert final.verdict is verdict
    garbage = conclude(READY, end(kind), failing("sampled", Verdict.GARBAGE_OUTPUT))
    assert garbage.verdict is Verdict.GARBAGE_OUTPUT


def test_a_server_too_small_for_the_need_decodes_all_the_same() -> None:
    proof = failing("need", Verdict.OOM, cause="kv-pool-below-need", next_step="Raise it.")
    final = conclude(READY, end(EndKind.PROOF_FAILED), proof)
    assert (final.verdict, final.cause) == (Verdict.OOM, "kv-pool-below-need")
    assert final.milestones[Milestone.DECODE] is MilestoneState.OK
    assert final.next_step == "Broken in need. Raise it."


def test_somebody_elses_server_on_the_port_is_no_failure_of_a_decode() -> None:
    foreign = step("answers", StepState.FAILED, verdict=Verdict.ENV_ERROR, cause="port-in-use")
    final = conclude(READY, end(EndKind.PROOF_FAILED), Proof(steps=(foreign,)))
    assert (final.verdict, final.cause, final.phase) == (
        Verdict.ENV_ERROR,
        "port-in-use",
        Phase.READY,
    )


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("0.4.6.post5", "--enable-nan-detection"),
        ("0.5.9", "--enable-nan-detection"),
        ("0.5.15", "SGLANG_ENABLE_ASYNC_ASSERT=1"),
        ("0.5.17", "SGLANG_ENABLE_ASYNC_ASSERT=1"),
        ("0.5.23", "with SGLANG_ENABLE_NAN_LOGITS_CHECK=1"),
        (None, "SGLANG_ENABLE_ASYNC_ASSERT=1 and SGLANG_ENABLE_NAN_LOGITS_CHECK=1"),
    ],
)
def test_garbage_proposes_that_versions_nan_check(version: str | None, shown: str) -> None:
    proof = failing("sampled", Verdict.GARBAGE_OUTPUT)
    final = conclude(replace(READY, sglang_version=version), end(EndKind.PROOF_FAILED), proof)
    assert shown in final.next_step


def test_what_the_build_itself_says_of_its_nan_check_beats_its_version() -> None:
    assert nan_check("0.5.12", has_flag=True) == {"enable-nan-detection": True}
    assert nan_check("0.5.9", has_flag=False) == {}
    assert set(nan_check(None, has_flag=False)) == {
        "env.SGLANG_ENABLE_ASYNC_ASSERT",
        "env.SGLANG_ENABLE_NAN_LOGITS_CHECK",
    }


# -- ends --------------------------------------------------------------------------------------


def test_silence_is_a_hang_named_after_its_phase() -> None:
    said = "no output and no life sign for 5 m in phase weights; limit 5 m"
    final = conclude(LOADING, end(EndKind.SILENCE, silence_s=300.0, detail=said))
    assert (final.verdict, final.cause) == (Verdict.HANG, "silent-weights")
    assert final.next_step.startswith("No output and no life sign for 5 m in phase weights")


def test_a_phase_without_end_is_a_hang_and_says_that_it_lived() -> None:
    final = conclude(LOADING, end(EndKind.CAP, detail="30 m in phase weights without an end"))
    assert (final.verdict, final.cause) == (Verdict.HANG, "too-long-weights")
    assert "limits: {weights: ...}" in final.next_step


@pytest.mark.parametrize("kind", [k for k in EndKind if k is not EndKind.EQUAL])
def test_what_the_log_says_of_a_failure_comes_before_any_end(kind: EndKind) -> None:
    assert conclude(OOM, end(kind)) == OOM


@pytest.mark.parametrize("kind", [EndKind.INTERRUPTED, EndKind.DEADLINE])
def test_our_own_stop_is_no_evidence(kind: EndKind) -> None:
    final = conclude(SIGTERM, end(kind))
    assert final.verdict is Verdict.INTERRUPTED
    assert not final.verdict.is_evidence


def test_a_stop_that_nobody_of_us_sent_is_evidence() -> None:
    final = conclude(SIGTERM, end(EndKind.EXITED, exit_status=-15))
    assert final.verdict is Verdict.KILLED


def test_a_lost_host_is_no_evidence() -> None:
    final = conclude(LOADING, end(EndKind.HOST_LOST, detail="no route to host"))
    assert (final.verdict, final.evidence) == (Verdict.HOST_LOST, "no route to host")


@pytest.mark.parametrize(
    ("status", "verdict", "cause"),
    [
        (-9, Verdict.KILLED, "killed-sigkill"),
        (137, Verdict.KILLED, "killed-sigkill"),
        (-15, Verdict.KILLED, "killed-sigterm"),
        (-11, Verdict.CRASH, "segfault"),
        (134, Verdict.CRASH, "native-abort"),
        (3, Verdict.CRASH, "exit-status"),
        (0, Verdict.CRASH, "exit-status"),
        (None, Verdict.CRASH, "exit-status"),
    ],
)
def test_an_exit_without_a_cause_in_the_log_is_judged_by_its_status(
    status: int | None, verdict: Verdict, cause: str
) -> None:
    final = conclude(LOADING, end(EndKind.EXITED, exit_status=status))
    assert (final.verdict, final.cause, final.confidence) == (verdict, cause, "low")


def test_an_equal_attempt_gets_the_answer_of_the_one_it_equals() -> None:
    final = conclude(LOADING, end(EndKind.EQUAL, equal_to=3), equal=OOM)
    assert (final.verdict, final.cause, final.line) == (Verdict.OOM, "oom-runtime", None)
    assert "attempt 3" in final.next_step


def test_our_own_stop_tells_the_triage_no_exit_status() -> None:
    assert ending_of(end(EndKind.PROVEN, exit_status=-15)).exit_status is None
    assert ending_of(end(EndKind.EXITED, exit_status=-15)).exit_status == -15
    assert ending_of(end(EndKind.SILENCE, silence_s=301.0)).silence_s == 301.0
    assert ending_of(end(EndKind.CAP, silence_s=301.0)).silence_s is None


def test_a_kill_that_the_kernel_counted_is_the_hosts_memory() -> None:
    log = Diagnosis(verdict=Verdict.KILLED, phase=Phase.WEIGHTS, cause="killed-sigkill")
    alone = conclude(log, End(kind=EndKind.EXITED, exit_status=-9))
    assert alone.cause == "killed-sigkill"
    counted = conclude(log, End(kind=EndKind.EXITED, exit_status=-9, oom_kills=1))
    assert counted.verdict is Verdict.KILLED
    assert counted.cause == "killed-host-oom"


ADVICE = "Raise --mem-fraction-static above 0.92."


def no_pool(**more: object) -> Diagnosis:
    log = Diagnosis(
        verdict=Verdict.OOM,
        phase=Phase.WEIGHTS_DONE,
        cause="oom-kv-pool",
        blames=(Blame("mem-fraction-static", 0.9),),
        next_step=ADVICE,
    )
    return conclude(log, end(EndKind.FATAL_LINE, exit_status=-9, **more))


def test_memory_that_another_process_had_is_no_fault_of_a_flag() -> None:
    held = no_pool(
        gpu_before_mib=(4, 125_000), gpu_holders=("pid 77 (python train.py), 124,900 MiB",)
    )
    assert (held.verdict, held.cause, held.blames) == (Verdict.OOM, "oom-gpu-held", ())
    assert held.next_step.startswith(
        "125,000 MiB of card 1 were in use before this server started, by pid 77 (python train.py)"
    )
    assert [(s.id, s.text) for s in held.suspects] == [("oom-kv-pool", ADVICE)]


def test_the_card_that_was_held_has_the_number_that_the_host_gives_it() -> None:
    held = no_pool(gpu_before_mib=(4, 125_000), gpu_cards=(4, 5))
    assert held.next_step.startswith("125,000 MiB of card 5 were in use")


def test_a_holder_in_another_container_is_told_without_a_name() -> None:
    held = no_pool(gpu_before_mib=(125_000,))
    assert "by processes that the host does not show" in held.next_step


@pytest.mark.parametrize("before", [(), (0,), (600, 14)])
def test_what_an_idle_card_uses_is_nobodys_memory(before: tuple[int, ...]) -> None:
    alone = no_pool(gpu_before_mib=before)
    assert (alone.cause, alone.next_step) == ("oom-kv-pool", ADVICE)


def test_whoever_has_the_port_is_named() -> None:
    log = Diagnosis(
        verdict=Verdict.ENV_ERROR, phase=Phase.WARMUP, cause="port-in-use", next_step="End it."
    )
    ended = End(kind=EndKind.FATAL_LINE, port_holder="pid 12 (nginx)")
    assert conclude(log, ended).next_step == "Pid 12 (nginx) listens on it. End it."
    assert conclude(log, End(kind=EndKind.FATAL_LINE)).next_step == "End it."
    assert conclude(log, replace(ended, beside=(2,))).verdict is Verdict.ENV_ERROR


def test_a_rank_that_vanished_is_named_where_the_log_holds_only_a_cascade() -> None:
    log = Diagnosis(
        verdict=Verdict.COLLECTIVE_ERROR,
        phase=Phase.READY,
        cause="gloo-peer-closed",
        rank="TP0",
        line=126,
    )
    ended = end(EndKind.FATAL_LINE, exit_status=-9, first_gone="TP1")
    told = conclude(log, ended)
    assert (told.verdict, told.cause, told.rank) == (Verdict.KILLED, "rank-gone", "TP1")
    assert "What TP0 printed came of it" in told.next_step
    by_kernel = conclude(log, replace(ended, oom_kills=1))
    assert (by_kernel.cause, by_kernel.rank) == ("killed-host-oom", "TP1")
    real = replace(log, cause="nccl-timeout")
    assert conclude(real, ended) == real


def test_a_kernel_s_line_without_a_rank_gets_the_one_that_was_gone_first() -> None:
    log = Diagnosis(verdict=Verdict.NAN_IN_PROBS, phase=Phase.DECODE, cause="nan-logits", line=59)
    ended = end(EndKind.FATAL_LINE, first_gone="TP0")
    assert conclude(log, ended).rank == "TP0"
    assert conclude(replace(log, rank="TP1"), ended).rank == "TP1"
    assert conclude(replace(log, verdict=Verdict.ENV_ERROR), ended).rank is None
    assert conclude(log, end(EndKind.FATAL_LINE)).rank is None


# -- what the server says of itself ------------------------------------------------------------


def test_what_the_server_changed_after_its_log_line_is_told() -> None:
    logged = replace(READY, effective={"attention-backend": "fa3", "page_size": 1, "tp_size": 8})
    said = {"attention_backend": "triton", "page_size": 1, "status": "ready"}
    (note,) = with_server_words(logged, said).suspects
    assert note.id == "server-info-differs"
    assert note.text == "attention-backend: fa3 in the log, triton on the running server"


def test_a_log_that_hides_its_arguments_gets_the_server_s() -> None:
    said = {"attention_backend": "triton", "version": "0.5.23", "memory_usage": {"weight": 1.0}}
    final = with_server_words(READY, said)
    assert final.effective == {"attention_backend": "triton"}
    assert final.suspects == ()


def test_a_value_that_the_log_leaves_open_may_be_chosen_later() -> None:
    logged = replace(READY, effective={"context_length": None, "dtype": "auto"})
    assert with_server_words(logged, {"context_length": 2048, "dtype": "auto"}) == logged


def test_answers_that_are_odd_and_prove_nothing_propose_the_nan_check() -> None:
    odd = [step(n, StepState.SUSPECT, detail="one token") for n in ("greedy", "load")]
    final = conclude(READY, end(EndKind.PROVEN), Proof(steps=(step("answers"), *odd)))
    assert final.cause == "not-proven"
    assert "SGLANG_ENABLE_NAN_LOGITS_CHECK=1" in final.next_step
    assert "confirm-nan" in final.next_step
