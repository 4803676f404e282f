"""What a signature names beside the blame table, and what the attempts say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sglsweep.report.document import Code, Line, joined
from sglsweep.report.evidence import is_inert, key
from sglsweep.report.held import holds, value_in
from sglsweep.report.numbers import listed
from sglsweep.report.words import cell_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Blame, Outcome
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView


class _Named(NamedTuple):
    """A value that a signature names, and the attempts that speak for its innocence."""

    blame: Blame
    served: tuple[int, ...] = ()
    without: tuple[int, ...] = ()
    inert: tuple[int, ...] = ()

    @property
    def is_alone(self) -> bool:
        """True if nothing but the signature speaks of it."""
        return not (self.served or self.without or self.inert)


def by_signature(run: RunView, group: Group, said: set[str]) -> list[Line]:
    """Name what the signature implicates beside the table, with what speaks against it."""
    found = [_named(run, group, blame) for blame in _blames(group) if _flag_of(blame) not in said]
    alone: list[Line] = [(_word(item.blame),) for item in found if item.is_alone]
    lines: list[Line] = [("Suspected, by the signature alone: ", *joined(alone))] if alone else []
    told = [item for item in found if not item.is_alone]
    for opening in dict.fromkeys(_opening(item) for item in told):
        same = [_spoken_for(item) for item in told if _opening(item) == opening]
        lines.append((f"Named by the signature, but {opening}: ", *joined(same, "; ")))
    return lines


def _opening(item: _Named) -> str:
    if item.inert:
        return "without effect"
    return "not to blame by itself" if item.served else "not needed for it"


def _spoken_for(item: _Named) -> Line:
    """Name a value, with the attempts that speak for its innocence."""
    if item.inert:
        return (_word(item.blame), f" (it selects nothing in {listed(list(item.inert))})")
    numbers = item.served or item.without
    verb = "serve" if item.served else "fail"
    how = "with it" if item.served else "alike without it"
    verb = f"{verb}s" if len(numbers) == 1 else verb
    return (_word(item.blame), f" ({listed(list(numbers))} {verb} {how})")


def _blames(group: Group) -> Sequence[Blame]:
    """Return what the signature names, each flag's value once; without a value only if alone."""
    every = [b for o in group.outcomes for b in o.diagnosis.blames]
    valued = {_flag_of(b) for b in every if b.value is not None}
    found = {
        (_flag_of(b), str(b.value)): b
        for b in every
        if b.value is not None or _flag_of(b) not in valued
    }
    return tuple(found.values())


def _flag_of(blame: Blame) -> str:
    return key(blame.flag.removeprefix("effective."))


def _named(run: RunView, group: Group, blame: Blame) -> _Named:
    name = _flag_of(blame)
    inert = tuple(o.attempt.number for o in group.outcomes if is_inert(run, o, name))
    if inert or blame.value is None:
        return _Named(blame, inert=inert)
    served = [o for o in run.serving if holds(o, blame.flag, blame.value)]
    without = [
        o
        for o in group.outcomes
        if value_in(o, blame.flag) is not None and not holds(o, blame.flag, blame.value)
    ]
    return _Named(blame, tuple(_numbers(served)), tuple(_numbers(without)))


def _word(blame: Blame) -> Code:
    return Code(blame.flag if blame.value is None else cell_word(blame.flag, blame.value))


def _numbers(outcomes: Sequence[Outcome]) -> list[int]:
    return [o.attempt.number for o in outcomes]
