"""The default strategy: launch the cell that most likely serves, by all that is known so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sglsweep.plan import why
from sglsweep.plan.belief import believe
from sglsweep.plan.clues import FINAL
from sglsweep.plan.explain import next_proof
from sglsweep.plan.forecast import walls
from sglsweep.plan.goal import Goal, goal_reached
from sglsweep.plan.hints import hinted
from sglsweep.plan.hypotheses import next_decision
from sglsweep.plan.ordered import ALL_TRIED
from sglsweep.plan.outlook import outlook
from sglsweep.plan.prior import trusted
from sglsweep.plan.start_up import WORTH_S, seconds
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.plan.table import table_of, telling, tried
from sglsweep.plan.wider import widened
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sglsweep.catalogue.startup import StartUp
    from sglsweep.matrix import Cells
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.hypotheses import Claim
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Table

AS_GOOD = 0.999
"""Cells this close to the best chance count as equal; the one with the fewest changes is taken."""
MOST_LAUNCHES = 2
"""Launches of one cell: a second failure alike is no flake."""
REPEAT_FROM = 0.2
"""A failed cell is launched again only where everything else gives it this chance to serve."""
ANOTHER_FROM = 0.3
"""Goal fastest looks for further serving cells among those with at least this chance."""
NEWS_FROM = 0.005
"""Goal map ends where no launch decides more than this."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Beliefs about faults from passes, causes, phases and blames; the likeliest cell next.

    A cell that failed may be launched again where everything else says that it should serve:
    its failure may be a flake. `priors` are attempts of earlier runs: they count as evidence by
    their weight, and not as tried. `claims` are the user's hypotheses, which the goals explain
    and map decide first. `hints` are what the catalogue knows not to work, `start_ups` what it
    knows to start sooner or later: that decides between cells that are as good.
    """

    seed: int
    goal: Goal
    priors: tuple[Evidence, ...] = ()
    claims: tuple[Claim, ...] = ()
    hints: tuple[Hint, ...] = ()
    start_ups: tuple[StartUp, ...] = ()

    def warned(self, hints: Sequence[Hint]) -> Adaptive:
        """Return the same with more that speaks against cells."""
        return replace(self, hints=(*self.hints, *hints)) if hints else self

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        """Return the cell with the best chance to serve, or what else the goal asks for."""
        if done := goal_reached(self.goal, history):
            return Finish(done)
        own = telling(history)
        known = [*telling(trusted(self.priors, own)), *own]
        if not len(cells):
            return Finish(ALL_TRIED)
        if not known:
            return self._start(cells)
        if self.goal is Goal.EXPLAIN and any(e.verdict is Verdict.SERVING for e in own):
            return next_decision(cells, own, self.claims) or next_proof(cells, own)
        if self.goal is Goal.MAP and own and (step := next_decision(cells, own, self.claims)):
            return step
        return self._best(cells, own, known)

    def _start(self, cells: Cells) -> Launch:
        """Return the user's own first cell; other seeds start elsewhere, to measure from there."""
        if not self.seed:
            return self._first(cells)
        index = int(np.random.default_rng(self.seed).integers(len(cells)))
        return Launch(cells[index], f"nothing is known yet: a cell drawn by seed {self.seed}")

    def _first(self, cells: Cells) -> Launch:
        known_bad = hinted(cells, self.hints, ())
        index = int(known_bad.factor.argmax())
        said = "nothing is known yet: the first cell as listed"
        if index and (hints := known_bad.against(0)):
            said += f" that the catalogue says nothing against ({why.named(hints[0])})"
        return Launch(cells[index], said)

    def _best(
        self, cells: Cells, own: Sequence[Evidence], known: Sequence[Evidence]
    ) -> Launch | Finish:
        table = table_of(widened(cells, known))
        belief = believe(table, known)
        seen = outlook(table.split, belief)
        published = hinted(cells, self.hints, known)
        chances = seen.chances * published.factor
        worth = seen.news * published.factor if self.goal is Goal.MAP else chances.copy()
        worth[_settled(table, own, chances)] = -1.0
        if done := self._nothing_left(float(worth.max())):
            return Finish(done)
        if self.goal is not Goal.MAP and (met := walls(table, known, belief)):
            return Finish(met[0].why)
        index, sooner = self._nearest_of_the_best(table, worth, known)
        odds = float(chances[index])
        said = why.sentence(table, index, known, belief, odds)
        if sooner:
            said += f"; as good as others, and ready some {sooner:.0f} s sooner"
        passed_over = worth / published.factor >= worth[index] * AS_GOOD
        return Launch(
            cells[index], said + why.published(published, index, passed_over), chance=odds
        )

    def _nothing_left(self, worth: float) -> str | None:
        if worth < 0:
            return ALL_TRIED
        if self.goal is Goal.MAP and worth < NEWS_FROM:
            return "what fails is decided: no further launch would tell more"
        if self.goal is Goal.FASTEST and worth < ANOTHER_FROM:
            return f"no other cell has a chance of {ANOTHER_FROM:.0%} to serve"
        return None

    def _nearest_of_the_best(
        self, table: Table, worth: NDArray[np.float64], known: Sequence[Evidence]
    ) -> tuple[int, float]:
        """Return the cell with the fewest changes, of those the one that is ready soonest.

        Also how much sooner than the slowest of them, in seconds; 0 where that decided nothing.
        """
        best = np.flatnonzero(worth >= worth.max() * AS_GOOD)
        furthest = max(range(len(known)), key=lambda i: (known[i].phase.order, i))
        base = table.encode([known[furthest].cell])[0]
        changes = np.count_nonzero(table.changed(table.codes[best], base), axis=1)
        best = best[changes == changes.min()]
        later = seconds(table, table.codes[best], known, self.start_ups)
        sooner = float(later.max() - later.min())
        is_worth_it = sooner >= WORTH_S
        if is_worth_it:
            best = best[later <= later.min() + WORTH_S]
        chance = np.random.default_rng([self.seed, len(known)])
        return int(best[int(chance.integers(len(best)))]), sooner if is_worth_it else 0.0


def _settled(
    table: Table, history: Sequence[Evidence], chances: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which cells need no further launch: tried, and nothing speaks for a flake."""
    launches: dict[str, int] = {}
    for entry in history:
        launches[entry.cell.key] = launches.get(entry.cell.key, 0) + 1
    closed = [
        entry
        for entry in history
        if entry.verdict is Verdict.SERVING
        or entry.verdict in FINAL
        or launches[entry.cell.key] >= MOST_LAUNCHES
    ]
    return tried(table, closed) | (tried(table, history) & (chances < REPEAT_FROM))
