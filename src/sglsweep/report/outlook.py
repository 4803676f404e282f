"""What further attempts may bring, and what outside the matrix would most likely help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.report.view import cells_left

if TYPE_CHECKING:
    from sglsweep.matrix import Value
    from sglsweep.report.view import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """Something that no cell of the matrix has, and why it may help.

    Attributes:
        kind: "remedy", flags to set, or "build", a newer one.
        values: for a remedy, setting -> value.
    """

    kind: str
    cause: str
    why: str
    url: str = ""
    values: Mapping[str, Value]


def forecast_words(run: RunView) -> str:
    """Say what further attempts may bring; "" where the planner has not said or it is no matter.

    Where something serves and the sweep is over, nobody waits for more. The planner does not
    foretell included cells: that none is left is no answer while one of them is.
    """
    if run.serving and run.finish:
        return ""
    if run.forecast.get("cells_left") == 0 and cells_left(run):
        return ""
    why, after = run.forecast.get("why"), run.forecast.get("after")
    is_fresh = isinstance(after, int) and after == len(run.outcomes)
    if not isinstance(why, str) or not why:
        return ""
    return why if is_fresh else f"{why} (as of {after} attempts)"


def helps(run: RunView) -> tuple[Help, ...]:
    """Return what would most likely help outside the matrix, the best first."""
    stored = run.forecast.get("helps")
    entries = stored if isinstance(stored, list | tuple) else ()
    return tuple(_help(entry) for entry in entries if isinstance(entry, Mapping))


def _help(entry: Mapping[str, object]) -> Help:
    values = entry.get("set")
    return Help(
        kind=str(entry.get("kind") or ""),
        cause=str(entry.get("cause") or ""),
        why=str(entry.get("why") or ""),
        url=str(entry.get("url") or ""),
        values=values if isinstance(values, Mapping) else {},
    )
