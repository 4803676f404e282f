"""Whose failure it was: the rank as printed, or what numbers and neighbours tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglsweep.catalogue.signature import Role

if TYPE_CHECKING:
    from sglsweep.triage.events import Event
    from sglsweep.triage.reading import Reading


def rank_of(reading: Reading, event: Event) -> str | None:
    """Return the rank as printed; torch's and the parent's number where only TP is above 1."""
    if event.rank:
        return event.rank
    number = event.piece.torch_rank
    if number is None and (
        match := re.search(r"\[?\b[Rr]ank (\d+)\b|scheduler_(?:TP)?(\d+)\b", event.piece.text)
    ):
        number = int(match[1] or match[2])
    if number is None:
        return _rank_of_nccl(reading, event) or _rank_of_others(reading, event)
    return f"TP{number}" if _only_tp(reading) else None


def _only_tp(reading: Reading) -> bool:
    """Only tensor parallelism is above 1, as far as arguments and prefixes tell."""
    sizes = {name: reading.resolution.args.get(name) for name in ("tp_size", "pp_size", "dp_size")}
    others = {part[:2] for rank in reading.ranks for part in rank.split()} - {"TP"}
    if others or any(isinstance(sizes[n], int) and sizes[n] != 1 for n in ("pp_size", "dp_size")):
        return False
    if isinstance(sizes["tp_size"], int):
        return sizes["tp_size"] > 1
    return any(r != "TP0" for r in reading.ranks) or any(n > 0 for n in reading.torch_ranks)


def _rank_of_nccl(reading: Reading, event: Event) -> str | None:
    """NCCL's warning names no rank: the one that then reports NCCL's error had it.

    Ranks that wait for it lose their connection later, with words of their own.
    """
    if "NCCL WARN" not in event.piece.text or event.signature is None:
        return None
    later = [e for e in reading.events if e.rank and e.piece.line > event.piece.line]
    for other in sorted(later, key=lambda e: e.piece.line):
        if other.signature is not None and other.signature.role is Role.CAUSE:
            return other.rank if other.signature.verdict is event.signature.verdict else None
    return None


def _rank_of_others(reading: Reading, event: Event) -> str | None:
    """An unprefixed native line belongs to the one rank that reports its death, if it is one."""
    if event.trace is not None or event.piece.is_headed:
        return None
    others = {
        e.rank or _numbered(reading, e)
        for e in reading.events
        if e is not event
        and e.piece.line >= event.piece.line
        and (e.is_fatal or (e.signature and e.signature.role is Role.CASCADE))
    } - {None}
    return next(iter(others)) if len(others) == 1 else None


def _numbered(reading: Reading, event: Event) -> str | None:
    match = re.search(r"\b[Rr]ank (\d+) scheduler", event.piece.text)
    if not match or not reading.ranks:
        return None
    name = f"TP{match[1]}"
    return (
        name if name in reading.ranks and all(r.startswith("TP") for r in reading.ranks) else None
    )
