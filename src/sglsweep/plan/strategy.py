"""The seam between the loop and whatever chooses the next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.matrix import Cell, Cells
    from sglsweep.verdict import Phase, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a strategy may know of one finished attempt; never the rules behind it.

    Attributes:
        number: the attempt's number, for the sentence that explains a decision.
        cell: the cell as launched; on axes whose effective value is known, that value.
        blames: names of axes that the cause's signature implicates.
        weight: how far it can be relied on here; below 1 for an attempt of an earlier run, which
            never clears or rules out anything alone. Its number is below 0.
        ready_s: seconds until it was ready; None = it never was.
        source: for an attempt of an earlier run, what to call it ("run k2, attempt 3").
    """

    number: int
    cell: Cell
    verdict: Verdict
    phase: Phase
    cause: str | None = None
    blames: tuple[str, ...] = ()
    weight: float = 1.0
    source: str = ""
    ready_s: float | None = None

    @property
    def is_own(self) -> bool:
        """False for an attempt of an earlier run."""
        return self.number > 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch this cell next, because.

    Attributes:
        chance: chance of the cell to serve, as far as the strategy has one.
        is_final: it is launched again to be measured in full, before it is called the winner.
        relaunch_of: the attempt that it repeats, with or without a change.
    """

    cell: Cell
    why: str
    is_final: bool = False
    relaunch_of: int | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Launch nothing more, because."""

    why: str


class Strategy(Protocol):
    """Chooses the next attempt; same arguments, same answer."""

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the next cell with its reason, or Finish when no cell is worth a launch.

        A cell whose launch ended as host-lost or interrupted has not been tried.
        """
        ...
