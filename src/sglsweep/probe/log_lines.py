"""What SGLang's own log says of a load: its "Decode batch" and "Prefill batch" lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMES = {
    "log_tokens_per_s": re.compile(rb"gen throughput \(token/s\): ([\d.]+)"),
    "log_running": re.compile(rb"#running-req: (\d+)"),
    "log_queued": re.compile(rb"#queue-req: (\d+)"),
    # Hybrid models have several pools; the first named is the one of full attention.
    "log_kv_share": re.compile(rb"(?<!swa )(?<!mamba )token usage: ([\d.]+)"),
}
_RANK = re.compile(rb"\bDP(\d+)\b")
_IDLE = re.compile(rb"Prefill batch.*?#running-req: 0\b")


def load_numbers(log: bytes) -> dict[str, float]:
    """Return the highest figures of the decode lines; data-parallel ranks are added up.

    The share of the KV pool is the fullest rank's.
    """
    by_rank: dict[bytes, dict[str, float]] = {}
    for line in _lines(log, b"Decode batch"):
        rank = _RANK.search(line)
        seen = by_rank.setdefault(rank[1] if rank else b"", {})
        for name, pattern in _NAMES.items():
            if found := pattern.search(line):
                seen[name] = max(seen.get(name, 0.0), float(found[1]))
    numbers: dict[str, float] = {}
    for seen in by_rank.values():
        for name, value in seen.items():
            before = numbers.get(name, 0.0)
            numbers[name] = max(before, value) if name == "log_kv_share" else before + value
    return {name: round(value, 3) for name, value in numbers.items()}


def idle_kv_share(log: bytes) -> float | None:
    """Return what the KV pool held when the first request came to an idle server; None unknown.

    What the prefix cache may give up at any time is not counted by SGLang.
    """
    for line in _lines(log, b"Prefill batch"):
        found = _NAMES["log_kv_share"].search(line)
        if found and _IDLE.search(line):
            return float(found[1])
    return None


def _lines(log: bytes, word: bytes) -> Iterable[bytes]:
    return (line for line in log.split(b"\n") if word in line)
