"""The memory arithmetic of each attempt: what was to be expected, beside what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.plan.memory import (
    CEILING,
    FRACTION,
    Memory,
    Side,
    binding_ranks,
    memory_of,
    side_of,
    smallest_said,
)
from sglsweep.report.evidence import key
from sglsweep.report.held import resolved_to
from sglsweep.report.launches import changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome

_SAME = frozenset(
    {
        "model",
        "build",
        "tp-size",
        "pp-size",
        "dp-size",
        "ep-size",
        "enable-dp-attention",
        "quantization",
        "dtype",
        "load-format",
        "page-size",
        "context-length",
        "kv-cache-dtype",
        "dsa-prefill-backend",
        "dsa-decode-backend",
        "max-total-tokens",
        "speculative-algorithm",
        "speculative-draft-model-path",
        "cpu-offload-gb",
    }
)
"""Settings that change what weights take or what a token takes: figures do not carry over."""
_GRAPHS = frozenset(
    {
        "disable-cuda-graph",
        "cuda-graph-max-bs-decode",
        "cuda-graph-max-bs-prefill",
        "cuda-graph-bs-decode",
        "cuda-graph-bs-prefill",
        "cuda-graph-backend-decode",
        "cuda-graph-backend-prefill",
        "max-running-requests",
        "chunked-prefill-size",
        "attention-backend",
    }
)
"""Settings that change what graphs and buffers take: what is left does not carry over."""


_WORTH_RAISING = 0.01

_OTHERS_GB = 1.0
"""More of a difference in what was free before the weights is somebody else's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What an earlier attempt's figures say of another fraction; GB as SGLang prints it.

    Attributes:
        source: the earlier attempt.
        tokens: KV tokens.
        left_gb: free after graph capture; None where graphs or buffers may differ, or where
            another attempt had memory of the same cards.
    """

    source: int
    pool_gb: float | None
    tokens: int | None
    left_gb: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """One attempt's arithmetic.

    Attributes:
        own_pool_gb: the KV pool by its own log's lines before and after the weights.
        said_smallest: the smallest fraction that SGLang itself printed.
        binding: "weights", "pool", "left" -> the rank that sets the limit, where ranks differ.
    """

    outcome: Outcome
    memory: Memory
    own_pool_gb: float | None
    said_smallest: float | None
    predicted: Predicted | None = None
    binding: Mapping[str, str] = field(default_factory=dict)


def memory_rows(outcomes: Sequence[Outcome]) -> tuple[MemoryRow, ...]:
    """Return the arithmetic of each attempt whose log tells what was free around the weights."""
    rows: list[MemoryRow] = []
    for outcome in outcomes:
        memory = memory_of(outcome)
        if memory is None or memory.smallest is None:
            continue
        rows.append(
            MemoryRow(
                outcome=outcome,
                memory=memory,
                own_pool_gb=memory.pool_gb_at(memory.fraction),
                said_smallest=smallest_said(outcome),
                predicted=_predicted(outcome, memory, rows),
                binding=binding_ranks(outcome),
            )
        )
    return tuple(rows)


def _predicted(outcome: Outcome, memory: Memory, rows: Sequence[MemoryRow]) -> Predicted | None:
    """Return what the latest earlier attempt with the same weights and tokens foretold.

    Only from a card that was as free as this one: what others hold meanwhile is no arithmetic.
    """
    fraction = memory.fraction
    for row in reversed(rows):
        differing = _differing(row.outcome, outcome)
        if differing & _SAME or row.memory.pool_gb is None:
            continue
        then, now = row.memory.before_weights_gb, memory.before_weights_gb
        if then is not None and now is not None and abs(then - now) > _OTHERS_GB:
            continue
        is_shared = bool(row.outcome.end.sharing or outcome.end.sharing)
        left = None if is_shared or differing & _GRAPHS else row.memory.left_gb_at(fraction)
        return Predicted(
            source=row.outcome.attempt.number,
            pool_gb=row.memory.pool_gb_at(fraction),
            tokens=row.memory.tokens_at(fraction),
            left_gb=left,
        )
    return None


def _differing(before: Outcome, after: Outcome) -> frozenset[str]:
    """Return the settings in which two launches really differ, by their newest names.

    A flag that one passes and SGLang chose alike in the other is no difference.
    """
    return frozenset(
        name
        for change in changes(before, after)
        if (name := key(change.name)) != FRACTION and not _is_alike(before, after, name)
    )


def _is_alike(before: Outcome, after: Outcome, name: str) -> bool:
    old, new = (resolved_to(outcome, name) for outcome in (before, after))
    return old is not None and old == new


def headroom(outcomes: Sequence[Outcome], outcome: Outcome) -> tuple[float, int] | None:
    """Return a larger fraction that arithmetic allows an attempt, with its KV tokens.

    None where there is none worth a launch, or where it is known to be too high.
    """
    memory = memory_of(outcome)
    largest = memory.largest() if memory else None
    if memory is None or largest is None or largest - memory.fraction < _WORTH_RAISING:
        return None
    failed = [
        known.fraction
        for other in outcomes
        if side_of(other) is Side.TOO_HIGH and (known := memory_of(other))
    ]
    fraction = math.floor(min(largest, CEILING) * 1000) / 1000
    tokens = memory.tokens_at(fraction)
    if tokens is None or fraction <= memory.fraction or any(f <= fraction for f in failed):
        return None
    return fraction, tokens


def row_json(row: MemoryRow) -> dict[str, object]:
    """Return one attempt's arithmetic as data."""
    memory, predicted = row.memory, row.predicted
    return {
        "attempt": row.outcome.attempt.number,
        "fraction": memory.fraction,
        "before_weights_gb": memory.before_weights_gb,
        "after_weights_gb": memory.after_weights_gb,
        "f_min": _rounded(memory.smallest, 4),
        "f_min_said": row.said_smallest,
        "f_max": _rounded(memory.largest(), 4),
        "is_capped": memory.is_capped,
        "pool_gb": {"by_own_log": _rounded(row.own_pool_gb, 2), "measured": memory.pool_gb},
        "tokens": {"measured": memory.pool_tokens},
        "left_gb": {"measured": memory.after_graphs_gb},
        "predicted": None
        if predicted is None
        else {
            "from": predicted.source,
            "pool_gb": _rounded(predicted.pool_gb, 2),
            "tokens": predicted.tokens,
            "left_gb": _rounded(predicted.left_gb, 2),
        },
        "binding_ranks": dict(row.binding),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
