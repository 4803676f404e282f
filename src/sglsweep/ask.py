"""Ask a followed server one step of questions, while its log is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sglsweep.attempt import End, EndKind
from sglsweep.keeper_files import HttpAnswer
from sglsweep.probe.proof import Asked
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Attempt, ProofStep
    from sglsweep.keeper_files import Life
    from sglsweep.launch import Launched
    from sglsweep.probe.proof import ProofStepPlan
    from sglsweep.site import Site
    from sglsweep.triage.follow import Follower
    from sglsweep.watch import Decision

_LOOK_EVERY_S = 0.05
# An answer is written when a step's time is over; so much later the keeper itself is gone.
_ANSWER_S = 30.0
# After a broken connection the parent takes up to 5 s to say why and end; after a 5xx the
# scheduler that died is known at once or never.
_NO_ANSWER_S, _CRASH_S = 20.0, 8.0


class Followed(Protocol):
    """A launched attempt whose log is being followed."""

    @property
    def site(self) -> Site: ...  # noqa: D102 - the class says it
    @property
    def attempt(self) -> Attempt: ...  # noqa: D102
    @property
    def launched(self) -> Launched: ...  # noqa: D102
    @property
    def follower(self) -> Follower: ...  # noqa: D102
    @property
    def facts(self) -> Mapping[str, object]: ...  # noqa: D102
    @property
    def life(self) -> Life | None: ...  # noqa: D102

    def look(self) -> Decision:
        """Take what is new and judge it."""
        ...


def ask(followed: Followed, plan: ProofStepPlan) -> tuple[Asked, End | None]:
    """Ask one step; an end seen meanwhile (a crash, an exit) comes with its answers."""
    launched, clock = followed.launched, followed.site.clock
    number = launched.ask_http(
        plan.requests, concurrency=plan.concurrency, timeout_s=plan.timeout_s
    )
    began = clock.now()
    end: End | None = None
    answer: HttpAnswer | None = None
    numbers: dict[str, float] = {}
    while answer is None and end is None:
        clock.sleep(_LOOK_EVERY_S)
        answer = launched.answer(number)
        # The server may have died of this very question: whoever looks now hears why.
        looked = followed.look()
        end = looked if isinstance(looked, End) else None
        numbers = _higher(numbers, followed.life)
        if clock.now() - began > plan.timeout_s + _ANSWER_S:
            detail = f"the keeper gave no answer to step {plan.name}"
            end = end or End(kind=EndKind.HOST_LOST, detail=detail)
    answer = answer or launched.answer(number) or HttpAnswer(error="ended")
    asked = Asked(
        responses=answer.responses,
        listener=answer.listener,
        server_alive=launched.state().exited_at is None,
        log_is_fatal=followed.follower.terminal is not None,
        elapsed_s=clock.now() - began,
        numbers=numbers,
    )
    return asked, end


def _higher(numbers: dict[str, float], life: Life | None) -> dict[str, float]:
    """Keep the highest figures of the cards: memory of the fullest, power of all together."""
    if life is None:
        return numbers
    seen = {
        "gpu_used_mib": float(max(life.gpu_used_mib, default=0)),
        "gpu_power_w": float(sum(life.gpu_power_w)),
    }
    return {
        name: max(value, numbers.get(name, 0.0)) for name, value in seen.items() if value > 0
    } or numbers


def last_words(followed: Followed, failed: ProofStep) -> End:
    """Give the log a moment: a failed answer is often the first sign of a crash."""
    clock = followed.site.clock
    is_about_output = failed.verdict not in {None, Verdict.CRASH}
    patience = _NO_ANSWER_S if failed.verdict is None else _CRASH_S
    until = clock.now() + (0.0 if is_about_output else patience)
    while clock.now() < until or followed.follower.terminal is not None:
        looked = followed.look()
        if isinstance(looked, End):
            return looked
        clock.sleep(_LOOK_EVERY_S)
    detail = f"step {failed.name}: {failed.detail}"
    return End(kind=EndKind.PROOF_FAILED, detail=detail)
