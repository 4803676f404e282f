"""`--set flag=value`: from a command line's words to values of a cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Value

_WORDS: dict[str, Value] = {"null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[+-]?\d+\Z")
_FLOAT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\Z")


def parse_settings(words: Sequence[str]) -> dict[str, Value]:
    """Return flag -> value of each `flag=value`; a bare `flag` is true.

    Raises:
        ConfigError: a word names no flag, or one flag twice.
    """
    found: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().removeprefix("--")
        if not name or not re.fullmatch(r"[A-Za-z][\w.-]*", name):
            raise ConfigError(
                f"--set {word}: no flag is named",
                next_step="Write --set kv-cache-dtype=bf16, --set disable-cuda-graph, "
                "or --set env.NAME=value.",
            )
        if name in found:
            raise ConfigError(f"--set {name} stands there twice", next_step="Keep one of them.")
        found[name] = _value(name, text) if equals else True
    return found


def parse_removals(words: Sequence[str]) -> dict[str, Value]:
    """Return flag -> None for each `--unset flag`."""
    return {word.strip().removeprefix("--"): None for word in words}


def _value(name: str, text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    # An environment variable is text, whatever it looks like.
    if name.startswith("env."):
        return text
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
