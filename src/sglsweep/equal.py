"""Attempts that SGLang resolves to one and the same configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome

_INCIDENTAL = frozenset({"port", "host", "nccl_port", "dist_init_addr", "random_seed"})
"""What differs between any two launches and decides nothing."""


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
            if _may_speak_for(outcome, attempt) and _decisive(outcome.diagnosis.effective) == mine
        ),
        None,
    )


def _may_speak_for(outcome: Outcome, attempt: Attempt) -> bool:
    other = outcome.attempt
    return (
        other.build == attempt.build
        and dict(other.env) == dict(attempt.env)
        and other.launch_key != attempt.launch_key
        and outcome.verdict.is_evidence
        and outcome.end.kind is not EndKind.EQUAL
    )


def _decisive(args: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in args.items() if name not in _INCIDENTAL}
