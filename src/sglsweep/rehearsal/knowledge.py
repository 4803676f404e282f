"""What the stand-in knows: the usual questions of quality, right or wrong on demand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sglsweep.probe.quality import (
    HIDDEN_NUMBER,
    NEEDLE,
    NEEDLE_QUESTION,
    USUAL_QUESTIONS,
    WEATHER,
)

if TYPE_CHECKING:
    from collections.abc import Collection

Answer = str | dict[str, Any]
"""A text, or the arguments of a call of the tool."""
_WRONG = "I am not sure"


def answer(text: str, tools: object, mischief: Collection[str]) -> Answer | None:
    """Return what is said to a question that is known; None for any other."""
    if NEEDLE_QUESTION in text:
        is_found = NEEDLE.strip() in text and "misses-needle" not in mischief
        return HIDDEN_NUMBER if is_found else _WRONG
    if tools and WEATHER in text:
        return _WRONG if "no-tool-calls" in mischief else {"city": "Paris"}
    if tools and "2 + 3" in text:
        return "5"
    for position, question in enumerate(USUAL_QUESTIONS):
        if question.prompt == text:
            return _WRONG if position < _wrong(mischief) else f"It is {question.contains[0]}."
    return None


def _wrong(mischief: Collection[str]) -> int:
    """Return how many of the first questions are answered wrong."""
    counts = [m.partition("=")[2] for m in mischief if m.startswith("answers-wrong")]
    return int(counts[0] or len(USUAL_QUESTIONS)) if counts else 0


def spoken(completion: dict[str, Any], known: Answer) -> dict[str, Any]:
    """Return a chat completion that says what is known, ended by the model itself."""
    choice = completion["choices"][0]
    message = {**choice["message"], "content": known}
    if isinstance(known, dict):
        function = {"name": "get_weather", "arguments": json.dumps(known)}
        calls = [{"id": "call_0", "index": 0, "type": "function", "function": function}]
        message = {**message, "content": None, "tool_calls": calls}
    finish = "tool_calls" if isinstance(known, dict) else "stop"
    return {
        **completion,
        "choices": [{**choice, "message": message, "finish_reason": finish}],
    }
