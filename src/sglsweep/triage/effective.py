"""What was asked for and what SGLang made of it, as far as the log shows either."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.triage.resolution_lines import LINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar

MARKS = ("server_args=", "sglang.launch_server", "sglang serve", "sglang.bench")

_RENAMED = {
    "fp8_gemm_runner_backend": "fp8-gemm-backend",
    "fp4_gemm_runner_backend": "fp4-gemm-backend",
    "bf16_gemm_runner_backend": "bf16-gemm-backend",
    "model": "model-path",
    "tensor-parallel-size": "tp-size",
    "tp": "tp-size",
    "dp": "dp-size",
    "pp": "pp-size",
    "ep": "ep-size",
    "data-parallel-size": "dp-size",
    "pipeline-parallel-size": "pp-size",
    "expert-parallel-size": "ep-size",
    "speculative-algo": "speculative-algorithm",
}
_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "bf16": "bfloat16"}
_COMMAND = re.compile(r"(?:-m sglang\.launch_server|\bsglang serve)\s(.*)")
_PLACEHOLDER = re.compile(r"<model|\[options\]|^\s*\.\.\.|is still supported")
"""SGLang's own advice on how to launch it, which 0.5.15 and later print first."""
_REPR = re.compile(r"server_args=ServerArgs\((.*)\)\s*$", re.DOTALL)
_DICT = re.compile(r"server_args=(\{.*\})\s*$", re.DOTALL)
_PAIR = re.compile(
    r"'?(\w+)'?\s*[=:]\s*('(?:[^'\\]|\\.){0,4000}'|\"(?:[^\"\\]|\\.){0,4000}\""
    r"|None|True|False|-?\d+(?:\.\d+)?(?:e-?\d+)?)"
)
_SECRET = re.compile(r"(?:key|token|password|secret)$", re.IGNORECASE)


def spelled(name: str) -> str:
    """Return a `server_args` name or a flag as a flag without dashes."""
    bare = name.lstrip("-")
    return _RENAMED.get(bare, bare.replace("_", "-"))


def parse_server_args(text: str) -> dict[str, Scalar]:
    """Return SGLang's resolved arguments by its own names; {} where the line holds none.

    Both forms are read: the dataclass's repr (until 0.5.15) and the dict (0.5.23); what no
    literal is (an enum, an object, a line cut short) is left out.
    """
    if match := _DICT.search(text):
        found = _literal_dict(match[1])
        if found is not None:
            return found
    if match := _REPR.search(text):
        found = _literal_call(match[1])
        if found is not None:
            return found
    start = text.find("server_args=")
    if start < 0:
        return {}
    return {
        name: _scalar(ast.literal_eval(value)) for name, value in _PAIR.findall(text[start + 12 :])
    }


def _literal_dict(source: str) -> dict[str, Scalar] | None:
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return {str(k): _scalar(v) for k, v in value.items()} if isinstance(value, dict) else None


def _literal_call(source: str) -> dict[str, Scalar] | None:
    try:
        call = ast.parse(f"f({source})", mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    found: dict[str, Scalar] = {}
    for keyword in getattr(call, "keywords", []):
        try:
            found[keyword.arg] = _scalar(ast.literal_eval(keyword.value))
        except (ValueError, SyntaxError):
            continue
    return found


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def parse_command(text: str) -> dict[str, Scalar]:
    """Return the flags of a launch command that stands in a line; {} where none does."""
    match = _COMMAND.search(text)
    if not match or _PLACEHOLDER.search(match[1]):
        return {}
    try:
        words = shlex.split(match[1], comments=True)
    except ValueError:
        words = match[1].split()
    return _flags(words)


def _flags(words: list[str]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:  # noqa: PLR2004 - a bare "--"
            name, has_value, value = word[2:].partition("=")
            name = spelled(name)
            found[name] = _read(value) if has_value else True
        elif word in {"|", "||", "&&", "&", ">", "2>&1", ";"}:
            break
        elif name and found[name] is True:
            found[name] = _read(word)
    return {n: v for n, v in found.items() if not _SECRET.search(n)}


def _read(word: str) -> Scalar:
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return word


@dataclass(slots=True)
class Resolution:
    """Arguments as printed, with what later lines say about them.

    Attributes:
        args: `server_args` by SGLang's own names.
        later: flag -> value from resolution lines that stand after `server_args`.
        findings: silent overrides worth telling, in order.
    """

    args: dict[str, Scalar] = field(default_factory=dict)
    requested: dict[str, Scalar] = field(default_factory=dict)
    earlier: dict[str, Scalar] = field(default_factory=dict)
    later: dict[str, Scalar] = field(default_factory=dict)

    def copy(self) -> Resolution:
        """Return a copy that can go on by itself."""
        return Resolution(self.args, dict(self.requested), dict(self.earlier), dict(self.later))

    def read_args(self, text: str) -> None:
        """Take a line with `server_args=`; the first one counts."""
        if not self.args:
            self.args = parse_server_args(text)

    def read_command(self, text: str) -> None:
        """Take a line that may hold the launch command."""
        if not self.requested:
            self.requested = parse_command(text)

    def read_line(self, text: str) -> None:
        """Take a line in which SGLang says what it resolved a flag to."""
        target = self.later if self.args else self.earlier
        for pattern, names in LINES:
            if match := pattern.search(text):
                target.update(_said(match, names))

    def effective(self) -> dict[str, Scalar]:
        """Return flag -> value: `server_args` over earlier lines, later lines over both."""
        merged: dict[str, Scalar] = dict(self.earlier)
        for name, value in self.args.items():
            if not _SECRET.search(name) and (value is not None or spelled(name) not in merged):
                merged[spelled(name)] = value
        for flag, value in self.later.items():
            if isinstance(value, bool) or merged.get(flag) in {None, "auto"}:
                merged[flag] = value
        dtype = merged.get("kv-cache-dtype")
        if isinstance(dtype, str):
            merged["kv-cache-dtype"] = _DTYPES.get(dtype, dtype)
        return merged


def _said(match: re.Match[str], names: tuple[tuple[str, str | None], ...]) -> dict[str, Scalar]:
    groups = match.groupdict()
    found: dict[str, Scalar] = {}
    for flag, fixed in names:
        value: Scalar = fixed if fixed is not None else groups.get(flag.replace("-", "_"))
        if value is not None:
            found[flag] = True if value == "true" else _read(str(value))
    return found


def changes(
    requested: Mapping[str, Scalar], effective: Mapping[str, Scalar]
) -> list[tuple[str, Scalar, Scalar]]:
    """Return (flag, asked, got) for what SGLang made into something else."""
    found: list[tuple[str, Scalar, Scalar]] = []
    for flag, asked in requested.items():
        got = effective.get(flag, asked)
        if asked not in {None, "auto"} and str(got).lower() != str(asked).lower():
            found.append((flag, asked, got))
    return found


def unseen(effective: Mapping[str, Scalar]) -> list[str]:
    """Return what SGLang chose and printed nowhere: the GEMM backends of a quantised model."""
    quantization = str(effective.get("quantization") or "").lower()
    return [
        f"{kind}-gemm-backend"
        for kind in ("fp4", "fp8")
        if kind in quantization and effective.get(f"{kind}-gemm-backend", "auto") == "auto"
    ]
