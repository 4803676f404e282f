from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.catalogue import semantic
from sglsweep.catalogue.semantic import Kind, differences

if TYPE_CHECKING:
    from sglsweep.matrix import Value

BF16 = {"torch_dtype": "bfloat16", "max_position_embeddings": 32768}
FP8 = {"quantization_config": {"quant_method": "fp8"}, **BF16}
FP8_KV = {"quantization_config": {"kv_cache_scheme": {"type": "float", "num_bits": 8}}, **BF16}
GLM = "GlmMoeDsaForCausalLM"

DIFFER = [
    ("dense-for-sparse", {"attention_backend": "flashinfer"}, BF16, GLM),
    ("dense-for-sparse", {"decode_attention_backend": "triton"}, BF16, "DeepseekV32ForCausalLM"),
    ("kv-cache-dtype", {"kv_cache_dtype": "fp8_e4m3"}, BF16, ""),
    ("quantised-at-load", {"quantization": "fp8"}, BF16, ""),
    ("torchao", {"torchao-config": "int4wo-128"}, BF16, ""),
    ("dtype", {"dtype": "half"}, BF16, ""),
    ("dtype", {"dtype": "float16"}, {"text_config": {"dtype": "bfloat16"}}, ""),
    ("mamba-state-dtype", {"mamba_ssm_dtype": "bfloat16"}, {"mamba_ssm_dtype": "float32"}, ""),
    ("mamba-stochastic-rounding", {"enable_mamba_cache_stochastic_rounding": True}, BF16, ""),
    ("config-overridden", {"json_model_override_args": '{"rope_scaling": {}}'}, BF16, ""),
    ("longer-than-trained", {"context_length": 131072}, BF16, ""),
    ("double-sparsity", {"enable_double_sparsity": True}, BF16, ""),
    ("accepts-unlikely-drafts", {"speculative_accept_threshold_acc": 0.5}, None, ""),
    ("sampling-defaults", {"sampling_defaults": "openai"}, None, ""),
    ("chat-template", {"chat_template": "chatml"}, None, ""),
    ("weight-only-fp4", {"moe_runner_backend": "marlin"}, None, ""),
    ("speculative", {"speculative_algorithm": "EAGLE"}, None, ""),
    ("quantised-gemm", {"fp4_gemm_backend": "flashinfer_cutlass"}, None, ""),
]
SAME: list[tuple[dict[str, Value], dict[str, object] | None, str]] = [
    ({"attention_backend": "nsa"}, dict(BF16), GLM),
    ({"attention_backend": "flashinfer"}, dict(BF16), "Qwen3ForCausalLM"),
    ({"attention_backend": "flashinfer"}, dict(BF16), ""),
    ({"kv_cache_dtype": "auto"}, dict(BF16), ""),
    ({"kv_cache_dtype": "bf16"}, dict(BF16), ""),
    ({"kv_cache_dtype": "fp8_e4m3"}, dict(FP8_KV), ""),
    ({"quantization": "fp8"}, dict(FP8), ""),
    ({"quantization": "modelopt_fp4"}, dict(BF16), ""),
    ({"dtype": "bfloat16"}, dict(BF16), ""),
    ({"dtype": "float16"}, None, ""),
    ({"context_length": 8192}, dict(BF16), ""),
    ({"json_model_override_args": "{}"}, dict(BF16), ""),
    ({"speculative_accept_threshold_single": 1.0}, dict(BF16), ""),
    ({"speculative_algorithm": None}, dict(BF16), ""),
    ({"enable_double_sparsity": False}, dict(BF16), ""),
    ({"fp8_gemm_backend": "auto"}, dict(BF16), ""),
]


@pytest.mark.parametrize(("which", "effective", "config", "model"), DIFFER)
def test_what_computes_something_else_is_told(
    which: str, effective: dict[str, Value], config: dict[str, object] | None, model: str
) -> None:
    found = differences(effective, config=config, model=model)
    assert [d.id for d in found] == [which]
    assert "{" not in found[0].says.replace('{"rope_scaling": {}}', "")


@pytest.mark.parametrize(("effective", "config", "model"), SAME)
def test_what_is_the_models_own_or_not_known_to_differ_is_not(
    effective: dict[str, Value], config: dict[str, object] | None, model: str
) -> None:
    assert differences(effective, config=config, model=model) == ()


def test_every_entry_has_a_source_and_a_case_that_differs() -> None:
    ids = [entry.id for entry in semantic.load()]
    assert len(ids) == len(set(ids))
    assert {case[0] for case in DIFFER} == set(ids)
    assert all(entry.source and entry.says for entry in semantic.load())


def test_one_backend_under_two_flags_is_one_difference() -> None:
    both: dict[str, Value] = {
        "prefill_attention_backend": "flashinfer",
        "decode_attention_backend": "flashinfer",
    }
    (found,) = differences(both, config=None, model=GLM)
    assert found.kind is Kind.MODEL
    assert found.says.startswith("dense attention (flashinfer)")
