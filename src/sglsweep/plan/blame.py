"""Which combinations of values fail, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.matrix import Axis, Cell, Cells, Value, spell
from sglsweep.plan.belief import believe
from sglsweep.plan.suspects import LEAST_WEIGHT
from sglsweep.plan.table import table_of, telling
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.plan.belief import Belief
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.suspects import Fault, Reading
    from sglsweep.plan.table import Table


MOST_UNPROVEN = 1.0 - LEAST_WEIGHT
"""No row is surer than this without proof: explanations less likely are not kept."""
_RIVALS = 2
_LEAST_RIVAL = 0.05


class Status(StrEnum):
    """How sure a row of the blame table is."""

    PROVEN = "proven"
    SUPPORTED = "supported"
    REFUTED = "refuted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """A combination of values that is held to fail, or was blamed and does not.

    Attributes:
        values: the combination: axis -> value.
        status: proven where, for each of its flags, a serving attempt differs from a failing one
            in just that flag; supported where all attempts agree with it and some pair is
            missing; refuted where an attempt with the whole combination serves.
        chance: how likely this combination is the one behind these failures, against others
            that the attempts leave possible; 1 for proven, 0 for refuted.
        attempts_for: attempts that failed with it.
        attempts_against: attempts that served with the whole combination.
        pairs: (serving, failing) attempts that differ in just one flag of the combination.
        rivals: the next likeliest combinations behind the same failures, with their chances.
    """

    values: Mapping[str, Value]
    cause: str
    phase: Phase
    verdict: Verdict
    status: Status
    chance: float
    attempts_for: tuple[int, ...]
    attempts_against: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    rivals: tuple[tuple[Mapping[str, Value], float], ...] = ()


def table(axes: Sequence[Axis], history: Sequence[Evidence]) -> tuple[BlameRow, ...]:
    """Return the combinations that fail, one row a fault, then the blames that are refuted.

    Rows stand in the order of their first attempt.
    """
    known = telling(history)
    codes = table_of(Cells(axes, []))
    belief = believe(codes, known)
    rows = (
        [
            _row(codes, belief, (fault, likeliest.weight), known)
            for likeliest in map(_likeliest, belief.readings.values())
            for fault in likeliest.faults
        ]
        if known
        else []
    )
    rows.sort(key=lambda row: row.attempts_for[0])
    return (*rows, *_refuted(known, rows))


def flakes(axes: Sequence[Axis], history: Sequence[Evidence]) -> tuple[int, ...]:
    """Return failed attempts whose cell served when it was launched again."""
    served = {e.cell.key for e in telling(history) if e.verdict is Verdict.SERVING}
    names = {axis.name for axis in axes}
    return tuple(
        e.number
        for e in telling(history)
        if e.verdict is not Verdict.SERVING
        and e.cause is not None
        and e.cell.key in served
        and names.issuperset(e.cell.values)
    )


def _likeliest(readings: Sequence[Reading]) -> Reading:
    return max(readings, key=lambda reading: reading.weight)


def _row(
    codes: Table, belief: Belief, found: tuple[Fault, float], known: Sequence[Evidence]
) -> BlameRow:
    fault, weight = found
    best = int(fault.chances.argmax())
    failing = [n for member in fault.members for n in member.numbers]
    by_number = {entry.number: entry for entry in known}
    sample = by_number[failing[0]]
    flags = _flags(codes, belief, best)
    pairs = tuple(_pairs(flags, [by_number[n] for n in failing], known))
    shown = {
        flag
        for serving, failed in pairs
        for flag in by_number[serving].cell.difference(by_number[failed].cell)
    }
    proven = shown.issuperset(flags)
    return BlameRow(
        values={flag: sample.cell.get(flag) for flag in flags},
        cause=sample.cause or "",
        phase=sample.phase,
        verdict=sample.verdict,
        status=Status.PROVEN if proven else Status.SUPPORTED,
        chance=1.0 if proven else min(MOST_UNPROVEN, weight * float(fault.chances[best])),
        attempts_for=tuple(sorted(failing)),
        pairs=pairs,
        rivals=() if proven else tuple(_rivals(codes, belief, found, sample.cell)),
    )


def _flags(codes: Table, belief: Belief, combination: int) -> list[str]:
    return [codes.names[axis] for axis in np.flatnonzero(belief.space.bits[combination])]


def _rivals(
    codes: Table, belief: Belief, found: tuple[Fault, float], cell: Cell
) -> Iterator[tuple[Mapping[str, Value], float]]:
    """Yield what else may be behind the failures, likeliest first."""
    fault, weight = found
    for place in np.argsort(-fault.chances, kind="stable")[1 : 1 + _RIVALS]:
        chance = weight * float(fault.chances[place])
        if chance >= _LEAST_RIVAL:
            flags = _flags(codes, belief, int(place))
            yield {flag: cell.get(flag) for flag in flags}, chance


def _pairs(
    flags: Sequence[str], failing: Sequence[Evidence], known: Sequence[Evidence]
) -> Iterator[tuple[int, int]]:
    """Yield (serving, failing) attempts that differ in just one of the flags, one pair a flag.

    An attempt that serves where its very cell failed another time shows nothing.
    """
    unreliable = {entry.cell.key for entry in known if entry.verdict is not Verdict.SERVING}
    for flag in flags:
        pair = next(
            (
                (served.number, failed.number)
                for served in known
                if served.verdict is Verdict.SERVING and served.cell.key not in unreliable
                for failed in failing
                if served.cell.difference(failed.cell) == (flag,)
            ),
            None,
        )
        if pair:
            yield pair


def _refuted(known: Sequence[Evidence], rows: Sequence[BlameRow]) -> tuple[BlameRow, ...]:
    """Return values that a signature blamed and with which an attempt serves all the same."""
    named = {_words(row.values) for row in rows}
    found: dict[tuple[frozenset[tuple[str, str]], str], list[Evidence]] = {}
    for entry in known:
        for flag in entry.blames if entry.cause else ():
            words = _words({flag: entry.cell.get(flag)})
            if words not in named:
                found.setdefault((words, entry.cause or ""), []).append(entry)
    served = [entry for entry in known if entry.verdict is Verdict.SERVING]
    refuted = []
    for (words, cause), entries in found.items():
        flag = next(iter(words))[0]
        against = [e.number for e in served if _holds(e.cell, words)]
        if against:
            refuted.append(
                BlameRow(
                    values={flag: entries[0].cell.get(flag)},
                    cause=cause,
                    phase=entries[0].phase,
                    verdict=entries[0].verdict,
                    status=Status.REFUTED,
                    chance=0.0,
                    attempts_for=tuple(e.number for e in entries),
                    attempts_against=tuple(against),
                )
            )
    return tuple(refuted)


def _words(values: Mapping[str, Value]) -> frozenset[tuple[str, str]]:
    return frozenset((flag, spell(value)) for flag, value in values.items())


def _holds(cell: Cell, words: frozenset[tuple[str, str]]) -> bool:
    return all(spell(cell.get(flag)) == word for flag, word in words)
