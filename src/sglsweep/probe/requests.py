"""The requests of the proof, made to fit one server: its vocabulary, its context, its version."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.keeper_files import HttpRequest
from sglsweep.probe.prompts import SANITY_TEXT, TEXTS, token_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.probe.target import Target

ROOM_FOR_TEXT = 192
"""Tokens a request must hold before English or a chat template is sent."""

_ASK_S = 60.0
_OWN_TOKENS = 2048
"""Tokens that a request of the user's may be about, for its time limit."""


def get(target: Target, request_id: str, path: str) -> HttpRequest:
    """Return a question that needs no forward pass."""
    return HttpRequest(id=request_id, path=path, headers=_headers(target), timeout_s=_ASK_S)


def own(target: Target, request: HttpRequest) -> HttpRequest:
    """Return a request of the user's with what every request needs."""
    return replace(request, headers=_headers(target), timeout_s=_patience(target, _OWN_TOKENS))


def generate(  # noqa: PLR0913 - one request has that many sides, all by name
    target: Target,
    request_id: str,
    prompt: str | list[int],
    *,
    tokens: int,
    temperature: float = 0.0,
    stream: bool = False,
    extra: Mapping[str, object] | None = None,
) -> HttpRequest:
    """Return a request for exactly `tokens` tokens: the end-of-text token does not end it."""
    # Before 0.5 the answer holds no token ids; they stand beside the logprobs there.
    needs_logprobs = older_than(target.version, (0, 5))
    body: dict[str, object] = {
        "text" if isinstance(prompt, str) else "input_ids": prompt,
        "sampling_params": {
            "temperature": temperature,
            "max_new_tokens": tokens,
            "ignore_eos": True,
        },
        **({"return_logprob": True} if needs_logprobs else {}),
        **({"stream": True} if stream else {}),
        **(extra or {}),
    }
    size = tokens + (len(prompt) if isinstance(prompt, list) else 0)
    return HttpRequest(
        id=request_id,
        method="POST",
        path="/generate",
        body=body,
        headers=_headers(target),
        timeout_s=_patience(target, size),
        stream=stream,
    )


def chat(target: Target, request_id: str, question: str, **more: object) -> HttpRequest:
    """Return a greedy question through the chat template."""
    body: dict[str, object] = {
        "model": "default",
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        **more,
    }
    return HttpRequest(
        id=request_id,
        method="POST",
        path="/v1/chat/completions",
        body=body,
        headers=_headers(target),
        timeout_s=_patience(target, 512),
    )


def embed(target: Target, request_id: str, *texts: str) -> HttpRequest:
    """Return a request for the vectors of some texts."""
    return HttpRequest(
        id=request_id,
        method="POST",
        path="/v1/embeddings",
        body={"model": "default", "input": list(texts)},
        headers=_headers(target),
        timeout_s=_patience(target, 512),
    )


def why_no_chat(target: Target) -> str:
    """Return why this server cannot be asked in a template; "" if it can."""
    if not target.has_tokenizer:
        return "the server has no tokenizer"
    if target.longest is not None and target.longest < ROOM_FOR_TEXT:
        return f"a request holds {target.longest:,} tokens"
    return ""


def short_prompt(target: Target, which: int) -> str | list[int]:
    """Return one of four short prompts: English where it is read and fits, else token ids."""
    longest = target.longest
    if target.has_tokenizer and (longest is None or longest >= ROOM_FOR_TEXT):
        return TEXTS[which]
    return ids(target, min(24, max((longest or 72) // 3, 1)), seed=which)


def prompt_of(target: Target, count: int, *, tokens: int, seed: int) -> str | list[int]:
    """Return a prompt of at least `count` tokens.

    English where it fits, since two greedy answers to noise may differ by rounding alone. A
    token of English has at most six letters on average, and in the worst vocabulary one.
    """
    letters = 6 * count
    is_sure_to_fit = target.longest is None or letters + tokens <= target.longest
    if not (target.has_tokenizer and is_sure_to_fit):
        return ids(target, count, seed)
    text = f"{SANITY_TEXT} {' '.join(TEXTS)} "
    return (text * (letters // len(text) + 1))[:letters].rstrip()


def ids(target: Target, count: int, seed: int) -> list[int]:
    """Return token ids that this model surely has."""
    return token_ids(count, seed=seed, vocab=target.vocab, special=target.special_ids)


def new_tokens(target: Target, wanted: int) -> int:
    """Return as many output tokens as wanted, or half of what a request may hold."""
    return wanted if target.longest is None else max(min(wanted, target.longest // 2), 1)


def older_than(version: str | None, limit: tuple[int, ...]) -> bool:
    """Tell whether a version like 0.5.9 or 0.4.6.post5 is older; an unknown one is not."""
    digits = re.match(r"\d+(\.\d+)*", version or "")
    return digits is not None and tuple(int(p) for p in digits[0].split(".")) < limit


def _headers(target: Target) -> dict[str, str]:
    return {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}


def _patience(target: Target, tokens: int) -> float:
    """Seconds one request may take.

    Longer than the server's own watchdog (300 s unless set), so that a stuck forward pass
    ends with SGLang's own words and stacks in the log and not with our mere time-out; a first
    prompt of a new shape may also compile kernels for minutes.
    """
    own = target.watchdog_s if target.watchdog_s > 0 else 570.0
    return own + 30.0 + tokens / 100.0
