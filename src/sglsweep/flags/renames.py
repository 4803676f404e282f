"""Names and values that mean the same in different versions of SGLang.

A table of flags says what one build accepts; this says what else would do the same there.
Only what was checked in SGLang's source stands here: a name in one group may replace another.
"""

from __future__ import annotations

from typing import Final

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
    # 0.5.15 split the graph sizes by phase, the old flags meaning decode; in 0.5.23 the old
    # spelling is an ambiguous prefix and ends the launch with exit status 2.
    ("cuda-graph-max-bs-decode", "cuda-graph-max-bs"),
    ("cuda-graph-bs-decode", "cuda-graph-bs"),
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
