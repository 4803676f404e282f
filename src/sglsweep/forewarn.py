"""What SGLang says about one launch before it is made: refused, or equal to a finished attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.expand.asked import Refused, State
from sglsweep.expand.resolved import equal_to
from sglsweep.plan.strategy import Evidence
from sglsweep.resolve import answers_about, can_ask
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Cell
    from sglsweep.prepare import Ground
    from sglsweep.resolve import Asking

NUMBER = 0
"""Stands where an attempt's number stands: a refused cell was never launched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What is known of a launch.

    Attributes:
        refused: SGLang's own words, where it would not start.
        equal: a finished attempt that it resolves to the same configuration.
        unknown: why nothing is known, where SGLang could not be asked.
    """

    refused: Refused | None = None
    equal: Outcome | None = None
    unknown: str = ""

    @property
    def evidence(self) -> Evidence | None:
        """What a refusal tells a planner: a failing cell, in phase args."""
        if self.refused is None:
            return None
        return Evidence(
            number=NUMBER,
            cell=self.refused.cell,
            verdict=self.refused.verdict,
            phase=Phase.ARGS,
            cause=self.refused.cause or None,
        )


def foresee_launch(
    ground: Ground, asking: Asking, cell: Cell, history: Sequence[Outcome]
) -> Foreseen:
    """Ask the cell's build about it, and about the finished attempts that it may equal.

    `resolve: false` in SWEEP.yaml asks nothing.
    """
    if not ground.sweep.resolve or not can_ask(ground):
        return Foreseen()
    build = ground.sweep.build_of(cell).name
    done = [
        o
        for o in history
        if o.attempt.build == build and o.is_evidence and o.end.kind is not EndKind.EQUAL
    ]
    cells = {c.key: c for c in (cell, *(o.attempt.cell for o in done))}
    asked, why = answers_about(ground, asking, build, list(cells.values()))
    if asked is None:
        return Foreseen(unknown=why)
    answer = asked.answers.get(cell.key)
    if answer is None or answer.state is State.UNKNOWN:
        return Foreseen(unknown=answer.error if answer else "")
    if answer.state is State.REFUSED:
        return Foreseen(refused=Refused.by(cell, answer))
    twins = equal_to(asked, cell, [c for c in cells.values() if c != cell])
    same = {twin.key for twin in twins} | {cell.key}
    return Foreseen(equal=next((o for o in reversed(done) if o.attempt.cell.key in same), None))
