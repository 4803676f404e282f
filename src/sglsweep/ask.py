"""Ask a followed server one step of questions, while its log is followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sglsweep.attempt import End, EndKind
from sglsweep.keeper_files import HttpAnswer
from sglsweep.probe.log_lines import load_numbers
from sglsweep.probe.proof import Asked
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglsweep.attempt import Attempt, ProofStep
    from sglsweep.keeper_files import Life, ToolAnswer
    from sglsweep.launch import Launched
    from sglsweep.probe.load_tool import ToolCommand
    from sglsweep.probe.proof import ProofStepPlan
    from sglsweep.site import Site
    from sglsweep.triage.follow import Follower
    from sglsweep.watch import Decision

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited(Generic[T]):
    """What came while an answer was waited for.

    Attributes:
        answer: None if it did not come in time, or the attempt ended first.
        end: a crash, an exit, a stop seen meanwhile.
        numbers: the cards' highest figures, and what the log said of the load.
        log: what the log grew by.
    """

    answer: T | None
    end: End | None
    elapsed_s: float
    numbers: Mapping[str, float]
    log: bytes


def ask(followed: Followed, plan: ProofStepPlan) -> tuple[Asked, End | None]:
    """Ask one step; an end seen meanwhile (a crash, an exit) comes with its answers."""
    launched = followed.launched
    number = launched.ask_http(
        plan.requests, concurrency=plan.concurrency, timeout_s=plan.timeout_s
    )
    waited = wait_for(
        followed,
        lambda: launched.answer(number),
        within_s=plan.timeout_s + _ANSWER_S,
        what=f"step {plan.name}",
    )
    answer = waited.answer or launched.answer(number) or HttpAnswer(error="ended")
    asked = Asked(
        responses=answer.responses,
        listener=answer.listener,
        server_alive=launched.state().exited_at is None,
        log_is_fatal=followed.follower.terminal is not None,
        elapsed_s=waited.elapsed_s,
        numbers=waited.numbers,
        log=waited.log,
    )
    return asked, waited.end


def run_tool(followed: Followed, command: ToolCommand) -> Waited[ToolAnswer]:
    """Let a program run beside the server, while its log is followed."""
    launched = followed.launched
    number = launched.run_tool(
        command.argv, env=command.env, timeout_s=command.timeout_s, read=command.read
    )
    return wait_for(
        followed,
        lambda: launched.tool_answer(number),
        within_s=command.timeout_s + _ANSWER_S,
        what=" ".join(command.argv[:3]),
    )


def wait_for(
    followed: Followed, look: Callable[[], T | None], *, within_s: float, what: str
) -> Waited[T]:
    """Wait for an answer of the keeper's, or for the attempt's end."""
    clock, journal, number = followed.site.clock, followed.site.journal, followed.attempt.number
    began, log_from = clock.now(), journal.log_size(number)
    end: End | None = None
    answer: T | None = None
    numbers: dict[str, float] = {}
    while answer is None and end is None:
        clock.sleep(_LOOK_EVERY_S)
        answer = look()
        # The server may have died of this very question: whoever looks now hears why.
        looked = followed.look()
        end = looked if isinstance(looked, End) else None
        numbers = _higher(numbers, followed.life)
        if clock.now() - began > within_s:
            detail = f"the keeper gave no answer to {what}"
            end = end or End(kind=EndKind.HOST_LOST, detail=detail)
    log = journal.read_log(number, offset=log_from)
    return Waited(
        answer=answer,
        end=end,
        elapsed_s=clock.now() - began,
        numbers={**numbers, **load_numbers(log)},
        log=log,
    )


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
