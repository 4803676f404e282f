"""What was asked, what SGLang made of it, and which of the two a line tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.effective import parse_command, parse_server_args

if TYPE_CHECKING:
    from sglsweep.attempt import Diagnosis, Scalar

REPR = (
    "server_args=ServerArgs(model_path='/m/glm', tp_size=8, kv_cache_dtype='auto', "
    "mem_fraction_static=0.88, api_key='secret', attention_backend='flashinfer', "
    "cuda_graph_bs=[1, 2, 4], kind=<Kind.A: 1>, disable_cuda_graph=False)"
)
DICT = (
    "server_args={'model_path': '/m/glm', 'tp_size': 8, 'kv_cache_dtype': 'auto', "
    "'mem_fraction_static': 0.88, 'api_key': 'secret', 'attention_backend': 'flashinfer', "
    "'cuda_graph_bs': [1, 2, 4], 'disable_cuda_graph': False}"
)


def answer(*lines: str) -> Diagnosis:
    return diagnose("\n".join(lines).encode(), catalogue.load())


@pytest.mark.parametrize("form", [REPR, DICT], ids=["repr", "dict"])
def test_both_forms_of_server_args_say_the_same(form: str) -> None:
    args = parse_server_args(form)
    assert args["model_path"] == "/m/glm"
    assert args["tp_size"] == 8
    assert args["mem_fraction_static"] == 0.88
    assert args["disable_cuda_graph"] is False
    assert args["attention_backend"] == "flashinfer"


@pytest.mark.parametrize("form", [REPR, DICT], ids=["repr", "dict"])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_line_that_was_cut_short_still_says_what_it_holds(form: str, kept: float) -> None:
    args = parse_server_args(form[: int(len(form) * kept)])
    assert args["model_path"] == "/m/glm"


@pytest.mark.parametrize("form", [REPR, DICT], ids=["repr", "dict"])
def test_effective_flags_are_spelled_as_flags_and_hold_no_secret(form: str) -> None:
    effective = answer(f"[2026-02-10 10:00:00] {form}").effective
    assert effective["tp-size"] == 8
    assert effective["attention-backend"] == "flashinfer"
    assert "secret" not in effective.values()


@pytest.mark.parametrize(
    ("line", "flag", "value"),
    [
        (
            "Attention backend not specified. Use flashinfer backend by default.",
            "attention-backend",
            "flashinfer",
        ),
        ("Using KV cache dtype: torch.float8_e4m3fn", "kv-cache-dtype", "fp8_e4m3"),
        (
            "Set NSA backends for FP8 KV Cache: prefill=flashmla_auto, decode=flashmla_kv.",
            "nsa-decode-backend",
            "flashmla_kv",
        ),
        (
            "Use flashinfer_cutlass as MoE runner backend on SM120 for GlmMoeDsa",
            "moe-runner-backend",
            "flashinfer_cutlass",
        ),
        (
            "DP attention is enabled. The chunked prefill size is adjusted to 1024 to avoid",
            "chunked-prefill-size",
            1024,
        ),
        (
            "TensorRT-LLM MLA only supports page_size of 32 or 64, changing page_size to 64.",
            "page-size",
            64,
        ),
        (
            "DeepEP MoE is enabled. The expert parallel size is adjusted to be the same as the "
            "tensor parallel size[8].",
            "ep-size",
            8,
        ),
        (
            "Shared experts fusion optimization is disabled.",
            "disable-shared-experts-fusion",
            True,
        ),
    ],
)
def test_resolution_line_tells_the_effective_value(line: str, flag: str, value: Scalar) -> None:
    assert answer(f"[2026-02-10 10:00:00 TP0] {line}").effective[flag] == value


def test_server_args_know_better_than_an_earlier_line() -> None:
    said = answer(
        "[2026-02-10 10:00:00] Attention backend not specified. Use triton backend by default.",
        f"[2026-02-10 10:00:01] {REPR}",
    )
    assert said.effective["attention-backend"] == "flashinfer"


def test_command_gives_the_requested_flags() -> None:
    asked = parse_command(
        "+ python3 -m sglang.launch_server --model-path /m --tp 8 --trust-remote-code "
        "--mem-fraction-static=0.9 --api-key s3cret 2>&1 | tee log"
    )
    assert asked == {
        "model-path": "/m",
        "tp-size": 8,
        "trust-remote-code": True,
        "mem-fraction-static": 0.9,
    }


def test_sglang_s_own_advice_is_no_command() -> None:
    assert parse_command("  Example: sglang serve --model-path <model> [options]") == {}


def test_silent_override_is_a_suspect() -> None:
    said = answer(
        "$ python3 -m sglang.launch_server --model-path /m/glm --attention-backend triton",
        f"[2026-02-10 10:00:00] {REPR}",
    )
    (suspect,) = [s for s in said.suspects if s.id == "silent-override"]
    assert suspect.text == "attention-backend: asked triton, effective flashinfer"


def test_choice_that_sglang_prints_nowhere_is_said_to_be_unknown() -> None:
    said = answer(
        "[2026-02-10 10:00:00] server_args={'quantization': 'modelopt_fp4', "
        "'fp4_gemm_runner_backend': 'auto'}"
    )
    (suspect,) = [s for s in said.suspects if s.id == "choice-unseen"]
    assert suspect.text.startswith("fp4-gemm-backend")
