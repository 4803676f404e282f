"""How fast the answers came: first token, each further token, tokens a second."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.keeper_files import HttpResponse
    from sglsweep.probe.reading import Generation


_USUAL = tuple(f"{what}_{share}" for what in ("ttft", "tpot") for share in ("p50", "p90", "p99"))


def wave_numbers(
    responses: Sequence[HttpResponse],
    answers: Sequence[Generation],
    *,
    elapsed_s: float = 0.0,
    also: Iterable[str] = (),
) -> dict[str, float]:
    """Return what a wave of requests measured; a number that could not be had is left out.

    Args:
        responses: with arrival times where they were streamed.
        answers: what they produced.
        elapsed_s: of the whole wave, where the answers do not tell when each began.
        also: further percentiles, like `e2e_p95` or `itl_p99`.
    """
    samples = _samples(responses, answers)
    numbers = {f"{name}_s": _percentile(samples, name) for name in dict.fromkeys((*_USUAL, *also))}
    tokens, wall = sum(a.completion_tokens for a in answers), _wall(responses) or elapsed_s
    numbers["tokens_per_s"] = tokens / wall if wall > 0 and tokens else None
    return {name: round(value, 5) for name, value in numbers.items() if value is not None}


def _samples(
    responses: Sequence[HttpResponse], answers: Sequence[Generation]
) -> dict[str, list[float]]:
    """Return seconds to the first token, for each further one, between events, for the whole."""
    return {
        "ttft": [r.chunks[0] for r in responses if r.chunks],
        "tpot": [
            (r.chunks[-1] - r.chunks[0]) / (a.completion_tokens - 1)
            for r, a in zip(responses, answers, strict=False)
            if len(r.chunks) > 1 and a.completion_tokens > 1
        ],
        "itl": [then - now for r in responses for now, then in pairwise(r.chunks)],
        "e2e": [r.elapsed_s for r in responses],
    }


def _percentile(samples: Mapping[str, list[float]], name: str) -> float | None:
    """Read `ttft_p99` or `e2e_p999` (99.9 %)."""
    what, _, share = name.partition("_p")
    return quantile(samples[what], float(f"0.{share}"))


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
