"""A named cause becomes a narrower one, with its remedy and reports, where the flags say so."""

from __future__ import annotations

import pytest

from sglsweep import catalogue
from sglsweep.attempt import Blame, Diagnosis
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.knowledge import condition_holds, informed
from sglsweep.verdict import Phase, Verdict

KNOWN = catalogue.load()
LEAD_CASE = {
    "model_path": "lukealonso/GLM-5-NVFP4",
    "attention_backend": "flashinfer",
    "kv_cache_dtype": "fp8_e4m3",
    "nsa_prefill_backend": "flashmla_auto",
    "nsa_decode_backend": "flashmla_kv",
    "quantization": "modelopt_fp4",
}
NAN = (
    "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: "
    "[0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or "
    "element < 0` failed."
)


def nan_with(**changes: str) -> Diagnosis:
    args = LEAD_CASE | changes
    ready = "[2026-02-10 10:02:00] The server is fired up and ready to roll!"
    return diagnose(f"[2026-02-10 10:00:00] server_args={args}\n{ready}\n{NAN}\n".encode(), KNOWN)


def test_nan_of_the_lead_case_is_named_with_its_remedy() -> None:
    said = nan_with()
    assert (said.verdict, said.cause) == (Verdict.NAN_IN_PROBS, "dsa-flashinfer-fp8-kv")
    assert said.remedy["kv-cache-dtype"] == "bf16"
    assert Blame("attention-backend", "flashinfer") in said.blames


@pytest.mark.parametrize(
    "changes",
    [
        {"kv_cache_dtype": "bfloat16"},
        {"attention_backend": "nsa"},
        {"nsa_prefill_backend": "trtllm", "nsa_decode_backend": "trtllm"},
        {"model_path": "moonshotai/Kimi-K2-Thinking"},
        {"model_path": "zai-org/GLM-5.3-Flash"},
    ],
    ids=lambda changes: next(iter(changes.values())),
)
def test_another_nan_is_not_taken_for_it(changes: dict[str, str]) -> None:
    assert nan_with(**changes).cause == "nan-probability-tensor"


def test_cause_that_a_proof_found_is_narrowed_as_well() -> None:
    effective = {k.replace("_", "-"): v for k, v in LEAD_CASE.items()}
    proof = Diagnosis(
        verdict=Verdict.GARBAGE_OUTPUT,
        phase=Phase.DECODE,
        cause="proof-garbage",
        effective=effective,
        metrics={"model_class": "GlmMoeDsaForCausalLM"},
    )
    said = informed(proof, KNOWN)
    assert (said.verdict, said.cause) == (Verdict.GARBAGE_OUTPUT, "dsa-flashinfer-fp8-kv")
    assert said.remedy == {"kv-cache-dtype": "bf16"}


def test_known_issue_is_told_where_its_condition_holds() -> None:
    other = {"attention_backend": "trtllm_mla", "moe_runner_backend": "flashinfer_trtllm"}
    said = nan_with(**other, model_path="deepseek-ai/DeepSeek-V3-FP4")
    (issue,) = said.known_issues
    assert issue.url.endswith("/34629")
    assert said.remedy["moe-runner-backend"] == "flashinfer_cutlass"
    without = {**other, "moe_runner_backend": "triton"}
    assert nan_with(**without, model_path="deepseek-ai/DeepSeek-V3-FP4").known_issues == ()


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({}, True),
        ({"a": "^x$"}, True),
        ({"a": "!^x$"}, False),
        ({"b": "!^x$"}, True),
        ({"b": "^x$"}, False),
        ({"b|a": "^x$"}, True),
        ({"b|a": "!^x$"}, False),
        ({"a": "^x$", "b": "."}, False),
    ],
)
def test_conditions_are_asked_of_what_is_known(when: dict[str, str], holds: bool) -> None:  # noqa: FBT001 - a table
    assert condition_holds(when, {"a": "x"}) is holds


@pytest.mark.parametrize(("algorithm", "blamed"), [("None", ()), ("'EAGLE'", ("EAGLE",))])
def test_what_a_launch_has_not_is_not_blamed(algorithm: str, blamed: tuple[str, ...]) -> None:
    log = (
        "[2026-02-10 10:00:00] server_args=ServerArgs(model_path='m', "
        f"speculative_algorithm={algorithm})\n"
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: "
        "block: [4,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    )
    said = diagnose(log.encode(), KNOWN)
    assert said.cause == "assert-index-oob"
    assert tuple(b.value for b in said.blames) == blamed
