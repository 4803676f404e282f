"""Whether what a server says is language at all: collapse, silence, values that are no number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.probe.reading import Generation

COLLAPSE_TOKENS = 32
"""Sampled tokens that must all be one id before that is called collapse."""

_TEXT_TOKENS = 16
"""So many tokens without any text are odd; fewer may be the beginning of one character."""

_SHOWN_IDS = 12


def degenerate(answer: Generation, *, pad_id: int | None, has_random_weights: bool = False) -> str:
    """Return how one answer is degenerate, in words; "" if it is not.

    It takes two such answers to two prompts, sampled at temperature 1, to be a verdict: a
    healthy model may repeat itself, above all when it is greedy. Random weights draw from the
    model's whole vocabulary, of which its tokenizer may know a small part: varied ids without
    text are no fault of theirs.
    """
    if answer.logprobs and any(lp is None for lp in answer.logprobs):
        return "logprobs that are not finite"
    if has_random_weights and _is_varied(answer):
        return ""
    return _one_token(answer, pad_id) or _no_text(answer)


def _is_varied(answer: Generation) -> bool:
    return answer.ids is not None and len(set(answer.ids)) * 2 > len(answer.ids) > 1


def _one_token(answer: Generation, pad_id: int | None) -> str:
    count = len(answer.ids) if answer.ids is not None else answer.completion_tokens
    if count < COLLAPSE_TOKENS:
        return ""
    if answer.ids is None:
        letters = set(answer.text)
        return f"only {letters.pop()!r} in {count} tokens" if len(letters) == 1 else ""
    kinds = set(answer.ids)
    if len(kinds) == 1:
        return f"token id {answer.ids[0]} in all of {count} tokens"
    if kinds <= {0, pad_id}:
        return f"only token id 0 or the pad id in all of {count} tokens"
    return ""


def _no_text(answer: Generation) -> str:
    is_long = answer.completion_tokens >= _TEXT_TOKENS
    if answer.completion_tokens == 0 or (is_long and not answer.text):
        return f"no text in {answer.completion_tokens} tokens"
    if is_long and not answer.text.strip("\ufffd"):
        return f"only replacement characters in {answer.completion_tokens} tokens"
    return ""


def quote(answer: Generation, limit: int = 120) -> str:
    """Return an answer as evidence: its text, or its ids where it has none, shortened."""
    if answer.text:
        shown = repr(answer.text)
        return shown if len(shown) <= limit else shown[: limit - 4] + "...'"
    ids = answer.ids or ()
    more = " ..." if len(ids) > _SHOWN_IDS else ""
    return f"'' (ids {' '.join(str(i) for i in ids[:_SHOWN_IDS])}{more})" if ids else "''"


def language_score(answer: Generation) -> float | None:
    """Return the mean log-probability of the prompt's tokens; None where not all are numbers."""
    known = answer.input_logprobs
    if not known or any(lp is None for lp in known):
        return None
    return sum(lp for lp in known if lp is not None) / len(known)


_CHANCE, _UNTRAINED = 0.85, 0.6
"""Shares of ln(vocabulary) below which a mean log-probability is no model's work."""


def language_doubt(score: float, vocab: int | None) -> str:
    """Return what is wrong with a mean log-probability of plain English; "" if nothing.

    A trained model gives it about -2 to -4 a token. Chance is -ln(vocabulary), -11.9 for
    150,000 ids: weights that were never trained or are read wrongly end there, and a kernel
    that computes something else ends between.
    """
    chance = math.log(vocab or 32_000)
    if score < -_CHANCE * chance:
        return f"no better than chance (-{chance:.1f})"
    if score < -_UNTRAINED * chance:
        return "far worse than a trained model's -2 to -4"
    return ""


def disagreement(answers: Sequence[Generation]) -> int | None:
    """Return the first position where answers to one greedy prompt differ; None if nowhere."""
    first, *others = answers
    for other in others:
        if first.ids is not None and other.ids is not None:
            pairs = list(zip(first.ids, other.ids, strict=False))
        else:
            pairs = [(ord(a), ord(b)) for a, b in zip(first.text, other.text, strict=False)]
        position = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if position is not None:
            return position
    return None
