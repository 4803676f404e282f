"""Records to a diagnosis: verdict, cause, rank, what to do, and why the rest does not count."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import Diagnosis, Suspect
from sglsweep.catalogue.signature import Role, Tier
from sglsweep.triage import knowledge, metrics, resolve, unfailed
from sglsweep.triage.effective import changes, unseen
from sglsweep.triage.ending import Ending
from sglsweep.triage.milestones import milestones
from sglsweep.triage.rank import rank_of
from sglsweep.triage.reading import Reading
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.catalogue import Catalogue, Signature
    from sglsweep.triage.events import Event

BLOCK = 1 << 22
MAX_EVIDENCE = 2000


def diagnose(log: bytes, catalogue: Catalogue, *, ending: Ending | None = None) -> Diagnosis:
    """Return the whole answer about one log."""
    reading = Reading(catalogue)
    view = memoryview(log)
    for start in range(0, len(view), BLOCK):
        reading.feed(bytes(view[start : start + BLOCK]))
    return conclude(reading, catalogue, ending=ending)


def conclude(reading: Reading, catalogue: Catalogue, *, ending: Ending | None = None) -> Diagnosis:
    """Return what a reading amounts to; it can be fed further afterwards."""
    return explain(reading, catalogue, ending=ending)[0]


def explain(
    reading: Reading, catalogue: Catalogue, *, ending: Ending | None = None
) -> tuple[Diagnosis, resolve.Choice]:
    """Return the diagnosis with the candidates that lost, each with the reason."""
    done = reading.finished()
    choice = resolve.choose(done)
    event = choice.cause
    if event is None:
        diagnosis = unfailed.conclude(done, ending or Ending())
    else:
        diagnosis = _failure(done, event, catalogue, ending or Ending(), choice.first_fatal)
    complete = _completed(diagnosis, done, catalogue, has_failed=event is not None)
    return knowledge.informed(complete, catalogue), choice


def _completed(
    diagnosis: Diagnosis, reading: Reading, catalogue: Catalogue, *, has_failed: bool
) -> Diagnosis:
    failed = has_failed or diagnosis.verdict not in {
        Verdict.SERVING, Verdict.GRAPH_CAPTURE_OK, Verdict.INCOMPLETE,
    }  # fmt: skip
    return replace(
        diagnosis,
        suspects=_suspects(reading, diagnosis),
        sglang_version=reading.version,
        requested=reading.resolution.requested,
        effective=reading.resolution.effective(),
        milestones=milestones(reading.progress, has_failed=failed, phase=diagnosis.phase),
        metrics=metrics.summary(reading.numbers),
        catalogue=catalogue.version,
    )


# -- something failed ----------------------------------------------------------------------------


def _failure(
    reading: Reading,
    event: Event,
    catalogue: Catalogue,
    ending: Ending,
    first_fatal: Event | None,
) -> Diagnosis:
    explained = resolve.explains(event, reading)
    signature = event.signature
    if explained is not None:
        signature = catalogue.signatures.get("import-ignored-then-needed", signature)
    shown = explained or event
    phase = _phase(reading, event, first_fatal)
    text = shown.piece.text
    return Diagnosis(
        verdict=_verdict(signature, event),
        phase=phase,
        cause=signature.id if signature else unknown_cause(event),
        rank=rank_of(reading, event),
        line=shown.piece.line,
        evidence=_excerpt(shown),
        next_step=knowledge.next_step(signature, phase, text),
        blames=knowledge.blames(signature, reading.resolution.effective(), text),
        remedy=dict(signature.remedy) if signature else {},
        confidence=_confidence(signature, event, ending),
    )


def _phase(reading: Reading, event: Event, anchor: Event | None) -> Phase:
    """Return the furthest milestone before the event; without any, what all frames tell."""
    if reading.progress.has_milestone:
        begins = event.trace.head.line if event.trace else event.piece.line
        is_busy = event.phase is Phase.READY and 0 < reading.progress.first_busy < begins
        return Phase.DECODE if is_busy else event.phase
    related = [e for e in reading.events if anchor is None or resolve.is_one_event(e, anchor)]
    furthest = max([event.phase, *(e.phase for e in related)], key=lambda p: p.order)
    is_running = any("SIGQUIT received" in e.piece.text for e in related)
    return Phase.DECODE if is_running and furthest.order <= Phase.ARGS.order else furthest


def _verdict(signature: Signature | None, event: Event) -> Verdict:
    if signature is not None and signature.verdict is not None:
        return signature.verdict
    return resolve.verdict_of(event)


def unknown_cause(event: Event) -> str:
    """Return `unknown:` and a hash that equal failures of other ranks and runs share."""
    return "unknown:" + hashlib.sha256(headline(event).encode()).hexdigest()[:10]


def headline(event: Event) -> str:
    """Return an exception's line without addresses, numbers, ranks and paths."""
    text = event.piece.text.strip()
    if ":" not in text and event.trace is not None and event.trace.source is not None:
        text = f"{text}: {event.trace.source.text.strip()}"
    text = re.sub(r"0x[0-9a-fA-F]+", "#", text)
    text = re.sub(r"(?:/[\w.@+-]+){2,}", "PATH", text)
    text = re.sub(r"\b(?:[TDPE]P|rank ?)\d+", "RANK", text, flags=re.IGNORECASE)
    text = re.sub(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "#", text)
    return re.sub(r"\d+(?:\.\d+)?", "#", text)[:300]


def _excerpt(event: Event) -> str:
    shown = event.piece.shown
    if len(shown) <= MAX_EVIDENCE:
        return shown
    at = max(shown.find(event.piece.text[:80]), 0)
    return shown[at : at + MAX_EVIDENCE]


def _confidence(signature: Signature | None, event: Event, ending: Ending) -> str:
    if signature is None or signature.role is Role.CASCADE:
        return "low"
    if signature.tier is Tier.TRACE:
        return "medium" if ending.exit_status is not None else "low"
    if not event.is_fatal or signature.site == "exception":
        return "medium"
    return "high"


def _suspects(reading: Reading, diagnosis: Diagnosis) -> tuple[Suspect, ...]:
    found = [
        Suspect(
            name,
            event.piece.line,
            event.piece.text[:300] + (f" ({event.count} times)" if event.count > 1 else ""),
        )
        for name, event in reading.suspects.items()
        if event.piece.line != diagnosis.line
    ]
    told = {suspect.id for suspect in found}
    numbers = metrics.oddities(reading.numbers)
    found += [Suspect(name, 0, text) for name, text in numbers if name not in told]
    resolution = reading.resolution
    found += [
        Suspect("silent-override", 0, f"{flag}: asked {asked}, effective {got}")
        for flag, asked, got in changes(resolution.requested, resolution.effective())
    ]
    found += [
        Suspect("choice-unseen", 0, f"{flag}: auto; what it became is printed nowhere: unknown")
        for flag in unseen(resolution.effective())
    ]
    return tuple(sorted(found, key=lambda s: s.line))
