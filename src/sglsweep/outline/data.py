"""An outline as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.outline.outline import KNOWN
from sglsweep.plan.memory import MARGIN_GB
from sglsweep.plan.pairwise import word_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.outline.estimate import MemoryEstimate, TimeEstimate
    from sglsweep.outline.outline import Counted, Covering, Outline
    from sglsweep.plan.rehearse import Rehearsed, Suppose


def outline_json(found: Outline) -> dict[str, object]:
    """Return all of it as data."""
    sweep = found.sweep
    return {
        "schema": 1,
        "name": sweep.name,
        "host": sweep.host,
        "model": sweep.model.name,
        "goal": [str(goal) for goal in sweep.goal],
        "is_checked": found.is_checked,
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in sweep.axes],
        "cells": len(found.expanded.cells),
        "included": [dict(cell.values) for cell in found.expanded.includes],
        "not_launched": [_counted_json(c) for c in found.counted if c.kind != KNOWN],
        "known_issues": [_counted_json(c) for c in found.counted if c.kind == KNOWN],
        "notes": list(found.notes),
        "attempts_done": found.done,
        "time": _time_json(found.time),
        "memory": _memory_json(found.memory),
        "covering": None if found.covering is None else _covering_json(found.covering),
        "strategy": found.strategy,
        "decisions": {
            suppose.name.lower(): _decisions_json(suppose, rehearsed)
            for suppose, rehearsed in found.decisions.items()
        },
    }


def _counted_json(item: Counted) -> dict[str, object]:
    document: dict[str, object] = {
        "kind": item.kind,
        "because": item.because,
        "count": item.count,
    }
    if item.kind == KNOWN:
        document |= {"instead": item.instead, "source": item.source}
    return document


def _time_json(time: TimeEstimate) -> dict[str, object]:
    return {
        "attempts": time.attempts,
        "each_s": round(time.each_s, 1),
        "total_s": round(time.total_s, 1),
        "budget_hours": time.budget_hours,
        "source": time.source,
    }


def _memory_json(found: Sequence[MemoryEstimate]) -> dict[str, object]:
    return {"margin_gb": MARGIN_GB, "known": [_estimate_json(e) for e in found]}


def _estimate_json(e: MemoryEstimate) -> dict[str, object]:
    return {
        "from": {"run": e.where, "attempt": e.attempt, "fraction": e.fraction},
        "kv_dtype": e.kv_dtype or None,
        "before_weights_gb": e.free_gb,
        "f_min": round(e.smallest, 4),
        "f_max": _rounded(e.largest, 4),
        "is_capped": e.is_capped,
        "needed_tokens": e.needed,
        "f_enough": _rounded(e.enough, 4),
        "at": [
            {
                "fraction": a.fraction,
                "pool_gb": _rounded(a.pool_gb, 2),
                "tokens": a.tokens,
                "left_gb": _rounded(a.left_gb, 2),
            }
            for a in e.at
        ],
    }


def _covering_json(found: Covering) -> dict[str, object]:
    return {
        "order": found.order,
        "of": word_for(found.order),
        "combinations": found.combinations,
        "rows": found.rows,
    }


def _decisions_json(suppose: Suppose, rehearsed: Rehearsed) -> dict[str, object]:
    return {
        "supposing": suppose.value,
        "launches": [
            {"key": s.cell.short_key, "cell": dict(s.cell.values), "why": s.why}
            for s in rehearsed.steps
        ],
        "end": rehearsed.end or None,
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
