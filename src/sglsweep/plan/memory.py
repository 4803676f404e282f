"""Arithmetic of `mem-fraction-static`: from one log's numbers to other fractions.

SGLang keeps `fraction` of the memory that was free before the weights for weights and KV pool:

    pool      = after_weights - before_weights * (1 - fraction)
    pool <= 0   where fraction <= 1 - after_weights / before_weights      (the smallest fraction)
    left over   after capture must still hold what prefill and sampling need: raising the fraction
                by x takes x * before_weights of it                       (the largest fraction)

Checked on ten logs of 8x RTX PRO 6000 (pool within 0.1 GB, what is left after it within 0.2 GB)
and on an H200 (pool within 0.01 GB, smallest fraction within 0.001). With several ranks SGLang
takes the least free memory of all, and the tokens of the rank whose layers need most for a token:
with pipeline stages of unequal depth that is the deepest, and the other ranks' pools are smaller.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome, Scalar

FRACTION = "mem-fraction-static"
MARGIN_GB = 2.5
"""Memory to leave free after graph capture: activations of a prefill chunk of 8192 take 2 to 3."""
CEILING = 0.95
"""Largest fraction that is proposed where the user names none."""
BLIND_STEP = 0.04
"""Step where the log shows no memory numbers."""
FINEST = 0.005
"""Fractions closer than this are not worth an attempt of their own."""

NO_POOL = "oom-kv-pool"
BELOW_NEED = "kv-pool-below-need"
"""It served, but its pool holds less than the sweep needs."""
TOO_HIGH = frozenset({"oom-graph-capture", "oom-runtime"})
_LARGEST_PAGE = 256
"""Tokens of a page at most: `max-total-tokens` is rounded down to whole pages."""
_EVEN_GB = 0.05
"""Ranks that differ by less are even: SGLang prints hundredths."""
_TORCH_OOM = re.compile(r"(?i)out ?of ?memory|MemoryAllocation|ALLOC_FAILED")
_VIABLE = re.compile(r"minimum viable = 1 - available/pre = (0\.\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one launch said about memory, the worst rank's; GB as SGLang prints it (2^30 bytes).

    Attributes:
        fraction: the `mem-fraction-static` it ran with.
        before_weights_gb: free before the weights were loaded.
        after_weights_gb: free after all weights, a draft model's included.
        after_graphs_gb: free after the last graph capture.
        pool_gb: size of the KV pool, of the rank that needs most for a token.
        pool_tokens: tokens that fit into it.
        most_tokens: `max-total-tokens`, where the launch sets it.
    """

    fraction: float
    before_weights_gb: float | None = None
    after_weights_gb: float | None = None
    after_graphs_gb: float | None = None
    pool_gb: float | None = None
    pool_tokens: int | None = None
    most_tokens: int | None = None

    @property
    def is_capped(self) -> bool:
        """True where `max-total-tokens`, not the fraction, sizes the pool."""
        if not self.most_tokens or not self.pool_tokens:
            return False
        return 0 <= self.most_tokens - self.pool_tokens < _LARGEST_PAGE

    @property
    def smallest(self) -> float | None:
        """The fraction at which the KV pool is empty; None where the log does not tell."""
        if not self.before_weights_gb or self.after_weights_gb is None:
            return None
        return 1.0 - self.after_weights_gb / self.before_weights_gb

    def largest(self, margin_gb: float = MARGIN_GB) -> float | None:
        """Return the fraction that leaves `margin_gb` after capture.

        None where that is not known, or where the fraction does not size the pool.
        """
        if not self.before_weights_gb or self.after_graphs_gb is None or self.is_capped:
            return None
        return self.fraction + (self.after_graphs_gb - margin_gb) / self.before_weights_gb

    def pool_gb_at(self, fraction: float) -> float | None:
        """Return the KV pool's size at another fraction; 0 below the smallest."""
        if self.before_weights_gb is None or self.after_weights_gb is None:
            return None
        room = max(0.0, self.after_weights_gb - self.before_weights_gb * (1.0 - fraction))
        if self.is_capped and self.pool_gb is not None:
            return min(room, self.pool_gb)
        if not (self.most_tokens and self.pool_gb and self.pool_tokens):
            return room
        return min(room, self.most_tokens * self.pool_gb / self.pool_tokens)

    def tokens_at(self, fraction: float) -> int | None:
        """Return the tokens that fit at another fraction: a token's size does not change."""
        pool = self.pool_gb_at(fraction)
        if pool is None or not self.pool_tokens or self.pool_gb is None:
            return None
        if self.is_capped and pool == self.pool_gb:
            return self.pool_tokens if self.is_above(fraction) else 0
        # A pool of a tiny model is printed as 0.00 GB: no token's size follows from it.
        return round(pool / self.pool_gb * self.pool_tokens) if self.pool_gb else None

    def is_above(self, fraction: float) -> bool:
        """True if a fraction leaves anything for a KV pool."""
        return self.smallest is not None and fraction > self.smallest

    def left_gb_at(self, fraction: float) -> float | None:
        """Return what would be free after capture at another fraction: the pool alone changes."""
        pool = self.pool_gb_at(fraction)
        if self.after_graphs_gb is None or pool is None or self.pool_gb is None:
            return None
        return self.after_graphs_gb - (pool - self.pool_gb)

    def fraction_for(self, tokens: int) -> float | None:
        """Return the smallest fraction whose pool holds so many tokens."""
        if self.smallest is None or not self.before_weights_gb:
            return None
        if not self.pool_gb or not self.pool_tokens:
            return None
        return self.smallest + tokens * self.pool_gb / self.pool_tokens / self.before_weights_gb


def memory_of(outcome: Outcome) -> Memory | None:
    """Return what an outcome says about memory; None where not even its fraction is known."""
    effective = _number(resolved(outcome, FRACTION))
    requested = _number(outcome.attempt.cell.get(FRACTION))
    fraction = effective if effective is not None else requested
    if fraction is None:
        return None
    metrics = outcome.diagnosis.metrics
    left = _number(metrics.get("avail_after_graphs_gb"))
    tokens = _number(metrics.get("max_total_num_tokens")) or _number(metrics.get("kv_tokens"))
    most = _number(resolved(outcome, "max-total-tokens"))
    return Memory(
        fraction=fraction,
        before_weights_gb=_number(metrics.get("avail_before_weights_gb")),
        after_weights_gb=_number(metrics.get("avail_after_weights_gb")),
        after_graphs_gb=left if left is not None else _number(metrics.get("available_gpu_mem_gb")),
        pool_gb=_number(metrics.get("kv_gb")),
        pool_tokens=int(tokens) if tokens else None,
        most_tokens=int(most) if most else None,
    )


def resolved(outcome: Outcome, flag: str) -> Scalar:
    """Return what SGLang made of a flag, under either spelling of its name; None if unknown."""
    effective = outcome.diagnosis.effective
    value = effective.get(flag)
    return effective.get(flag.replace("-", "_")) if value is None else value


def smallest_said(outcome: Outcome) -> float | None:
    """Return the smallest fraction that SGLang itself worked out, from 0.5.15 on."""
    found = _VIABLE.search(outcome.diagnosis.evidence)
    return float(found[1]) if found else None


def binding_ranks(outcome: Outcome) -> Mapping[str, str]:
    """Return which rank sets the limit where ranks differ: "weights", "pool", "left" -> rank."""
    found: dict[str, str] = {}
    for what, name, worst in _PER_RANK:
        own = {
            key.removesuffix(f"/{name}"): value
            for key, metric in outcome.diagnosis.metrics.items()
            if key.endswith(f"/{name}") and (value := _number(metric)) is not None
        }
        if own and max(own.values()) - min(own.values()) >= _EVEN_GB:
            found[what] = worst(own, key=own.__getitem__)
    return found


_PER_RANK = (
    ("weights", "avail_after_weights_gb", min),
    ("pool", "kv_gb", max),
    ("left", "avail_after_graphs_gb", min),
)


class Side(Enum):
    """On which side of what fits a fraction was."""

    TOO_LOW = auto()
    TOO_HIGH = auto()


def side_of(outcome: Outcome) -> Side | None:
    """Return why a launch ran out of memory, as far as its fraction is behind it; None if not.

    Without room for the KV pool the fraction is mostly too low. It is too high where the pool
    that SGLang worked out exists and torch could not allocate it.
    """
    cause = outcome.diagnosis.cause
    if cause in TOO_HIGH:
        return Side.TOO_HIGH
    if cause == BELOW_NEED:
        return Side.TOO_LOW
    if cause != NO_POOL:
        return None
    memory = memory_of(outcome)
    pool = memory.pool_gb_at(memory.fraction) if memory else None
    is_torch = bool(_TORCH_OOM.search(outcome.diagnosis.evidence))
    return Side.TOO_HIGH if is_torch and pool != 0.0 else Side.TOO_LOW


def next_fraction(
    outcomes: Sequence[Outcome], *, most: float | None = None, tokens: int | None = None
) -> float | None:
    """Return the fraction to try after these outcomes of one cell, in the order of attempts.

    Too low (no KV pool) moves up, too high (capture, runtime) moves down, by the last log's
    numbers where it has them, and always into what the outcomes so far leave between too low
    and too high. `tokens` is what the pool must hold.

    Returns:
        None where the last failure has nothing to do with the fraction, or where no fraction
        is left that is worth an attempt.
    """
    seen = [(outcome, memory) for outcome in outcomes if (memory := memory_of(outcome))]
    if not seen:
        return None
    last, memory = seen[-1]
    low, high = _bracket(seen, ceiling=most if most is not None else CEILING)
    if last.verdict is not Verdict.OOM or high - low <= 2 * FINEST:
        return None
    side = side_of(last)
    if side is None:
        return None
    wanted = _up(memory, low, high, tokens) if side is Side.TOO_LOW else _down(memory)
    if not low < wanted < high:
        wanted = (low + high) / 2
    value = _rounded(wanted)
    return value if low < value < high + FINEST else None


def _bracket(seen: Sequence[tuple[Outcome, Memory]], *, ceiling: float) -> tuple[float, float]:
    """Return what is too low and what is too high, by outcomes and by the empty pool."""
    low = [0.0]
    high = [ceiling + FINEST / 2]
    for outcome, memory in seen:
        if memory.smallest is not None:
            low.append(memory.smallest)
        side = side_of(outcome)
        if side is Side.TOO_LOW:
            low.append(memory.fraction)
        if side is Side.TOO_HIGH:
            high.append(memory.fraction)
    return max(low), min(high)


def _up(memory: Memory, low: float, high: float, tokens: int | None) -> float:
    """Where the pool holds the tokens; else half way to what is too high."""
    enough = memory.fraction_for(tokens) if tokens else None
    if enough is not None:
        return enough + FINEST
    if memory.smallest is None:
        return min(memory.fraction + BLIND_STEP, (low + high) / 2)
    return (low + high) / 2


def _down(memory: Memory) -> float:
    """Free the margin that was missing; a capture that failed says no better."""
    if not memory.before_weights_gb:
        return memory.fraction - BLIND_STEP
    return memory.fraction - MARGIN_GB / memory.before_weights_gb


def _rounded(fraction: float) -> float:
    """Three digits, downwards: a fraction a hair too high costs an attempt."""
    return math.floor(fraction * 1000 + 1e-6) / 1000


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
