"""Ask a ready server the proof's questions, one at a time, while its log is followed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sglsweep.attempt import End, EndKind
from sglsweep.events import StepAsked
from sglsweep.keeper_files import HttpAnswer
from sglsweep.probe.proof import Asked, Session, from_launch
from sglsweep.triage.ending import Ending
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt, ProofStep
    from sglsweep.launch import Launched
    from sglsweep.probe.proof import ProofStepPlan, Target
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

    def look(self) -> Decision:
        """Take what is new and judge it."""
        ...


def prove(followed: Followed) -> tuple[Session, End]:
    """Ask until a step fails, the server ends, or the proof holds."""
    session = Session(_target(followed))
    end: End | None = None
    while end is None and (plan := session.next()) is not None:
        asked, end = _ask(followed, plan) if plan.requests else (Asked(), None)
        step = session.judge(plan, asked)
        followed.site.listener.tell(StepAsked(attempt=followed.attempt, step=step))
    failed = session.proof.first_failure
    if end is None and failed is not None:
        end = _last_words(followed, failed)
    return session, end or End(kind=EndKind.PROVEN, detail="the proof holds")


def _target(followed: Followed) -> Target:
    """Return what is known of the server before it is asked."""
    attempt = followed.attempt
    return from_launch(
        followed.follower.server_args,
        _model_config(followed.facts, attempt.model),
        version=followed.follower.diagnose(Ending()).sglang_version,
        settings=replace(followed.site.probe, api_key=_api_key(attempt.argv)),
    )


def _ask(followed: Followed, plan: ProofStepPlan) -> tuple[Asked, End | None]:
    """Ask one step; an end seen meanwhile (a crash, an exit) comes with its answers."""
    launched, clock = followed.launched, followed.site.clock
    number = launched.ask_http(
        plan.requests, concurrency=plan.concurrency, timeout_s=plan.timeout_s
    )
    began = clock.now()
    end: End | None = None
    answer: HttpAnswer | None = None
    while answer is None and end is None:
        clock.sleep(_LOOK_EVERY_S)
        answer = launched.answer(number)
        # The server may have died of this very question: whoever looks now hears why.
        looked = followed.look()
        end = looked if isinstance(looked, End) else None
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
    )
    return asked, end


def _last_words(followed: Followed, failed: ProofStep) -> End:
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


def _model_config(facts: Mapping[str, object], model: str) -> Mapping[str, object] | None:
    """Return the model's config.json as the host's facts hold it."""
    models = facts.get("models")
    known = models.get(model) if isinstance(models, dict) else None
    config = known.get("config") if isinstance(known, dict) else None
    return config if isinstance(config, dict) else None


def _api_key(argv: Sequence[str]) -> str | None:
    """Return what follows --api-key: `${NAME}` for a secret, which only the keeper resolves."""
    for at, word in enumerate(argv):
        if word == "--api-key":
            return argv[at + 1] if at + 1 < len(argv) else None
        if word.startswith("--api-key="):
            return word.partition("=")[2]
    return None
