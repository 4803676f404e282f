"""What became of the remedy that the catalogue knows for a cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.report.document import Code, Line, joined
from sglsweep.report.held import holds
from sglsweep.report.launches import changes, distance
from sglsweep.report.numbers import listed
from sglsweep.report.words import cell_word, remedy_options
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Value
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A remedy and what the attempts say of it.

    Attributes:
        of: the attempt to launch again with it.
        tried: attempts that differ from a failing one in just the remedy.
        in_place: attempts that fail of the cause although they have it.
    """

    values: Mapping[str, Value]
    of: Outcome
    tried: tuple[Outcome, ...]
    in_place: tuple[Outcome, ...]


def remedies(run: RunView, group: Group) -> tuple[Remedy, ...]:
    """Return the different remedies for the failures of one cause."""
    found: dict[str, Outcome] = {}
    for outcome in group.outcomes:
        if outcome.diagnosis.remedy:
            found.setdefault(remedy_options(outcome.diagnosis.remedy), outcome)
    return tuple(_remedy(run, group, outcome) for outcome in found.values())


def _remedy(run: RunView, group: Group, of: Outcome) -> Remedy:
    values = of.diagnosis.remedy
    tried = tuple(
        o for o in run.evidence if any(_is_only(bad, o, values) for bad in group.outcomes)
    )
    in_place = tuple(o for o in group.outcomes if _has(o, values) and o not in tried)
    return Remedy(values=values, of=of, tried=tried, in_place=in_place)


def _is_only(bad: Outcome, other: Outcome, values: Mapping[str, Value]) -> bool:
    if distance(bad, other) != len(values):
        return False
    made = {canonical(change.name) for change in changes(bad, other)}
    return made == {canonical(name) for name in values} and _has(other, values)


def _has(outcome: Outcome, values: Mapping[str, Value]) -> bool:
    return all(holds(outcome, name, value) for name, value in values.items())


def remedy_line(run: RunView, remedy: Remedy) -> Line:
    """Say whether the remedy helped, or how to try it."""
    what = joined([(Code(cell_word(n, v)),) for n, v in remedy.values.items()], " and ")
    if remedy.tried:
        came_to = ", ".join(_came_to(o) for o in remedy.tried)
        return ("The catalogue's remedy, ", *what, f", was tried: {came_to}")
    if remedy.in_place:
        where = listed([o.attempt.number for o in remedy.in_place])
        verb = "fails" if len(remedy.in_place) == 1 else "fail"
        return ("The catalogue's remedy, ", *what, f", is no cure here: {where} {verb} with it")
    return ("The catalogue's remedy, not tried yet: ", Code(remedy_command(run, remedy)))


def remedy_command(run: RunView, remedy: Remedy) -> str:
    """Return the command that launches the failing attempt with the remedy."""
    return (
        f"sglsweep relaunch {run.run} {remedy.of.attempt.number} {remedy_options(remedy.values)}"
    )


def _came_to(outcome: Outcome) -> str:
    number = outcome.attempt.number
    if outcome.verdict is Verdict.SERVING:
        return f"{number} serves"
    return f"{number} came to {outcome.verdict.value} in {outcome.diagnosis.phase.value}"
