"""What a real SGLang on a machine without a GPU makes of cells for one with eight."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from real_python import real_python
from standin_sglang import PROGRAM, SM120

GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 2048,
    "vocab_size": 512,
}
GLM = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "kv_lora_rank": 512,
    "q_lora_rank": 2048,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "intermediate_size": 12288,
    "first_k_dense_replace": 3,
    "max_position_embeddings": 202752,
    "vocab_size": 154880,
}


def _asked(cells: list[str], model: dict[str, Any], gpu: dict[str, Any] | None) -> list[Any]:
    jobs = [{"argv": ["--model-path", "tiny/model", *words.split()]} for words in cells]
    request = {"cells": jobs, "gpu": gpu, "configs": {"tiny/model": model}}
    done = subprocess.run(
        [str(real_python()), str(PROGRAM), "cells"],
        input=json.dumps(request).encode(),
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        timeout=280,
        check=False,
    )
    document = json.loads(done.stdout)
    assert document["ok"], document.get("error")
    return [
        {**document["base"], **c["changes"]} if c["state"] == "resolved" else c["error"]
        for c in document["cells"]
    ]


@pytest.mark.real
def test_real_sglang_refuses_and_resolves_on_its_own_machine() -> None:
    base = "--device cpu --max-total-tokens 8192"
    fine, refused, unparsed = _asked(
        [base, f"{base} --context-length 999999", f"{base} --attention-backend no-such"],
        GPT2,
        None,
    )
    assert fine["device"] == "cpu"
    assert fine["attention_backend"]
    assert "is greater than the derived context_length (2048)" in refused
    assert "argument --attention-backend: invalid choice: 'no-such'" in unparsed


@pytest.mark.real
def test_real_sglang_resolves_the_lead_case_for_a_card_that_is_not_there() -> None:
    base = "--device cuda --tp-size 8 --quantization modelopt_fp4 --trust-remote-code"
    own, asked = _asked(
        [base, f"{base} --attention-backend flashinfer --kv-cache-dtype bf16"], GLM, SM120
    )
    assert own["attention_backend"] in {"nsa", "dsa"}
    assert own["kv_cache_dtype"] == "fp8_e4m3"
    assert asked["attention_backend"] == "flashinfer"
    assert asked["kv_cache_dtype"] in {"bf16", "bfloat16"}
