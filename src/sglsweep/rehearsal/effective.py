"""What SGLang would make of the flags: its `server_args`, before anything runs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sglsweep.rehearsal.arguments import defaults, field_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.matrix import Cell
    from sglsweep.rehearsal.arguments import Arguments
    from sglsweep.rehearsal.settings import Stage

ServerArgs = dict[str, object]

_GPU_MB = 97_887
_MOST_GRAPHED = 512
_DSA = ("GlmMoeDsa", "DeepseekV32")
# Backends that a DSA model gets on SM120 where none is asked for, by version and KV dtype.
_DSA_BACKENDS = {
    ("0.5.9", "fp8_e4m3"): ("flashmla_auto", "flashmla_kv"),
    ("0.5.9", "bfloat16"): ("flashmla_sparse", "trtllm"),
    ("0.5.23", "fp8_e4m3"): ("flashinfer_sparse_mla", "flashinfer_sparse_mla"),
    ("0.5.23", "bfloat16"): ("flashmla_sparse", "trtllm"),
}


def is_dsa(stage: Stage) -> bool:
    """True if the stage's model has sparse attention (DSA)."""
    return stage.architecture.startswith(_DSA)


def dsa_fields(version: str) -> tuple[str, str]:
    """Return the fields of the prefill and the decode backend of DSA models."""
    kind = "nsa" if version == "0.5.9" else "dsa"
    return f"{kind}_prefill_backend", f"{kind}_decode_backend"


def resolve(arguments: Arguments, effective: Cell, stage: Stage) -> ServerArgs:
    """Return `server_args` as this version would print them, the world's rewrites included."""
    args: ServerArgs = dict(defaults(stage.sglang_version))
    args.update({name: value for name, value in arguments.items() if name in args})
    for axis, value in effective.values.items():
        if field_of(axis) in args and value not in {None, "unset"}:
            args[field_of(axis)] = value
    args["tokenizer_path"] = args["tokenizer_path"] or args["model_path"]
    args["served_model_name"] = args["served_model_name"] or args["model_path"]
    args["random_seed"] = args["random_seed"] or random.randrange(2**30)  # noqa: S311 - as SGLang
    args["mem_fraction_static"] = args["mem_fraction_static"] or auto_fraction(args)
    if is_dsa(stage):
        _resolve_dsa(args, stage.sglang_version)
    elif args["attention_backend"] is None:
        args["attention_backend"] = "triton"
    _resolve_graphs(args, stage.sglang_version)
    return args


def auto_fraction(args: Mapping[str, object]) -> float:
    """Return SGLang's own choice of mem-fraction-static for eight RTX PRO 6000."""
    reserve = 512 + 1.5 * max(int(str(args["chunked_prefill_size"])), 2048) + 2 * _MOST_GRAPHED
    reserve += 1024 * int(str(args["tp_size"])) * int(str(args["pp_size"])) / 8
    return round((_GPU_MB - max(reserve, 10_240)) / _GPU_MB, 3)


def graph_sizes(args: Mapping[str, object], most_running: int) -> list[int]:
    """Return the batch sizes whose graphs are captured; [] where none are."""
    if args.get("disable_cuda_graph") or args.get("disable_decode_cuda_graph"):
        return []
    if args.get("cuda_graph_backend_decode") == "disabled":
        return []
    return [size for size in _sizes(args) if size <= most_running]


def _sizes(args: Mapping[str, object]) -> list[int]:
    listed = args.get("cuda_graph_bs_decode") or args.get("cuda_graph_bs")
    if isinstance(listed, list):
        return [int(size) for size in listed]
    most = int(
        str(args.get("cuda_graph_max_bs_decode") or args.get("cuda_graph_max_bs") or _MOST_GRAPHED)
    )
    return [
        size for size in (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16)) if size <= most
    ]


def _resolve_dsa(args: ServerArgs, version: str) -> None:
    if args["kv_cache_dtype"] in {"auto", None}:
        args["kv_cache_dtype"] = "fp8_e4m3"
    if args["kv_cache_dtype"] == "bf16":
        args["kv_cache_dtype"] = "bfloat16"
    args["attention_backend"] = args["attention_backend"] or dsa_fields(version)[0][:3]
    args["page_size"] = 64
    chosen = _DSA_BACKENDS.get(
        (version, str(args["kv_cache_dtype"])), ("flashmla_sparse", "trtllm")
    )
    for name, backend in zip(dsa_fields(version), chosen, strict=True):
        args[name] = args[name] or backend


def _resolve_graphs(args: ServerArgs, version: str) -> None:
    sizes = graph_sizes(args, most_running=_MOST_GRAPHED)
    if version == "0.5.9":
        args["cuda_graph_bs"] = _sizes(args)
        args["cuda_graph_max_bs"] = max(_sizes(args))
        return
    decode = {
        "backend": "full" if sizes else "disabled",
        "max_bs": max(_sizes(args)),
        "bs": _sizes(args),
    }
    args["cuda_graph_config"] = {"decode": decode, "prefill": {"backend": "disabled"}}
