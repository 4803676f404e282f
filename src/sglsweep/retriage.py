"""Diagnose stored logs again: the raw log is kept so that better knowledge can be applied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.drive import final_diagnosis, version_of
from sglsweep.triage.follow import Follower

if TYPE_CHECKING:
    from sglsweep.attempt import Diagnosis, Outcome
    from sglsweep.catalogue import Catalogue
    from sglsweep.journal import Journal


def retriage_run(journal: Journal, catalogue: Catalogue) -> list[str]:
    """Close every finished attempt with today's diagnosis; return one sentence for each change."""
    changes = []
    by_number: dict[int, Outcome] = {}
    for outcome in journal.history():
        new = _diagnosis(journal, outcome, catalogue, by_number)
        renewed = replace(outcome, diagnosis=new)
        by_number[outcome.attempt.number] = renewed
        if new != outcome.diagnosis:
            journal.close(renewed)
        if _shown(new) != _shown(outcome.diagnosis):
            old = _shown(outcome.diagnosis)
            changes.append(f"attempt {outcome.attempt.number}: {old} -> {_shown(new)}")
    return changes


def _diagnosis(
    journal: Journal, outcome: Outcome, catalogue: Catalogue, done: dict[int, Outcome]
) -> Diagnosis:
    follower = Follower(catalogue)
    follower.feed(journal.read_log(outcome.attempt.number, limit=outcome.end.stop_offset))
    twin = done.get(outcome.end.equal_to or 0)
    version = version_of(outcome.attempt.build, outcome.facts)
    return final_diagnosis(
        follower, outcome.end, outcome.proof, twin, outcome.server_info, version=version
    )


def _shown(diagnosis: Diagnosis) -> str:
    cause = f" ({diagnosis.cause})" if diagnosis.cause else ""
    line = f" line {diagnosis.line}" if diagnosis.line else ""
    return f"{diagnosis.verdict.value}{cause} in {diagnosis.phase.value}{line}"
