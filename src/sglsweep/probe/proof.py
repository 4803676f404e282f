"""The proof that a server serves: one question after another until one is answered badly.

Pure: the caller asks, and tells what came back:

    session = Session(target)
    while (step := session.next()) is not None:
        asked = Asked() if not step.requests else ...
        session.judge(step, asked)
    session.proof
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.attempt import Proof, ProofStep, StepState
from sglsweep.probe import steps
from sglsweep.probe.judge import judge
from sglsweep.probe.plan import plan
from sglsweep.probe.refusals import Context
from sglsweep.probe.steps import ProofStepPlan
from sglsweep.probe.target import ProbeSettings, Target, from_launch, with_server_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.keeper_files import HttpResponse, Listener

__all__ = [
    "Asked",
    "Context",
    "ProbeSettings",
    "ProofStepPlan",
    "Session",
    "Target",
    "from_launch",
    "judge",
    "plan",
    "prove",
]

_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came back from one step, and what became of the server meanwhile.

    Attributes:
        listener: who holds the port now; None where nobody could tell.
        server_alive: the server's parent still lives.
        log_is_fatal: the log got a terminal line while the step was asked.
        elapsed_s: of the whole step.
        numbers: what the machine showed meanwhile (`gpu_used_mib`, `gpu_power_w`), and what the
            log said of the load.
        log: what the log grew by meanwhile.
    """

    responses: Sequence[HttpResponse] = ()
    listener: Listener | None = None
    server_alive: bool = True
    log_is_fatal: bool = False
    elapsed_s: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    log: bytes = b""


class Session:
    """The proof of one server: what to ask next, and what the answers made of it so far."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._planned = plan(target)
        self._done: list[ProofStep] = []

    def next(self) -> ProofStepPlan | None:
        """Return the next step; None when all are done or one has failed.

        A step without requests is judged like any other, with an empty `Asked`.
        """
        if self._done and self._done[-1].state in {StepState.FAILED, StepState.NOT_RUN}:
            return None
        position = len(self._done)
        return self._planned[position] if position < len(self._planned) else None

    def judge(self, step: ProofStepPlan, asked: Asked) -> ProofStep:
        """Take the answers to a step; what the server says of itself is used from then on."""
        context = Context(
            target=self.target,
            listener=asked.listener,
            server_alive=asked.server_alive,
            log_is_fatal=asked.log_is_fatal,
            elapsed_s=asked.elapsed_s,
        )
        self._done.append(judge(step, asked.responses, context))
        if step.name in {steps.ANSWERS, steps.SERVER_INFO}:
            bodies = [r.body for r in asked.responses if r.status == _OK]
            self.target = with_server_words(self.target, bodies)
            self._planned = plan(self.target)
        return self._done[-1]

    @property
    def proof(self) -> Proof:
        """The proof as it stands; steps that were not asked are in it as not run."""
        left = [
            ProofStep(name=step.name, state=StepState.NOT_RUN)
            for step in self._planned[len(self._done) :]
        ]
        load = next((s for s in self._done if s.name == steps.LOAD), None)
        speed = load.numbers.get("tokens_per_s") if load is not None else None
        concurrency = next((s.concurrency for s in self._planned if s.name == steps.LOAD), None)
        return Proof(
            steps=(*self._done, *left),
            tokens_per_s=None if speed is None else round(speed, 1),
            concurrency=None if speed is None else concurrency,
        )

    @property
    def server_info(self) -> Mapping[str, object]:
        """What the server said of itself, for the journal; no secret in it."""
        return self.target.words


def prove(target: Target, ask: Callable[[ProofStepPlan], Asked]) -> Session:
    """Ask one step after another until one fails, and return the finished session."""
    session = Session(target)
    while (step := session.next()) is not None:
        session.judge(step, ask(step) if step.requests else Asked())
    return session
