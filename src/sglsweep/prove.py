"""Ask a ready server the proof's questions, then measure it as far as the sweep wants that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglsweep.ask import ask, last_words
from sglsweep.attempt import End, EndKind, Ladder, Proof, ProofStep, Quality, Soak, StepState
from sglsweep.events import StepAsked
from sglsweep.measure import climb, question, soak
from sglsweep.probe.proof import Asked, Session, from_launch
from sglsweep.triage.ending import Ending

if TYPE_CHECKING:
    from sglsweep.ask import Followed
    from sglsweep.probe.ladder import Climb
    from sglsweep.probe.proof import Target
    from sglsweep.probe.quality import Questioning
    from sglsweep.probe.soak import Soaking


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """What a ready server answered, and how the asking ended."""

    proof: Proof
    end: End
    server_info: Mapping[str, object] = field(default_factory=dict)
    ladder: Ladder | None = None
    soak: Soak | None = None
    quality: Quality | None = None


def prove(followed: Followed, keep: Callable[[Proved], None]) -> Proved:
    """Ask until a step fails, the server ends, or the proof holds; then measure.

    Args:
        followed: the attempt.
        keep: called with what is proven and measured so far, so that it outlives a Ctrl-C.
    """
    session = Session(_target(followed))
    end: End | None = None
    while end is None and (plan := session.next()) is not None:
        asked, end = ask(followed, plan) if plan.requests else (Asked(), None)
        step = session.judge(plan, asked)
        followed.site.listener.tell(StepAsked(attempt=followed.attempt, step=step))
    proved = Proved(
        proof=session.proof,
        end=end or End(kind=EndKind.PROVEN, detail="the proof holds"),
        server_info=session.server_info,
    )
    failed = proved.proof.first_failure
    if end is None and failed is not None:
        return replace(proved, end=last_words(followed, failed))
    if end is not None or not proved.proof.holds:
        return proved
    keep(proved)
    for measure in (_questioned, _climbed, _soaked):
        if proved.end.kind is EndKind.PROVEN and proved.proof.holds:
            proved = measure(followed, session.target, proved, keep)
            keep(proved)
    return proved


_Keep = Callable[[Proved], None]


def _questioned(followed: Followed, target: Target, proved: Proved, keep: _Keep) -> Proved:
    wanted = followed.site.probe.quality
    if wanted is None or not target.is_generation:
        return proved

    def told(questioning: Questioning) -> None:
        keep(replace(proved, quality=questioning.quality))

    done, end = question(followed, target, wanted, told)
    return replace(_with_step(followed, proved, done.step, end), quality=done.quality)


def _climbed(followed: Followed, target: Target, proved: Proved, keep: _Keep) -> Proved:
    traffic = followed.site.probe.traffic
    if traffic is None or not target.is_generation:
        return proved

    def told(ladder: Climb) -> None:
        so_far = replace(ladder.ladder, is_cut=True, ended_because="cut short")
        keep(replace(proved, ladder=so_far))

    done, end = climb(followed, target, traffic, told)
    return replace(_with_step(followed, proved, done.step, end), ladder=done.ladder)


def _soaked(followed: Followed, target: Target, proved: Proved, keep: _Keep) -> Proved:
    wanted = followed.site.probe
    if wanted.soak_s is None or not target.is_generation:
        return proved

    def told(soaking: Soaking) -> None:
        keep(replace(proved, soak=replace(soaking.soak, is_cut=True)))

    done, end = soak(followed, target, wanted.traffic, soak_s=wanted.soak_s, told=told)
    return replace(_with_step(followed, proved, done.step, end), soak=done.soak)


def _with_step(followed: Followed, proved: Proved, step: ProofStep, end: End | None) -> Proved:
    """Count what came after the proof as a step of it: a crash there is a crash."""
    followed.site.listener.tell(StepAsked(attempt=followed.attempt, step=step))
    proof = replace(proved.proof, steps=(*proved.proof.steps, step))
    if end is None and step.state is StepState.FAILED:
        end = last_words(followed, step)
    return replace(proved, proof=proof, end=end or proved.end)


def _target(followed: Followed) -> Target:
    """Return what is known of the server before it is asked."""
    attempt = followed.attempt
    return from_launch(
        followed.follower.server_args,
        _model_config(followed.facts, attempt.model),
        version=followed.follower.diagnose(Ending()).sglang_version,
        settings=replace(followed.site.probe, api_key=_api_key(attempt.argv)),
    )


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
