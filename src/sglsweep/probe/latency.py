"""How fast the answers came: first token, each further token, tokens a second."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sglsweep.keeper_files import HttpResponse
    from sglsweep.probe.reading import Generation


_USUAL = tuple(
    f"{what}_{share}" for what in ("ttft", "tpot", "itl") for share in ("p50", "p90", "p99")
)


@dataclass(slots=True)
class Samples:
    """Times of requests in seconds: first token, each further one, between events, the whole."""

    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    itl: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)

    def add(self, first_s: float, whole_s: float, tokens: int, gaps: Iterable[float]) -> None:
        """Take one answered request."""
        self.ttft.append(first_s)
        self.e2e.append(whole_s)
        self.itl.extend(gaps)
        if tokens > 1 and whole_s > first_s:
            self.tpot.append((whole_s - first_s) / (tokens - 1))

    def percentile(self, name: str) -> float | None:
        """Read `ttft_p99` or `e2e_p999` (99.9 %)."""
        what, _, share = name.partition("_p")
        return quantile(getattr(self, what), float(f"0.{share}"))


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
    numbers = numbers_of(_samples(responses, answers), also=also)
    tokens, wall = sum(a.completion_tokens for a in answers), _wall(responses) or elapsed_s
    speed = {"tokens_per_s": round(tokens / wall, 5)} if wall > 0 and tokens else {}
    return {**numbers, **speed}


def numbers_of(samples: Samples, *, also: Iterable[str] = ()) -> dict[str, float]:
    """Return the usual percentiles and some further ones; what was not measured is left out."""
    names = dict.fromkeys((*_USUAL, *also))
    found = {f"{name}_s": samples.percentile(name) for name in names}
    return {name: round(value, 5) for name, value in found.items() if value is not None}


def _samples(responses: Sequence[HttpResponse], answers: Sequence[Generation]) -> Samples:
    samples = Samples(
        ttft=[r.chunks[0] for r in responses if r.chunks],
        itl=[then - now for r in responses for now, then in pairwise(r.chunks)],
        e2e=[r.elapsed_s for r in responses],
    )
    samples.tpot = [
        (r.chunks[-1] - r.chunks[0]) / (a.completion_tokens - 1)
        for r, a in zip(responses, answers, strict=False)
        if len(r.chunks) > 1 and a.completion_tokens > 1
    ]
    return samples


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
