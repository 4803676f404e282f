"""A deadline under a measurement says nothing of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from sglsweep.attempt import End, EndKind, StepState
from sglsweep.clock import SystemClock
from sglsweep.keeper_files import HttpAnswer
from sglsweep.measure import climb, question, soak
from sglsweep.probe.target import QualitySettings, Target, Traffic

if TYPE_CHECKING:
    from sglsweep.ask import Followed
    from sglsweep.probe.ladder import Climb
    from sglsweep.probe.quality import Questioning
    from sglsweep.probe.soak import Soaking

TARGET = Target(context=4096, kv_tokens=8192, max_running=8, vocab=512)
DEADLINE = End(kind=EndKind.DEADLINE, detail="the attempt's deadline passed on the host")


@dataclass
class Passed:
    """An attempt whose deadline passes while the first question is open."""

    site: object = field(
        default_factory=lambda: SimpleNamespace(
            clock=SystemClock(),
            journal=SimpleNamespace(log_size=lambda _: 0, read_log=lambda *_, **__: b""),
            listener=SimpleNamespace(tell=lambda _: None),
        )
    )
    attempt: object = field(default_factory=lambda: SimpleNamespace(number=1))
    launched: object = field(
        default_factory=lambda: SimpleNamespace(
            ask_http=lambda *_, **__: 1,
            answer=lambda _: HttpAnswer(error="stopped"),
            state=lambda: SimpleNamespace(exited_at=None),
        )
    )
    follower: object = field(default_factory=lambda: SimpleNamespace(terminal=None))
    life: None = None

    def look(self) -> End:
        """Say that the time is over."""
        return DEADLINE


def measured(what: str) -> tuple[Climb | Soaking | Questioning, End | None]:
    followed = cast("Followed", Passed())
    traffic = Traffic(input=32, output=16, rungs=(1,), tool="own")
    match what:
        case "ladder":
            return climb(followed, TARGET, traffic, lambda _: None)
        case "soak":
            return soak(followed, TARGET, traffic, soak_s=60.0, told=lambda _: None)
        case _:
            return question(followed, TARGET, QualitySettings(), lambda _: None)


@pytest.mark.parametrize("what", ["ladder", "soak", "quality"])
def test_a_deadline_fails_no_step(what: str) -> None:
    done, end = measured(what)
    assert end == DEADLINE
    assert done.step.state is not StepState.FAILED, done.step


def test_what_was_cut_short_says_so() -> None:
    ladder, _ = measured("ladder")
    assert ladder.step.detail == f"cut short: {DEADLINE.detail}"
    soaking, _ = measured("soak")
    assert f"cut short: {DEADLINE.detail}" in soaking.step.detail
