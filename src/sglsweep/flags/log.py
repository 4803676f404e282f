"""The launch that a server's log shows: its command line, or the arguments that SGLang printed."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.flags.script import Note, ParsedCommand, launches_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.flags.table import FlagValue

_ARGUMENTS = re.compile(r"server_args=(?:ServerArgs\((?P<call>.*)\)|(?P<mapping>\{.*\}))")
_OBJECT = re.compile(r"([=:] ?)<[^<>]*>")  # the repr of an enum or an object
# `server_args` holds every field, derived ones too. These are what people set by hand; a derived
# value among them is said to be one in the file's comment.
_SET_BY_HAND = [
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "nnodes",
    "quantization",
    "dtype",
    "kv_cache_dtype",
    "trust_remote_code",
    "context_length",
    "mem_fraction_static",
    "max_running_requests",
    "max_total_tokens",
    "chunked_prefill_size",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "nsa_prefill_backend",
    "nsa_decode_backend",
    "dsa_prefill_backend",
    "dsa_decode_backend",
    "moe_runner_backend",
    "moe_a2a_backend",
    "page_size",
    "disable_radix_cache",
    "disable_cuda_graph",
    "disable_custom_all_reduce",
    "enable_dp_attention",
    "reasoning_parser",
    "tool_call_parser",
    "served_model_name",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "skip_server_warmup",
]
# Fields whose flag is spelled differently.
_FLAG_OF = {"fp8_gemm_runner_backend": "fp8-gemm-backend"}
_FLAG_OF |= {"fp4_gemm_runner_backend": "fp4-gemm-backend"}
_UNSET = (None, False, "", "auto", "none")
_ONE = {"tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "page_size"}


def parse_log(text: str, *, where: str = "the log") -> ParsedCommand:
    """Read the launch that a log shows.

    Args:
        text: the whole log.
        where: what to call it in an error.

    Raises:
        ConfigError: it shows none.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        found = _ARGUMENTS.search(line)
        fields = _fields(found) if found else None
        if fields:
            return _from_fields(fields, number)
    launch = next(_commands(text), None)
    if launch is not None:
        return launch
    raise ConfigError(
        f"{where}: neither a launch command nor a server_args line in it",
        next_step="Give the log of a server from its first line on, or use --from-command.",
    )


def _commands(text: str) -> Iterator[ParsedCommand]:
    for line in text.split("\n"):
        # Only what a shell prints: `+ python3 -m ...` or the bare command.
        if "sglang.launch_server" in line or "sglang serve" in line:
            yield from launches_in(re.sub(r"^.*?(?=\S*python\S* |\S*sglang serve )", "", line))


def _fields(found: re.Match[str]) -> dict[str, object] | None:
    """Return the literals among the arguments; an enum or an object is left out."""
    source = _OBJECT.sub(r"\1None", found["mapping"] or f"f({found['call']})")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    pairs: list[tuple[str | None, ast.expr | None]] = []
    if isinstance(tree, ast.Call):
        pairs = [(keyword.arg, keyword.value) for keyword in tree.keywords]
    elif isinstance(tree, ast.Dict):
        pairs = [
            (str(key.value), value)
            for key, value in zip(tree.keys, tree.values, strict=True)
            if isinstance(key, ast.Constant)
        ]
    return {
        name: value.value
        for name, value in pairs
        if name is not None and isinstance(value, ast.Constant)
    }


def _from_fields(fields: dict[str, object], line: int) -> ParsedCommand:
    flags: dict[str, FlagValue] = {}
    for name in [*_SET_BY_HAND, *_FLAG_OF]:
        value = fields.get(name)
        if value in _UNSET or (value == 1 and name in _ONE):
            continue
        if isinstance(value, (bool, int, float, str)):
            flags[_FLAG_OF.get(name, name.replace("_", "-"))] = value
    model = fields.get("model_path")
    if flags.get("served-model-name") == model:
        flags.pop("served-model-name", None)
    what = "from a server_args line: SGLang's own choices stand beside what was asked for"
    return ParsedCommand(
        flags=flags,
        model=model if isinstance(model, str) else None,
        line=line,
        notes=(Note(line=line, what=what),),
    )
