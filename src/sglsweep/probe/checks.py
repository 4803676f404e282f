"""What was looked at on a host, and what it means for a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Facts = Mapping[str, Any]
"""What `onhost/facts.py` prints, or a part of it."""
GIB = 1 << 30


class Level(StrEnum):
    """What a check came to."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; whatever is not ok has a next step."""

    name: str
    level: Level
    said: str
    next_step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a sweep needs of the host.

    Attributes:
        gpus: indexes that may be used; None = all.
        needs_gpu: some build is not a stand-in and not made for the CPU; None = not known.
        ranks: cards that the smallest launch takes; None = not known.
        workdir: where attempts have their folders.
    """

    gpus: Sequence[int] | None = None
    needs_gpu: bool | None = True
    ranks: int | None = None
    workdir: str = ""


def ok(name: str, said: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, Level.OK, said)


def warning(name: str, said: str, next_step: str) -> Check:
    """Return a check that found something that may cost attempts or hours."""
    return Check(name, Level.WARNING, said, next_step)


def problem(name: str, said: str, next_step: str) -> Check:
    """Return a check that found why a sweep cannot succeed."""
    return Check(name, Level.PROBLEM, said, next_step)
