"""What a failing and a serving attempt share: all that is not to blame by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.blamed import combinations
from sglsweep.report.document import Code, Line, joined, prose
from sglsweep.report.evidence import is_inert, key
from sglsweep.report.held import holds
from sglsweep.report.words import cell_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.report.blamed import Combination, Pair
    from sglsweep.report.view import RunView


def innocent(run: RunView, row: Combination, pair: Pair) -> list[Line]:
    """Clear what was suspected beside a proven cause, and name the axes that select nothing.

    The pair differs in nothing but the cause, so whatever both have is not to blame by itself:
    shown are the axes of the matrix and what the signature names, not every flag.
    """
    bad, good = pair.failing.attempt.number, pair.better.attempt.number
    inert = [axis.name for axis in run.axes if is_inert(run, pair.better, key(axis.name))]
    shared: list[Line] = list(_shared(run, row, pair, {key(name) for name in inert}))
    lines: list[Line] = []
    if shared:
        words = list(dict.fromkeys(shared))
        lines.append(("Not to blame by itself, alike in ", f"{bad} and {good}: ", *joined(words)))
    if inert:
        names: list[Line] = [(Code(name),) for name in inert]
        lines.append(("Inert: ", *joined(names), f" {_select(inert)} nothing in {good}"))
    return lines


def remedy(pair: Pair) -> list[Line]:
    """Return what the catalogue says to do, where the serving one has its remedy alone."""
    told, values = pair.failing.diagnosis, pair.failing.diagnosis.remedy
    has = [all(holds(o, n, v) for n, v in values.items()) for o in (pair.failing, pair.better)]
    is_it = bool(values and told.next_step) and has == [False, True]
    return [("Remedy: ", *prose(told.next_step))] if is_it else []


def _select(names: list[str]) -> str:
    return "selects" if len(names) == 1 else "select"


def _shared(run: RunView, row: Combination, pair: Pair, inert: set[str]) -> Iterator[Line]:
    """Yield what both launches have, of what the signature names and of the matrix."""
    named = {name for other in combinations(run) if other.is_named for name in other.keys}
    left_out = row.keys | named | inert | {key(c.name) for c in pair.changes}
    for blame in pair.failing.diagnosis.blames:
        name = key(blame.flag.removeprefix("effective."))
        if name in left_out or blame.value is None or not holds(pair.better, name, blame.value):
            continue
        left_out = left_out | {name}
        yield (Code(cell_word(blame.flag, blame.value)),)
    for axis in run.axes:
        name = key(axis.name)
        if len(axis.values) > 1 and name not in left_out:
            value = pair.better.attempt.cell.get(axis.name)
            is_passed = value is not None
            yield (
                (Code(cell_word(axis.name, value)),)
                if is_passed
                else (
                    Code(axis.name),
                    " not passed",
                )
            )
