"""Cells that come to one configuration are merged, and the reason is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sglsweep.catalogue import inert
from sglsweep.matrix import Cell
from sglsweep.plan.equal_cells import Candidate, merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Value
    from sglsweep.plan.equal_cells import Merged

DECODE = "nsa-decode-backend"
GLM = "GlmMoeDsaForCausalLM"


def _candidate(
    cell: dict[str, Value], *, setting: str = "main", is_fixed: bool = False, **effective: object
) -> Candidate:
    return Candidate(
        cell=Cell(cell),
        setting=setting,
        effective=effective,
        rules=inert.rules_for(version="0.5.9", model=GLM),
        is_fixed=is_fixed,
    )


def _nsa(
    decode: Value, effective: str, attention: str = "flashinfer", kv: str = "fp8_e4m3"
) -> Candidate:
    return _candidate(
        {DECODE: decode},
        attention_backend=attention,
        kv_cache_dtype=kv,
        nsa_prefill_backend="flashmla_auto",
        nsa_decode_backend=effective,
    )


def _pairs(merged: tuple[Merged, ...]) -> list[tuple[Value, Value]]:
    return [(item.cell.get(DECODE), item.speaker.get(DECODE)) for item in merged]


def test_the_first_of_equal_cells_speaks_for_the_others() -> None:
    merged = merge([_nsa(None, "flashmla_kv", "nsa"), _nsa("flashmla_kv", "flashmla_kv", "nsa")])
    assert _pairs(merged) == [("flashmla_kv", None)]
    assert (
        merged[0].because == 'nsa-decode-backend "flashmla_kv" is what SGLang takes there anyway'
    )
    assert merged[0].rule == ""


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (32, "SGLang makes 64 of page-size 32 there, and without it"),
        (64, "page-size 64 is what SGLang takes there anyway"),
    ],
)
def test_a_value_that_sglang_replaces_is_not_said_to_be_what_it_takes(own: int, told: str) -> None:
    cells = [_candidate({"page-size": value}, page_size=64) for value in (None, own)]
    assert merge(cells)[0].because == told


def test_two_values_that_come_to_a_third_are_said_to() -> None:
    cells = [_candidate({"page-size": value}, page_size=64) for value in (16, 32)]
    assert merge(cells)[0].because == "SGLang makes 64 of page-size 32 there, and of 16"


def test_an_inert_flag_is_known_from_the_catalogue() -> None:
    merged = merge(
        [
            _nsa(None, "flashmla_kv"),
            _nsa("flashmla_sparse", "flashmla_sparse"),
            _nsa("trtllm", "trtllm"),
            _nsa("tilelang", "tilelang"),
        ]
    )
    assert _pairs(merged) == [("flashmla_sparse", None), ("tilelang", None)]
    assert {item.rule for item in merged} == {"dsa-backends-layout-only"}
    assert "choose no kernel" in merged[0].because


def test_the_same_flag_is_not_inert_with_another_attention_backend() -> None:
    cells = [_nsa(None, "flashmla_kv", "nsa"), _nsa("tilelang", "tilelang", "nsa")]
    assert merge(cells) == ()


def test_with_a_bf16_cache_not_even_the_layout_differs() -> None:
    cells = [_nsa(None, "flashmla_kv", kv="bfloat16"), _nsa("trtllm", "trtllm", kv="bfloat16")]
    assert [item.rule for item in merge(cells)] == ["dsa-backends-no-layout-in-bf16"]


def test_with_any_attention_backend_but_its_own_a_dsa_model_has_the_layout_alone() -> None:
    cells = [
        _nsa(None, "flashmla_kv", "trtllm_mla"),
        _nsa("tilelang", "tilelang", "trtllm_mla"),
        _nsa("trtllm", "trtllm", "trtllm_mla"),
    ]
    assert [item.rule for item in merge(cells)] == ["dsa-backends-layout-only-other-attention"]


def test_a_draft_with_sparse_attention_takes_its_kernel_from_the_same_flag() -> None:
    def with_draft(decode: str, draft: str | None) -> Candidate:
        cell = _nsa(decode, decode)
        effective = {**cell.effective, "speculative_draft_attention_backend": draft}
        return replace(cell, effective=effective)

    assert merge([with_draft("flashmla_kv", "nsa"), with_draft("tilelang", "nsa")]) == ()
    assert len(merge([with_draft("flashmla_kv", None), with_draft("tilelang", None)])) == 1


def _gemm(
    backend: str, *, env: Sequence[str] = (), quantization: str = "modelopt_fp4"
) -> Candidate:
    return Candidate(
        cell=Cell({"fp8-gemm-backend": backend}),
        setting="main",
        effective={"fp8_gemm_runner_backend": backend, "quantization": quantization},
        rules=inert.rules_for(version="0.5.9", model=GLM, env=env),
    )


def test_an_nvfp4_checkpoint_has_no_use_for_an_fp8_gemm() -> None:
    (item,) = merge([_gemm("auto"), _gemm("cutlass")])
    assert item.rule == "fp8-gemm-without-fp8-layers"
    assert "nothing to choose" in item.because


def test_an_fp8_checkpoint_has_and_so_has_nvfp4_with_fp8_in_its_attention() -> None:
    env = ["SGLANG_NVFP4_CKPT_FP8_GEMM_IN_ATTN"]
    assert merge([_gemm("auto", env=env), _gemm("cutlass", env=env)]) == ()
    assert merge([_gemm("auto", quantization="fp8"), _gemm("cutlass", quantization="fp8")]) == ()
    # 0.5.17 tunes FlashInfer's kernels at start for this one.
    assert merge([_gemm("auto"), _gemm("flashinfer_cutlass")]) == ()


@pytest.mark.parametrize(("version", "model"), [("", GLM), ("0.5.9", ""), ("0.5.4", GLM)])
def test_where_version_or_model_is_not_known_no_rule_holds(version: str, model: str) -> None:
    assert inert.rules_for(version=version, model=model) == ()


def test_what_only_chance_or_an_address_makes_different_is_equal() -> None:
    cells = [
        _candidate({"a": 1}, x=1, random_seed=5, port=30000),
        _candidate({"a": 2}, x=1, random_seed=6, port=30001),
    ]
    assert len(merge(cells)) == 1


def test_another_environment_build_or_model_is_never_equal() -> None:
    assert merge([_candidate({"a": 1}, x=1), _candidate({"a": 2}, setting="other", x=1)]) == ()


def test_a_cell_that_the_user_asked_for_is_launched_whatever_it_equals() -> None:
    cells = [
        _candidate({"a": 1}, is_fixed=True, x=1),
        _candidate({"a": 2}, is_fixed=True, x=1),
        _candidate({"a": 3}, x=1),
    ]
    assert [item.cell.get("a") for item in merge(cells)] == [3]


def test_every_rule_says_why_and_from_where() -> None:
    for rule in inert.load():
        assert rule.reason
        assert rule.source
        assert rule.scope.models
        assert rule.scope.since
