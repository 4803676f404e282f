"""The default strategy: launch the cell that most likely serves, by all that is known so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan import why
from sglsweep.plan.belief import believe
from sglsweep.plan.goal import Goal, goal_reached
from sglsweep.plan.ordered import ALL_TRIED
from sglsweep.plan.outlook import outlook
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import table_of, telling, tried
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from sglsweep.matrix import Cells
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Table

AS_GOOD = 0.999
"""Cells this close to the best chance count as equal; the one with the fewest changes is taken."""
ONCE = 1
MOST_LAUNCHES: Mapping[Verdict, int] = {
    Verdict.CRASH: 3,
    Verdict.KILLED: 3,
    Verdict.INCOMPLETE: 3,
    Verdict.GRAPH_CAPTURE_OK: 3,
    Verdict.NAN_IN_PROBS: 2,
    Verdict.DEVICE_ASSERT: 2,
    Verdict.CUDA_FAULT: 2,
    Verdict.HANG: 2,
    Verdict.COLLECTIVE_ERROR: 2,
}
"""Launches of one cell that ended so; any other failure comes again and is not asked twice."""
LEAST_TO_REPEAT, LEAST_TO_REPEAT_IN_A_MAP = 0.05, 0.5
"""A cell that failed is launched again only if its chance to serve is at least this: in a map
only where the failure contradicts what the rest says."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Beliefs about faults from passes, causes, phases and blames; the likeliest cell next.

    A cell that failed may be launched again where everything else says that it should serve:
    its failure may be a flake. `priors` are attempts of earlier runs: they count as evidence,
    not as tried.
    """

    seed: int
    goal: Goal
    priors: tuple[Evidence, ...] = ()

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the cell with the best chance to serve."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        known = telling([*self.priors, *history])
        if not len(cells):
            return Finish(ALL_TRIED)
        if not known:
            return Launch(cells[0], "nothing is known yet: the first cell as listed")
        table = table_of(cells)
        belief = believe(table, known)
        seen = outlook(table.split, belief)
        chances = seen.chances
        worth = seen.news if self.goal is Goal.MAP else chances.copy()
        least = LEAST_TO_REPEAT_IN_A_MAP if self.goal is Goal.MAP else LEAST_TO_REPEAT
        worth[_worn_out(table, telling(history), chances >= least)] = -1.0
        if worth.max() < 0:
            return Finish(ALL_TRIED)
        index = self._nearest_of_the_best(table, worth, known)
        return Launch(
            cells[index], why.sentence(table, index, known, belief, float(chances[index]))
        )

    def _nearest_of_the_best(
        self, table: Table, worth: NDArray[np.float64], known: Sequence[Evidence]
    ) -> int:
        best = np.flatnonzero(worth >= worth.max() * AS_GOOD)
        furthest = max(range(len(known)), key=lambda i: (known[i].phase.order, i))
        base = table.encode([known[furthest].cell])[0]
        changes = np.count_nonzero(table.codes[best] != base, axis=1)
        best = best[changes == changes.min()]
        chance = np.random.default_rng([self.seed, len(known)])
        return int(best[int(chance.integers(len(best)))])


def _worn_out(
    table: Table, history: Sequence[Evidence], may_serve: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which cells need no further launch: they served, or failed often enough.

    How often is enough depends on the verdict: SGLang refuses the same arguments again, a crash
    may be a flake. And a repeat must have a chance: it takes minutes of every GPU.
    """
    launches: dict[str, int] = {}
    for entry in history:
        launches[entry.cell.key] = launches.get(entry.cell.key, 0) + 1
    final = [
        entry
        for entry in history
        if entry.verdict is Verdict.SERVING
        or launches[entry.cell.key] >= MOST_LAUNCHES.get(entry.verdict, ONCE)
    ]
    return tried(table, final) | (tried(table, history) & ~may_serve)
