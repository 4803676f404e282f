"""Answers of a server as numbers and text: /generate, its streams, and the chat endpoint."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.keeper_files import HttpResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What one request produced.

    Attributes:
        ids: None where this server does not return token ids.
        logprobs: of the output; None stands for a value that JSON cannot hold (NaN, infinite);
            the whole is None where none were asked for.
        input_logprobs: of the prompt, its first token (which has none) left out.
        finish: "length", "stop", "abort", ... or "" where the answer does not say.
        complaint: the server's words where it gave up inside a 200.
        complaint_status: the HTTP status it would have given.
    """

    text: str = ""
    ids: tuple[int, ...] | None = None
    completion_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    logprobs: tuple[float | None, ...] | None = None
    input_logprobs: tuple[float | None, ...] | None = None
    finish: str = ""
    complaint: str = ""
    complaint_status: int | None = None
    tool_calls: int = 0


def generation(response: HttpResponse) -> Generation | None:
    """Return what a 200 answer holds, the last piece of a stream; None if it is not readable."""
    last = _last_json(response.body)
    if last is None:
        return None
    if "error" in last or last.get("object") == "error":
        return _complaint(last.get("error") or last)
    if "choices" in last or last.get("object") == "chat.completion":
        return _chat(last)
    return _generated(last)


def _last_json(body: str) -> dict[str, object] | None:
    """Parse a plain answer or the last whole event of a stream."""
    candidates = [body]
    if body.lstrip().startswith("data:"):
        events = [part.strip() for part in body.split("data:")]
        candidates = [e for e in reversed(events) if e.startswith("{")]
    for text in candidates:
        parsed = _parse(text)
        if isinstance(parsed, list) and parsed:
            parsed = parsed[0]
        if isinstance(parsed, dict):
            return parsed
    return None


def _parse(text: str) -> object:
    try:
        # json.loads takes the NaN and Infinity that older servers write.
        return json.loads(text)
    except ValueError:
        return None


def streamed_completion(response: HttpResponse) -> Generation | None:
    """Return what a stream of /v1/completions adds up to; each event brings only the new text.

    The tokens are counted by the server's last event; where that was cut off they are 0.
    """
    text, last = [], None
    for part in response.body.split("data:"):
        event = _parse(part.strip()) if part.lstrip().startswith("{") else None
        if not isinstance(event, dict):
            continue
        if "error" in event or event.get("object") == "error":
            return _complaint(event.get("error") or event)
        last = _chat(event)
        text.append(last.text)
    return None if last is None else replace(last, text="".join(text))


def vectors(response: HttpResponse) -> list[list[float | None]]:
    """Return the embeddings of a 200 answer; a value that is no finite number becomes None."""
    said = _parse(response.body)
    rows = said.get("data") if isinstance(said, dict) else None
    found = [row.get("embedding") for row in rows or () if isinstance(row, dict)]
    return [[_finite(value) for value in row] for row in found if isinstance(row, list)]


def _complaint(error: object) -> Generation:
    said = error if isinstance(error, Mapping) else {"message": error}
    code = said.get("code", said.get("status_code"))
    return Generation(
        finish="abort",
        complaint=str(said.get("message") or error),
        complaint_status=code if isinstance(code, int) else None,
    )


def _generated(said: Mapping[str, object]) -> Generation:
    meta_raw = said.get("meta_info")
    meta: Mapping[str, object] = meta_raw if isinstance(meta_raw, Mapping) else {}
    why_raw = meta.get("finish_reason")
    why: Mapping[str, object] = why_raw if isinstance(why_raw, Mapping) else {}
    triples = _triples(meta.get("output_token_logprobs"))
    ids = _ids(said.get("output_ids")) or tuple(i for _, i in triples) or None
    status = why.get("status_code")
    return Generation(
        text=str(said.get("text") or ""),
        ids=ids,
        completion_tokens=_int(meta.get("completion_tokens")) or len(ids or ()),
        prompt_tokens=_int(meta.get("prompt_tokens")) or 0,
        cached_tokens=_int(meta.get("cached_tokens")),
        logprobs=tuple(lp for lp, _ in triples) or None,
        input_logprobs=tuple(lp for lp, _ in _triples(meta.get("input_token_logprobs"))[1:])
        or None,
        finish=str(why.get("type") or (why_raw if isinstance(why_raw, str) else "")),
        complaint=str(why.get("message") or "") if why.get("type") == "abort" else "",
        complaint_status=status if isinstance(status, int) else None,
    )


def _chat(said: Mapping[str, object]) -> Generation:
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = first.get("message") or first.get("delta") or {}
    usage_raw = said.get("usage")
    usage: Mapping[str, object] = usage_raw if isinstance(usage_raw, Mapping) else {}
    words = [message.get("content"), message.get("reasoning_content"), first.get("text")]
    return Generation(
        text="\n".join(w for w in words if isinstance(w, str) and w),
        completion_tokens=_int(usage.get("completion_tokens")) or 0,
        prompt_tokens=_int(usage.get("prompt_tokens")) or 0,
        finish=str(first.get("finish_reason") or ""),
        tool_calls=len(message.get("tool_calls") or ()),
    )


def _triples(value: object) -> list[tuple[float | None, int]]:
    """[[logprob, id, text], ...] as SGLang writes them; what is not finite becomes None."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [
        (_finite(t[0]), t[1])
        for t in value
        if isinstance(t, list) and len(t) > 1 and isinstance(t[1], int)
    ]


def _finite(value: object) -> float | None:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def _ids(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(v for v in value if isinstance(v, int) and not isinstance(v, bool))


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
