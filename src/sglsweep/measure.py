"""After the proof: how many requests at once a server bears, how fast, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.ask import ask
from sglsweep.attempt import ProofStep, StepState
from sglsweep.events import StepAsked
from sglsweep.probe.ladder import Climb
from sglsweep.probe.soak import Soaking

if TYPE_CHECKING:
    from sglsweep.ask import Followed
    from sglsweep.attempt import End, Rung
    from sglsweep.probe.target import Target, Traffic

_LADDER_S = 1800.0
"""No further rung is begun after this long."""


def climb(followed: Followed, target: Target, traffic: Traffic) -> tuple[Climb, End | None]:
    """Climb the ladder; an end seen meanwhile comes with what was measured until then."""
    ladder, clock = Climb(target, traffic), followed.site.clock
    began = clock.now()
    end: End | None = None
    while end is None and (plan := ladder.next()) is not None:
        asked, end = ask(followed, plan)
        rung = ladder.judge(plan, asked)
        if rung is not None:
            followed.site.listener.tell(
                StepAsked(attempt=followed.attempt, step=_told(rung, plan.name))
            )
        if clock.now() - began > _LADDER_S:
            ladder.stop(f"its {_LADDER_S / 60:.0f} minutes are over")
    return ladder, end


def _told(rung: Rung, name: str) -> ProofStep:
    first, each = rung.numbers.get("ttft_p99_s"), rung.numbers.get("tpot_p50_s")
    words = [f"{rung.tokens_per_s:.0f} tokens/s"]
    words += [f"first token {first * 1000:.0f} ms at p99"] if first is not None else []
    words += [f"{each * 1000:.1f} ms a token"] if each is not None else []
    words += [f"{rung.errors} of {rung.requests} failed"] if rung.errors else []
    words += ["beyond the objectives"] if rung.meets_slo is False else []
    return ProofStep(name=name, state=StepState.OK, detail=", ".join(words))


def soak(
    followed: Followed, target: Target, traffic: Traffic | None, *, soak_s: float
) -> tuple[Soaking, End | None]:
    """Keep asking at a modest load for so long."""
    soaking, clock = Soaking(target, traffic, soak_s=soak_s), followed.site.clock
    began = clock.now()
    end: End | None = None
    while end is None and (plan := soaking.next(clock.now() - began)) is not None:
        asked, end = ask(followed, plan)
        soaking.judge(plan, asked)
    return soaking, end
