"""What an attempt of an earlier run is worth here, and what is not taken from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plan.history import AXES, cell
from sglsweep.matrix import Axis, Cell
from sglsweep.plan.prior import (
    MOST,
    NO_GPU,
    Circumstances,
    EarlierAttempt,
    EarlierRun,
    arch_of,
    architecture_of,
    take,
)
from sglsweep.verdict import Phase, Verdict

HERE = Circumstances(
    arch="sm120",
    version="0.5.15",
    model="GlmMoeDsaForCausalLM",
    flags={"tp": "8", "quantization": "modelopt_fp4", "model-path": "/models/here", "port": "1"},
)
SERVED = EarlierAttempt(
    number=3,
    cell=cell(0, 1, 1, 1),
    flags={"tp-size": "8", "quantization": "modelopt_fp4", "model-path": "/m", "port": "2"},
    version="0.5.15",
    verdict=Verdict.SERVING,
    phase=Phase.DECODE,
    cause=None,
)
FAILED = replace(SERVED, number=4, verdict=Verdict.OOM, phase=Phase.KV_CACHE, cause="oom-kv-pool")


def run(*attempts: EarlierAttempt, there: Circumstances = HERE) -> EarlierRun:
    return EarlierRun(name="k2", where="sweep.yaml:9", circumstances=there, attempts=attempts)


def test_where_everything_is_alike_an_attempt_counts_most_but_not_as_one_of_this_run() -> None:
    (taken,) = take([run(SERVED)], AXES, HERE)
    (entry,) = taken.evidence
    assert entry.weight == MOST < 1
    assert (entry.cell, entry.source) == (SERVED.cell, "run k2, attempt 3")
    assert entry.number < 0
    assert taken.why == (
        "1 of 1 attempts of run k2 count here, each 0.95 as much as one of this run: same GPU "
        "(sm120), same SGLang (0.5.15) and same model (GlmMoeDsaForCausalLM)"
    )


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (replace(HERE, arch="sm100"), "other GPU (sm100 there, sm120 here)"),
        (replace(HERE, version="0.5.23"), "other SGLang (0.5.23 there, 0.5.15 here)"),
        (replace(HERE, model="KimiK2"), "other model (KimiK2 there, GlmMoeDsaForCausalLM here)"),
        (replace(HERE, arch=""), "GPU not known there"),
    ],
)
def test_what_differs_makes_it_count_for_less_and_is_said(
    there: Circumstances, words: str
) -> None:
    (taken,) = take([run(replace(SERVED, version=there.version), there=there)], AXES, HERE)
    assert taken.evidence[0].weight < 0.7 * MOST
    assert words in taken.why


def test_other_flags_beside_the_matrix_make_it_count_for_less_and_are_named() -> None:
    other = replace(SERVED, flags={**SERVED.flags, "tp-size": "4"})
    (taken,) = take([run(other)], AXES, HERE)
    assert 0.6 < taken.evidence[0].weight < MOST
    assert "launched with other tp" in taken.why


def test_a_failure_by_a_flag_that_is_not_so_here_is_not_taken() -> None:
    other = replace(FAILED, flags={**FAILED.flags, "tp-size": "4"}, blames=("tp",))
    same = replace(FAILED, blames=("quantization",))
    (taken,) = take([run(other, same)], AXES, HERE)
    assert [entry.source for entry in taken.evidence] == ["run k2, attempt 4"]
    assert "not taken: 1 failed by tp-size, which is not so here" in taken.why


def test_lost_hosts_and_interruptions_are_not_taken() -> None:
    lost = replace(SERVED, verdict=Verdict.HOST_LOST)
    (taken,) = take([run(lost)], AXES, HERE)
    assert taken.evidence == ()
    assert "not taken: 1 ended by a lost host or an interruption" in taken.why


def test_a_rehearsal_teaches_nothing_about_real_servers() -> None:
    (taken,) = take([run(SERVED, there=replace(HERE, world="glm5"))], AXES, HERE)
    assert taken.evidence == ()
    assert "it is a rehearsal, its servers are made up" in taken.why
    (other,) = take([run(SERVED)], AXES, replace(HERE, world="glm5"))
    assert "it ran a real SGLang, this is a rehearsal" in other.why


def test_a_run_that_is_named_twice_counts_once() -> None:
    first, again = take([run(SERVED, FAILED), run(SERVED)], AXES, HERE)
    assert len(first.evidence) == 2
    assert again.evidence == ()
    assert "not taken: 1 counted already" in again.why


def test_every_attempt_has_a_number_of_its_own() -> None:
    first, second = take([run(SERVED, FAILED), run(replace(SERVED, number=9))], AXES, HERE)
    numbers = [entry.number for taken in (first, second) for entry in taken.evidence]
    assert len(set(numbers)) == 3
    assert max(numbers) < 0


def test_axes_that_the_earlier_run_did_not_vary_are_read_from_its_command_line() -> None:
    flags = {"attention-backend": "triton", "kv-cache-dtype": "bfloat16", "disable-cuda-graph": ""}
    bare = replace(SERVED, cell=Cell({}), flags={**SERVED.flags, **flags})
    (taken,) = take([run(bare)], AXES, HERE)
    assert dict(taken.evidence[0].cell.values) == {
        "attention-backend": "triton",
        "kv-cache-dtype": "bf16",
        "moe-runner-backend": None,
        "disable-cuda-graph": True,
    }


def test_flags_that_this_matrix_does_not_have_are_left_out_of_the_cell() -> None:
    wider = replace(SERVED, cell=SERVED.cell.with_values({"page-size": 64}))
    (taken,) = take([run(wider)], AXES, HERE)
    assert taken.evidence[0].cell == SERVED.cell


def test_a_build_is_the_one_with_the_same_sglang_whatever_it_is_called() -> None:
    axes = (*AXES, Axis("build", ("old", "new")))
    here = replace(HERE, builds={"old": "0.5.9", "new": "0.5.15"})
    named = replace(SERVED, cell=SERVED.cell.with_values({"build": "stock"}))
    (taken,) = take([run(named, replace(named, number=5, version="0.5.1"))], axes, here)
    assert [entry.cell.get("build") for entry in taken.evidence] == ["new", "0.5.1"]


def test_blames_name_the_axis_in_its_own_spelling() -> None:
    axes = (*AXES, Axis("tp", (4, 8)))
    (taken,) = take([run(replace(FAILED, blames=("tp-size", "page-size")))], axes, HERE)
    assert taken.evidence[0].blames == ("tp",)


def test_architectures_are_read_from_the_facts() -> None:
    assert arch_of({"gpus": [{"compute_capability": "12.0"}]}) == "sm120"
    assert (arch_of({"gpus": []}), arch_of({"gpus": None}), arch_of({})) == (NO_GPU, "", "")
    facts = {"models": {"glm": {"architectures": ["GlmMoeDsa"]}, "none": None}}
    assert (architecture_of(facts, "glm"), architecture_of(facts, "none")) == ("GlmMoeDsa", "")


def test_what_another_process_on_the_host_ended_is_not_taken() -> None:
    held = replace(FAILED, cause="oom-gpu-held")
    (taken,) = take([run(SERVED, held)], AXES, HERE)
    assert [entry.source for entry in taken.evidence] == ["run k2, attempt 3"]
    assert "not taken: 1 ended by another process on the host" in taken.why
