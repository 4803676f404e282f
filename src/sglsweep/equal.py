"""Attempts that SGLang resolves to one and the same configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.plan.equal_cells import INCIDENTAL
from sglsweep.triage.effective import spelled
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome

_SECRETS = ("key", "token", "password", "secret")


def equal_outcome(
    attempt: Attempt, resolved: Mapping[str, object], history: Sequence[Outcome]
) -> Outcome | None:
    """Return a finished attempt of another spelling with the very same resolved arguments.

    Only where build and environment are the same too: what an environment variable does stands
    in no resolved argument. A relaunch is never compared: it was asked for.
    """
    if attempt.relaunch_of is not None or not resolved:
        return None
    mine = _decisive(resolved)
    return next(
        (
            outcome
            for outcome in history
            if _may_speak_for(outcome, attempt) and _is_same(mine, outcome.diagnosis.effective)
        ),
        None,
    )


def _may_speak_for(outcome: Outcome, attempt: Attempt) -> bool:
    other = outcome.attempt
    return (
        other.build == attempt.build
        and dict(other.own_env) == dict(attempt.own_env)
        and other.launch_key != attempt.launch_key
        and outcome.is_evidence
        and outcome.verdict is not Verdict.KILLED
        and outcome.end.kind is not EndKind.EQUAL
    )


def _decisive(args: Mapping[str, object]) -> dict[str, object]:
    """Return arguments by name of their flag, as a diagnosis has them."""
    return {spelled(name): value for name, value in args.items() if name not in INCIDENTAL}


def _is_same(mine: Mapping[str, object], effective: Mapping[str, object]) -> bool:
    """Compare printed arguments with a diagnosis, which also knows what was decided later.

    Both have a name for every argument but secrets, which a diagnosis leaves out.
    """
    shared = mine.keys() & effective.keys()
    told = {name for name in mine if name not in shared and mine[name] is not None}
    return (
        bool(shared)
        and not {name for name in told if not name.endswith(_SECRETS)}
        and all(mine[name] == effective[name] for name in shared)
    )
