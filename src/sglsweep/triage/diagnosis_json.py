"""A diagnosis as the JSON object that `sglsweep triage --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.attempt import Diagnosis

SCHEMA = 1


def to_json(diagnosis: Diagnosis, log_name: str) -> dict[str, object]:
    """Return the object, keys in the documented order."""
    return {
        "schema": SCHEMA,
        "catalogue": diagnosis.catalogue,
        "log": log_name,
        "verdict": str(diagnosis.verdict),
        "phase": str(diagnosis.phase),
        "cause": diagnosis.cause,
        "rank": diagnosis.rank,
        "line": diagnosis.line,
        "evidence": diagnosis.evidence,
        "blames": [{"flag": b.flag, "value": b.value} for b in diagnosis.blames],
        "suspects": [{"id": s.id, "line": s.line, "text": s.text} for s in diagnosis.suspects],
        "next_step": diagnosis.next_step,
        "remedy": {"set": dict(diagnosis.remedy)},
        "known_issues": [
            {"title": i.title, "url": i.url, "fixed_in": i.fixed_in}
            for i in diagnosis.known_issues
        ],
        "sglang_version": diagnosis.sglang_version,
        "requested": dict(diagnosis.requested),
        "effective": dict(diagnosis.effective),
        "milestones": {str(m): str(s) for m, s in diagnosis.milestones.items()},
        "metrics": dict(diagnosis.metrics),
        "confidence": diagnosis.confidence,
    }
