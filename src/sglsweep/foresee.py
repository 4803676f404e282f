"""What a sweep would launch next if the attempt that runs now failed like nothing before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import Diagnosis, End, EndKind, Outcome
from sglsweep.sweep import next_step
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt
    from sglsweep.plan.strategy import Finish, Launch
    from sglsweep.sweep import Sweeping


def step_after(sweeping: Sweeping, attempt: Attempt) -> Launch | Finish:
    """Return the next step, supposing a failure of a cause of its own that blames nothing."""
    diagnosis = Diagnosis(
        verdict=Verdict.CRASH, phase=Phase.DECODE, cause=f"unknown:{attempt.number}"
    )
    supposed = Outcome(attempt=attempt, end=End(kind=EndKind.EXITED), diagnosis=diagnosis)
    return next_step(sweeping, supposing=(supposed,)).step
