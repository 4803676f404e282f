"""Records to a diagnosis: verdict, cause, rank, what to do, and why the rest does not count."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import Blame, Diagnosis, KnownIssue, Suspect
from sglsweep.catalogue.signature import Role, Tier, compiled
from sglsweep.triage import metrics, resolve, unfailed
from sglsweep.triage.effective import changes
from sglsweep.triage.ending import Ending
from sglsweep.triage.milestones import milestones
from sglsweep.triage.rank import rank_of
from sglsweep.triage.reading import Reading
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar
    from sglsweep.catalogue import Catalogue, Signature
    from sglsweep.matrix import Value
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
    return _completed(diagnosis, done, catalogue, has_failed=event is not None), choice


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
    effective = reading.resolution.effective()
    context = _context(reading, effective)
    refined = _refined(signature, catalogue, context)
    shown = explained or event
    phase = event.phase
    if first_fatal is not None and not reading.progress.has_milestone:
        phase = max(phase, first_fatal.phase, key=lambda p: p.order)
    cause = refined.id if refined else unknown_cause(event)
    base = Diagnosis(
        verdict=_verdict(refined, event),
        phase=phase,
        cause=cause,
        rank=rank_of(reading, event),
        line=shown.piece.line,
        evidence=_excerpt(shown),
        next_step=_next_step(refined, phase, shown.piece.text),
        blames=_blames(refined, effective, shown.piece.text),
        remedy=dict(refined.remedy) if refined else {},
        confidence=_confidence(refined, event, ending),
    )
    return _with_issues(base, catalogue, context)


def _verdict(signature: Signature | None, event: Event) -> Verdict:
    if signature is not None and signature.verdict is not None:
        return signature.verdict
    return resolve.verdict_of(event)


def _refined(
    signature: Signature | None, catalogue: Catalogue, context: Mapping[str, str]
) -> Signature | None:
    """Return the narrower entry whose condition on the effective flags holds, else the same."""
    if signature is None:
        return None
    for narrower in catalogue.signatures.values():
        if signature.id in narrower.refines and condition_holds(narrower.when, context):
            return narrower
    return signature


def _context(reading: Reading, effective: Mapping[str, Scalar]) -> dict[str, str]:
    """Return what conditions may ask for: effective flags, model, version, gpu."""
    context = {flag: str(value) for flag, value in effective.items()}
    facts = reading.numbers.facts
    names = (facts.get("model_class"), effective.get("model-path"), effective.get("architectures"))
    context["model"] = " ".join(str(name) for name in names if name)
    context["version"] = reading.version or ""
    context["gpu"] = str(facts.get("gpu", ""))
    context["kv-dtype"] = str(facts.get("kv_dtype", ""))
    return context


def condition_holds(when: Mapping[str, str], context: Mapping[str, str]) -> bool:
    """Say whether every named value is known and matches; `!` in front turns one round.

    Several flags joined by `|` are one question: any of them may answer it.
    """
    for names, pattern in when.items():
        is_negated = pattern.startswith("!")
        rule = compiled(pattern.removeprefix("!"))
        found = any(rule.search(context.get(name, "")) for name in names.split("|"))
        if found is is_negated:
            return False
    return True


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


def _next_step(signature: Signature | None, phase: Phase, text: str) -> str:
    if signature is not None and (step := signature.step_for(phase, text)):
        return step
    return (
        "No signature knows this failure: look at the lines around it, and keep the log as a case "
        "(`sglsweep pull RUN N --as CAUSE/CASE`) so that the next one is named."
    )


def _blames(
    signature: Signature | None, effective: Mapping[str, Scalar], text: str
) -> tuple[Blame, ...]:
    if signature is None:
        return ()
    groups = signature.groups(text)
    found = []
    for blame in signature.blames:
        value: Value = blame.value
        flag = blame.flag
        if flag.startswith("$"):
            flag = (groups.get(flag[1:]) or "").lstrip("-").replace("_", "-")
            if not flag:
                continue
        if isinstance(value, str) and value.startswith("$"):
            value = groups.get(value[1:])
        elif value is None:
            value = effective.get(flag)
        found.append(Blame(flag, value))
    return tuple(found)


def _confidence(signature: Signature | None, event: Event, ending: Ending) -> str:
    if signature is None or signature.role is Role.CASCADE:
        return "low"
    if signature.tier is Tier.TRACE:
        return "medium" if ending.exit_status is not None else "low"
    if not event.is_fatal or signature.site == "exception":
        return "medium"
    return "high"


def _with_issues(
    diagnosis: Diagnosis, catalogue: Catalogue, context: Mapping[str, str]
) -> Diagnosis:
    rules = [
        rule
        for rule in catalogue.issues
        if diagnosis.cause in rule.causes
        and condition_holds(rule.when, context)
        and (not rule.evidence or compiled(rule.evidence).search(diagnosis.evidence))
    ]
    if not rules:
        return diagnosis
    remedy: dict[str, Value] = dict(diagnosis.remedy)
    for rule in rules:
        for flag, value in rule.remedy.items():
            remedy.setdefault(flag, value)
    issues: tuple[KnownIssue, ...] = tuple(rule.issue for rule in rules)
    return replace(diagnosis, known_issues=issues, remedy=remedy)


def _suspects(reading: Reading, diagnosis: Diagnosis) -> tuple[Suspect, ...]:
    found = [
        Suspect(
            name,
            event.piece.line,
            event.piece.text[:300] + (f" ({event.count} times)" if event.count > 1 else ""),
        )
        for name, event in reading.suspects.items()
        if name != diagnosis.cause and event.piece.line != diagnosis.line
    ]
    told = {suspect.id for suspect in found}
    numbers = metrics.oddities(reading.numbers)
    found += [Suspect(name, 0, text) for name, text in numbers if name not in told]
    resolution = reading.resolution
    found += [
        Suspect("silent-override", 0, f"{flag}: asked {asked}, effective {got}")
        for flag, asked, got in changes(resolution.requested, resolution.effective())
    ]
    return tuple(sorted(found, key=lambda s: s.line))
