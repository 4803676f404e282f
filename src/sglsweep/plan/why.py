"""One plain sentence that says why a cell is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan.rates import SERVED
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from sglsweep.plan.belief import Belief
    from sglsweep.plan.hints import Hint, Hinted
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
    changes = np.count_nonzero(table.changed(every, codes), axis=1)
    nearest = min(range(len(known)), key=lambda i: (changes[i], -known[i].phase.order, -i))
    odds = f"chance to serve {percent(chance)}"
    if not changes[nearest]:
        return f"{_as_before(known[nearest])}; {odds}"
    accused = accusations(belief)
    if changes[nearest] > MOST_CHANGES:
        return f"{_avoids(table, codes, accused)}; {odds}"
    kept = f"keeps the rest of {attempt(known[nearest])}"
    sources = {entry.number: entry.source for entry in known if not entry.is_own}
    changed = [
        table.names[axis]
        + _by(accused.get((int(axis), int(every[nearest][axis])), set()), sources)
        for axis in np.flatnonzero(table.changed(every[nearest], codes))
    ]
    changed += _awakened(table, every[nearest], codes)
    return f"{kept}{_got_to(belief, known[nearest])}, changes {joined(changed)}; {odds}"


def _awakened(table: Table, before: Codes, codes: Codes) -> list[str]:
    """Return flags that selected nothing before and do now: they come with what is changed."""
    woken = np.flatnonzero((before == table.inert) & (codes != table.inert))
    return [f"{table.names[axis]} (which selected nothing there)" for axis in woken]


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


def attempt(entry: Evidence) -> str:
    """Name an attempt: its number, and its run where that is an earlier one."""
    return f"attempt {entry.number}" if entry.is_own else entry.source


def _as_before(entry: Evidence) -> str:
    """Say why a cell is launched that an attempt has launched before."""
    if entry.is_own:
        may_be = "nothing else speaks against it, so its failure may be a flake"
        return f"{attempt(entry)} again: {may_be}"
    if entry.verdict is Verdict.SERVING:
        return f"known from {attempt(entry)}: it served there"
    return f"as {attempt(entry)}, which failed there: nothing else speaks against it here"


def _by(numbers: set[int], sources: Mapping[int, str]) -> str:
    """Say which attempts accuse a value; those of earlier runs by the name of their run."""
    own = joined([str(number) for number in sorted(numbers) if number not in sources])
    known = joined(
        [sources[number] for number in sorted(numbers, reverse=True) if number in sources][:2]
    )
    said = [f"suspected after {own}" if own else "", f"known from {known}" if known else ""]
    told = ", ".join(word for word in said if word)
    return f" ({told})" if told else ""


def named(hint: Hint) -> str:
    """Name what is published, with its source."""
    return f"{hint.id}: {in_short(hint.source)}"


def in_short(source: str) -> str:
    """Return the first part of a source; the rest of it stands where there is room."""
    return source.partition(";")[0].strip()


def published(hints: Hinted, index: int, passed_over: NDArray[np.bool_]) -> str:
    """Say what the catalogue or memory has to do with a choice; "" where they have nothing.

    `passed_over`: the cells that would have come first, were it not for them.
    """
    if against := hints.against(index):
        who = "memory speaks" if against[0].axis else "the catalogue speaks"
        return f"; {who} against it ({named(against[0])}), all else is less likely"
    left = next((hint for hint, met, _ in hints.among if (met & passed_over).any()), None)
    if left is None:
        return ""
    what = "does not fit into memory" if left.axis else "the catalogue knows not to work"
    return f"; leaves what {what} ({named(left)})"


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
