"""Worlds: axes, and rules that say what each cell comes to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.matrix import spell
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.matrix import Axis, Cell, Value


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of values that fails, and how."""

    when: Mapping[str, Value]
    verdict: Verdict
    cause: str
    phase: Phase
    blames: tuple[str, ...] = ()

    def holds(self, cell: Cell) -> bool:
        """True if the cell has every value of `when`."""
        return _matches(self.when, cell)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What the engine makes of a combination: values that replace the requested ones."""

    when: Mapping[str, Value]
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A made-up host: which cells serve there, and how the others fail.

    Attributes:
        flake: chance that a serving cell fails at its first launch.
    """

    name: str
    axes: tuple[Axis, ...]
    rules: tuple[Rule, ...]
    resolve: tuple[Rewrite, ...] = ()
    flake: float = 0.0

    def effective(self, cell: Cell) -> Cell:
        """Return what the engine makes of a requested cell: the first rewrite that holds."""
        for rewrite in self.resolve:
            if _matches(rewrite.when, cell):
                return cell.with_values(rewrite.values)
        return cell


@dataclass(frozen=True, slots=True)
class Truth:
    """What a launch comes to in a world."""

    verdict: Verdict
    phase: Phase
    cause: str | None = None
    blames: tuple[str, ...] = ()


SERVES = Truth(Verdict.SERVING, Phase.DECODE)
FLAKES = Truth(Verdict.CRASH, Phase.DECODE, "flake")


def evaluate(world: World, effective: Cell, *, launch: int = 1, seed: int = 0) -> Truth:
    """Say what the `launch`-th launch of an effective cell comes to.

    The flake is a coin of the world, the seed and the cell, so a play can be repeated.
    """
    rule = deciding_rule(world, effective)
    if rule is not None:
        return Truth(rule.verdict, rule.phase, rule.cause, rule.blames)
    if launch == 1 and world.flake and _chance(world.name, seed, effective.key) < world.flake:
        return FLAKES
    return SERVES


def deciding_rule(world: World, effective: Cell) -> Rule | None:
    """Return the first rule that holds for an effective cell; None where it serves."""
    return next((rule for rule in world.rules if rule.holds(effective)), None)


def _matches(when: Mapping[str, Value], cell: Cell) -> bool:
    return all(spell(cell.get(name)) == spell(value) for name, value in when.items())


def _chance(*parts: object) -> float:
    digest = hashlib.sha256("\n".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
