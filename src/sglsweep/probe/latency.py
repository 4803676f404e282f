"""How fast the answers came: first token, each further token, tokens a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.keeper_files import HttpResponse
    from sglsweep.probe.reading import Generation


_MEDIAN, _MOST, _NEARLY_ALL = 0.5, 0.9, 0.99


def wave_numbers(
    responses: Sequence[HttpResponse], answers: Sequence[Generation], *, elapsed_s: float = 0.0
) -> dict[str, float]:
    """Return what a wave of requests measured; a number that could not be had is left out.

    Args:
        responses: with arrival times where they were streamed.
        answers: what they produced.
        elapsed_s: of the whole wave, where the answers do not tell when each began.
    """
    tokens = sum(a.completion_tokens for a in answers)
    first = [r.chunks[0] for r in responses if r.chunks]
    each = [
        (r.chunks[-1] - r.chunks[0]) / (a.completion_tokens - 1)
        for r, a in zip(responses, answers, strict=False)
        if len(r.chunks) > 1 and a.completion_tokens > 1
    ]
    wall = _wall(responses) or elapsed_s
    numbers = {
        "ttft_p50_s": quantile(first, _MEDIAN),
        "ttft_p90_s": quantile(first, _MOST),
        "ttft_p99_s": quantile(first, _NEARLY_ALL),
        "tpot_p50_s": quantile(each, _MEDIAN),
        "tpot_p90_s": quantile(each, _MOST),
        "tpot_p99_s": quantile(each, _NEARLY_ALL),
        "tokens_per_s": tokens / wall if wall > 0 and tokens else None,
    }
    return {name: round(value, 5) for name, value in numbers.items() if value is not None}


def _wall(responses: Sequence[HttpResponse]) -> float:
    if not responses:
        return 0.0
    begin = min(r.started_s for r in responses)
    return max(r.started_s + r.elapsed_s for r in responses) - begin


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least this share of the values do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 1)
    return ordered[max(int(rank), 1) - 1]
