"""One plain sentence that says why a cell is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.rates import SERVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.plan.belief import Belief
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Codes, Table

SUSPECT = 0.15
"""A value is called suspect from this chance on that it takes part in a fault."""
MOST_CHANGES = 3
"""More changes than this are not listed one by one: the sentence names what is avoided."""


def sentence(
    table: Table, index: int, known: Sequence[Evidence], belief: Belief, chance: float
) -> str:
    """Say what the cell keeps of the attempts, what it changes, and which attempts ask for it."""
    codes = table.codes[index]
    every = table.encode(entry.cell for entry in known)
    changes = np.count_nonzero(every != codes, axis=1)
    nearest = min(range(len(known)), key=lambda i: (changes[i], -known[i].phase.order, -i))
    odds = f"chance to serve {percent(chance)}"
    if not changes[nearest]:
        return (
            f"attempt {known[nearest].number} again: nothing else speaks against it, so its "
            f"failure may be a flake; {odds}"
        )
    accused = accusations(belief)
    if changes[nearest] > MOST_CHANGES:
        return f"{_avoids(table, codes, accused)}; {odds}"
    kept = f"keeps the rest of attempt {known[nearest].number}"
    changed = [
        table.names[axis] + _by(accused.get((int(axis), int(every[nearest][axis])), set()))
        for axis in np.flatnonzero(every[nearest] != codes)
    ]
    return f"{kept}{_got_to(belief, known[nearest])}, changes {joined(changed)}; {odds}"


def accusations(belief: Belief) -> dict[tuple[int, int], set[int]]:
    """Return for each suspect value (axis, code) the attempts that point at it."""
    accused: dict[tuple[int, int], set[int]] = {}
    for explained in belief.readings.values():
        for reading in explained:
            for fault in reading.faults:
                shares = reading.weight * (fault.chances[:, None] * belief.space.bits).sum(axis=0)
                for axis in np.flatnonzero(shares >= SUSPECT):
                    value = int(axis), int(belief.clues.codes[fault.row, axis])
                    numbers = {n for member in fault.members for n in member.numbers}
                    accused.setdefault(value, set()).update(numbers)
    return accused


def joined(words: Sequence[str]) -> str:
    """Write "a", "a and b", "a, b and c"."""
    if len(words) < 2:  # noqa: PLR2004 - one word stands alone
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _by(numbers: set[int]) -> str:
    if not numbers:
        return ""
    return f" (suspected after {joined([str(n) for n in sorted(numbers)])})"


def _avoids(table: Table, codes: Codes, accused: dict[tuple[int, int], set[int]]) -> str:
    avoided = sorted(
        {table.names[axis] for (axis, code) in accused if codes[axis] != code},
        key=table.names.index,
    )
    if not avoided:
        return "values that no attempt speaks against"
    return f"leaves the suspect values of {joined(avoided)}, and what has not been tried is in"


def _got_to(belief: Belief, entry: Evidence) -> str:
    if belief.clues.reach.max(initial=0) == SERVED:
        return ""
    return f", which got to {entry.phase}"


def percent(chance: float) -> str:
    """Write a chance so that small ones do not read as none."""
    return "under 1 %" if chance < 0.01 else f"{chance:.0%}".replace("%", " %")  # noqa: PLR2004
