"""Names and values that mean the same in different versions of SGLang.

A table of flags says what one build accepts; this says what else would do the same there.
Only what was checked in SGLang's source stands here: a name in one group may replace another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SAME_NAME: Final[tuple[tuple[str, ...], ...]] = (
    # The first of a group names it. argparse takes `--tp` and `--dp` as unique prefixes; `--pp`
    # became ambiguous in 0.5.4, but nobody means anything else by it.
    ("model-path", "model"),
    ("tp-size", "tensor-parallel-size", "tp"),
    ("dp-size", "data-parallel-size", "dp"),
    ("pp-size", "pipeline-parallel-size", "pp"),
    ("ep-size", "expert-parallel-size", "ep"),
    # NSA became DSA in 0.5.15; 0.5.23 dropped the old spelling.
    ("dsa-prefill-backend", "nsa-prefill-backend"),
    ("dsa-decode-backend", "nsa-decode-backend"),
    ("enable-dsa-prefill-context-parallel", "enable-nsa-prefill-context-parallel"),
    # 0.5.15 declares these as aliases that write the same field (`DeprecatedAliasStoreAction` in
    # `ServerArgs.add_cli_args`); in 0.5.23 an old graph size is an ambiguous prefix and ends the
    # launch with exit status 2.
    ("cuda-graph-max-bs-decode", "cuda-graph-max-bs"),
    ("cuda-graph-bs-decode", "cuda-graph-bs"),
    ("cuda-graph-max-bs-prefill", "piecewise-cuda-graph-max-tokens"),
    ("cuda-graph-bs-prefill", "piecewise-cuda-graph-tokens"),
    ("cuda-graph-tc-compiler", "piecewise-cuda-graph-compiler"),
    ("mamba-radix-cache-strategy", "mamba-scheduler-strategy"),
    ("speculative-draft-window-size", "speculative-dflash-draft-window-size"),
    ("incremental-streaming-output", "stream-output"),
    # The field of ServerArgs is fp8_gemm_runner_backend, and its log line says so.
    ("fp8-gemm-backend", "fp8-gemm-runner-backend"),
    ("fp4-gemm-backend", "fp4-gemm-runner-backend"),
    # 0.5.23 `_handle_deprecated_args`: --grpc-mode is a deprecated alias.
    ("smg-grpc-mode", "grpc-mode"),
)

SAME_VALUE: Final[tuple[tuple[frozenset[str], tuple[str, ...]], ...]] = (
    (
        frozenset(
            {
                "attention-backend",
                "prefill-attention-backend",
                "decode-attention-backend",
                "speculative-draft-attention-backend",
            }
        ),
        ("dsa", "nsa"),
    ),
    (
        frozenset({"attention-backend", "prefill-attention-backend", "decode-attention-backend"}),
        ("dsv4", "compressed"),
    ),
    (frozenset({"kv-cache-dtype"}), ("bf16", "bfloat16")),
)

REPLACED_BY: Final[Mapping[str, str]] = {
    # SGLang's own words: 0.5.4 for the MoE flags, 0.5.15 for the graph flags.
    "enable-ep-moe": "`ep-size` with the value of tp-size",
    "enable-deepep-moe": "`moe-a2a-backend: deepep`",
    "enable-flashinfer-cutlass-moe": "`moe-runner-backend: flashinfer_cutlass`",
    "enable-flashinfer-cutedsl-moe": "`moe-runner-backend: flashinfer_cutedsl`",
    "enable-flashinfer-trtllm-moe": "`moe-runner-backend: flashinfer_trtllm`",
    "enable-triton-kernel-moe": "`moe-runner-backend: triton_kernel`",
    "enable-flashinfer-mxfp4-moe": "`moe-runner-backend: flashinfer_mxfp4`",
    "disable-piecewise-cuda-graph": "`cuda-graph-backend-prefill: disabled`",
    "enable-breakable-cuda-graph": "`cuda-graph-backend-prefill: breakable`",
    "enforce-piecewise-cuda-graph": "`cuda-graph-backend-prefill: tc_piecewise`",
    "hybrid-kvcache-ratio": "`swa-full-tokens-ratio`",
    # An environment variable since 0.5.15, another one in 0.5.23 (`sglang/srt/environ.py`).
    "enable-nan-detection": '`env.SGLANG_ENABLE_NAN_LOGITS_CHECK: "1"` (0.5.23), or '
    '`env.SGLANG_ENABLE_ASYNC_ASSERT: "1"` (0.5.15),',
}
"""A flag that newer builds lack -> what says the same there, though not word for word."""

_GROUP: Final = {name: group for group in SAME_NAME for name in group}


def same_names(name: str) -> tuple[str, ...]:
    """Every spelling that means the same as `name`, itself included, the newest first."""
    return _GROUP.get(name, (name,))


def same_values(flag: str, value: str) -> tuple[str, ...]:
    """Other spellings of `value` on `flag`."""
    names = set(same_names(flag))
    return tuple(
        other
        for flags, values in SAME_VALUE
        if names & flags and value in values
        for other in values
        if other != value
    )
