"""The history as numbers: who ended where, and which failures tell of the same fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.rates import SERVED
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Codes, Table

Kind = tuple[str, str, str]
"""Cause, phase and verdict: the finest that failures are told apart by.

Merging causes made skip rules worse than chance in simulations, and one cause that ends
launches at two phases is mostly two faults.
"""

FINAL = frozenset(
    {Verdict.BAD_CONFIG, Verdict.LOAD_ERROR, Verdict.KERNEL_UNSUPPORTED, Verdict.OOM}
)
"""Verdicts that a second launch hardly ever changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A cell that failed, with every attempt at it that failed in the same way."""

    row: int
    numbers: tuple[int, ...]
    blamed: int

    @property
    def own(self) -> tuple[int, ...]:
        """The attempts that are of this run."""
        return tuple(number for number in self.numbers if number > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Clues:
    """What the attempts say, one row a distinct cell and kind of end.

    Attributes:
        codes: values of each row's cell.
        reach: order of the phase each row ended in; `SERVED` where it served.
        weight: how far each row can be relied on; 1 for this run's own.
        kinds: None for rows that served or ended without a cause.
        failures: rows of each kind.
    """

    codes: Codes
    reach: NDArray[np.int64]
    weight: NDArray[np.float64]
    kinds: tuple[Kind | None, ...]
    failures: dict[Kind, tuple[Failure, ...]]

    def __len__(self) -> int:
        return len(self.codes)


def clues_of(table: Table, history: Sequence[Evidence]) -> Clues:
    """Return the clues in attempts that say something; equal ends of a cell are one row."""
    every = table.encode(entry.cell for entry in history)
    numbers: dict[tuple[bytes, Kind | None, int], list[int]] = {}
    first: dict[tuple[bytes, Kind | None, int], int] = {}
    weight: dict[tuple[bytes, Kind | None, int], float] = {}
    for position, entry in enumerate(history):
        end = (every[position].tobytes(), _kind(entry), _reach(entry))
        first.setdefault(end, position)
        numbers.setdefault(end, []).append(entry.number)
        weight[end] = max(weight.get(end, 0.0), entry.weight)
    failures: dict[Kind, list[Failure]] = {}
    for row, (end, position) in enumerate(first.items()):
        kind = end[1]
        if kind is not None:
            blamed = _mask(table, history[position].blames)
            failures.setdefault(kind, []).append(Failure(row, tuple(numbers[end]), blamed))
    return Clues(
        codes=every[list(first.values())],
        reach=np.asarray([end[2] for end in first], dtype=np.int64),
        weight=np.asarray([weight[end] for end in first], dtype=np.float64),
        kinds=tuple(end[1] for end in first),
        failures={kind: tuple(found) for kind, found in failures.items()},
    )


def _kind(entry: Evidence) -> Kind | None:
    if entry.verdict is Verdict.SERVING or entry.cause is None:
        return None
    return entry.cause, entry.phase, entry.verdict


def _reach(entry: Evidence) -> int:
    return SERVED if entry.verdict is Verdict.SERVING else entry.phase.order


def _mask(table: Table, names: Sequence[str]) -> int:
    return sum(1 << axis for axis, name in enumerate(table.names) if name in names)
