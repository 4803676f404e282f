"""Mistakes in a YAML file, gathered so that one reading names them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sglsweep.errors import ConfigError

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that is wrong, where, and what to write instead.

    Attributes:
        where: FILE:LINE.
        what: lower case, with the offending text, no full stop.
        instead: a sentence.
    """

    where: str
    what: str
    instead: str

    @property
    def order(self) -> tuple[str, int]:
        """Sorts mistakes as a reader meets them."""
        file, _, line = self.where.rpartition(":")
        return file, int(line) if line.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the file should know that stops nothing."""

    where: str
    text: str


def refuse(mistakes: Iterable[Mistake]) -> None:
    """Raise one error that names every mistake, in the order of the file; none, no error.

    Raises:
        ConfigError: there is at least one.
    """
    found = _once(sorted(mistakes, key=lambda m: m.order))
    if not found:
        return
    if len(found) == 1:
        raise ConfigError(f"{found[0].where}: {found[0].what}", next_step=found[0].instead)
    lines = [f"{m.where}: {m.what} ({_clause(m.instead)})" for m in found[1:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    message = "\n".join([f"{found[0].where}: {found[0].what}", *lines])
    raise ConfigError(message, next_step=found[0].instead)


def _once(mistakes: Sequence[Mistake]) -> list[Mistake]:
    return list(dict.fromkeys(mistakes))


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")
