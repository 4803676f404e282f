"""Goal fastest: which of the serving cells is it, by their ladders.

Every serving cell runs a short ladder. The fastest is launched once more and measured in full
before it is called the winner; so is a second one that comes close, since two launches of one
cell differ by some percent. What is equal within that noise is called equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.attempt import numbered
from sglsweep.plan.strategy import Finish, Launch
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome, Rung

NOISE = 0.05
"""Speeds this close are equal unless two launches of one cell differ by more."""
_LAUNCHES = 2
"""Launches of a cell before its speed is believed."""
_MOST_CUT = 3
"""Measurements of a cell that may be cut short before it is left."""


@dataclass(frozen=True, slots=True)
class _Runner:
    """One launch command and its attempts that served, in order; the first ran the heat."""

    outcomes: tuple[Outcome, ...]

    @property
    def number(self) -> int:
        return self.outcomes[0].attempt.number

    @property
    def heat(self) -> Rung | None:
        """The best rung of the first ladder; None where none keeps the objectives."""
        ladder = self.outcomes[0].ladder
        return None if ladder is None else ladder.best

    @property
    def speeds(self) -> list[float]:
        """The speed of each launch at the concurrency that was best in the heat.

        A launch beside others counts only while there is none that had the host to itself.
        """
        best = self.heat
        if best is None:
            return []
        alone = [o for o in self.outcomes if not o.end.beside]
        measured = [o.ladder for o in alone or self.outcomes if o.ladder is not None]
        rungs = [r for ladder in measured for r in ladder.rungs]
        return [r.tokens_per_s for r in rungs if r.concurrency == best.concurrency]

    @property
    def speed(self) -> float:
        speeds = self.speeds
        return sum(speeds) / len(speeds) if speeds else 0.0

    @property
    def was_alone(self) -> bool:
        """A launch had the host to itself."""
        return any(not o.end.beside for o in self.outcomes)

    @property
    def spread(self) -> float:
        """How far its launches lie apart, as a share."""
        speeds = self.speeds
        return (max(speeds) - min(speeds)) / max(speeds) if len(speeds) > 1 else 0.0


def mean_speed(outcomes: Sequence[Outcome]) -> float | None:
    """Return tokens a second of one launch command over its attempts, as the race ranks it.

    None where no attempt was measured; 0 where no rung keeps the objectives.
    """
    measured = tuple(o for o in outcomes if o.ladder is not None and o.ladder.rungs)
    return _Runner(measured).speed if measured else None


def next_heat(outcomes: Sequence[Outcome]) -> Launch | Finish:
    """Return what is still to be measured, or who won and by how much."""
    cut = _cut_short(outcomes)
    if cut is not None:
        why = f"attempt {cut.attempt.number} serves, and its measurement was cut short: once more"
        return Launch(cut.attempt.cell, why, relaunch_of=cut.attempt.number)
    runners = _runners(outcomes)
    if not runners:
        return Finish(_none_measured(outcomes))
    ranked = sorted(runners, key=lambda r: (-r.speed, r.number))
    leader, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    if leader.heat is None:
        return Finish("no serving cell keeps the objectives of `workload: {slo: ...}`")
    if again := _still_to_launch(leader, second):
        return again
    if second is None:
        return Finish(f"attempt {leader.number} is the fastest: {_said(leader)}, none to compare")
    return Finish(_result(leader, second))


def _still_to_launch(leader: _Runner, second: _Runner | None) -> Launch | None:
    """Return whose speed is not known well enough yet."""
    if len(leader.outcomes) < _LAUNCHES:
        return _again(leader, f"{_said(leader)}, the fastest so far: once more, before it is so")
    if second is None:
        return None
    if leader.was_alone and not second.was_alone:
        return _again(second, f"{_said(second)}, beside others: alone, to compare")
    if _is_equal(leader, second) and len(second.outcomes) < _LAUNCHES:
        return _again(second, f"{_said(second)}, equal to attempt {leader.number} so far: again")
    return None


def _runners(outcomes: Sequence[Outcome]) -> list[_Runner]:
    """Return launches that served and were measured, and never failed when repeated."""
    return [
        _Runner(tuple(o for o in same if _is_measured(o)))
        for same in _serving(outcomes)
        if any(_is_measured(o) for o in same)
    ]


def _cut_short(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the first launch whose every measurement was ended from outside (Ctrl-C).

    One that is cut short each time, by its deadline say, is not launched for ever.
    """
    for same in _serving(outcomes):
        measured = [o for o in same if o.ladder is not None]
        is_cut = bool(measured) and not any(_is_measured(o) for o in measured)
        if is_cut and len(measured) < _MOST_CUT:
            return measured[0]
    return None


def _none_measured(outcomes: Sequence[Outcome]) -> str:
    """Say why there is no race: nothing serves, or nothing that does could be measured."""
    serving = [same[0].attempt.number for same in _serving(outcomes)]
    if not serving:
        return "nothing serves, so nothing is the fastest"
    who = f"{numbered(serving)} {'serves' if len(serving) == 1 else 'serve'}"
    return f"{who}, but no speed was measured to the end, so nothing is the fastest"


def _is_measured(outcome: Outcome) -> bool:
    return outcome.ladder is not None and not outcome.ladder.is_cut


def _serving(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Return the attempts of each launch that served and never failed when repeated."""
    by_launch: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.is_evidence:
            by_launch.setdefault(outcome.attempt.launch_key, []).append(outcome)
    return [same for same in by_launch.values() if all(o.verdict is Verdict.SERVING for o in same)]


def _again(runner: _Runner, why: str) -> Launch:
    cell = runner.outcomes[0].attempt.cell
    said = f"attempt {runner.number}: {why}"
    return Launch(cell, said, is_final=True, relaunch_of=runner.number)


def _said(runner: _Runner) -> str:
    at = f" at {runner.heat.concurrency} at once" if runner.heat else ""
    launches = f" in {len(runner.speeds)} launches" if len(runner.speeds) > 1 else ""
    apart = f", {runner.spread:.0%} apart" if len(runner.speeds) > 1 else ""
    return f"{runner.speed:,.0f} tokens/s{at}{launches}{apart}"


def _is_equal(leader: _Runner, second: _Runner) -> bool:
    noise = max(NOISE, leader.spread, second.spread)
    return second.speed >= (1 - noise) * leader.speed


def _result(leader: _Runner, second: _Runner) -> str:
    if _is_equal(leader, second):
        return (
            f"attempts {leader.number} and {second.number} are equally fast within noise:"
            f" {_said(leader)}; {_said(second)}"
        )
    ahead = leader.speed / second.speed - 1 if second.speed else None
    by = "no other keeps the objectives" if ahead is None else f"{ahead:.0%} ahead of"
    than = "" if ahead is None else f" attempt {second.number} ({_said(second)})"
    return f"attempt {leader.number} is the fastest: {_said(leader)}, {by}{than}"
