"""What the catalogue adds to a named cause: narrower entries, flags, remedies, public reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import Blame
from sglsweep.catalogue.signature import compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Diagnosis, Scalar
    from sglsweep.catalogue import Catalogue, Signature
    from sglsweep.matrix import Value
    from sglsweep.verdict import Phase

_UNKNOWN_STEP = (
    "No signature knows this failure: look at the lines around it, and keep the log as a case "
    "(`sglsweep pull RUN N --as CAUSE/CASE`) so that the next one is named."
)


def informed(diagnosis: Diagnosis, catalogue: Catalogue) -> Diagnosis:
    """Return the diagnosis of a named cause with all that the catalogue knows about it.

    The cause may come from a log or from a proof; conditions are asked of its effective flags.
    """
    context = _context(diagnosis)
    for narrower in catalogue.signatures.values():
        if diagnosis.cause in narrower.refines and condition_holds(narrower.when, context):
            diagnosis = _narrowed(diagnosis, narrower)
            break
    return _with_issues(diagnosis, catalogue, context)


def _narrowed(diagnosis: Diagnosis, narrower: Signature) -> Diagnosis:
    text = diagnosis.evidence
    return replace(
        diagnosis,
        cause=narrower.id,
        verdict=narrower.verdict or diagnosis.verdict,
        next_step=next_step(narrower, diagnosis.phase, text),
        blames=blames(narrower, diagnosis.effective, text),
        remedy=dict(narrower.remedy),
    )


def _context(diagnosis: Diagnosis) -> dict[str, str]:
    """Return what conditions may ask for: effective flags, model, version, gpu."""
    context = {flag: str(value) for flag, value in diagnosis.effective.items()}
    facts = diagnosis.metrics
    names = (
        facts.get("model_class"),
        diagnosis.effective.get("model-path"),
        diagnosis.effective.get("architectures"),
    )
    context["model"] = " ".join(str(name) for name in names if name)
    context["version"] = diagnosis.sglang_version or ""
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


def next_step(signature: Signature | None, phase: Phase, text: str) -> str:
    """Return what to do about `signature`, struck in `phase` with `text` as its evidence."""
    return (signature.step_for(phase, text) if signature else "") or _UNKNOWN_STEP


def blames(
    signature: Signature | None, effective: Mapping[str, Scalar], text: str
) -> tuple[Blame, ...]:
    """Return the flags that `signature` implicates, with the values that they had.

    Of several, those that the log shows to be unset are left out.
    """
    if signature is None:
        return ()
    groups = signature.groups(text)
    found = []
    for blame in signature.blames:
        flag, value = _flag(blame.flag, groups), blame.value
        if isinstance(value, str) and value.startswith("$"):
            value = groups.get(value[1:])
        elif value is None:
            value = effective.get(flag)
        if flag:
            found.append(Blame(flag, value))
    found = [b for b in found if not _is_absent(b, effective)]
    known = [b for b in found if b.value is not None or b.flag not in effective]
    return tuple(known or found)


def _is_absent(blame: Blame, effective: Mapping[str, Scalar]) -> bool:
    """True for a part that this launch has not: unset it cannot be to blame."""
    is_a_part = blame.flag.startswith(("speculative-", "hicache-"))
    return is_a_part and blame.value is None and blame.flag in effective


def _flag(name: str, groups: Mapping[str, str | None]) -> str:
    """Return a flag's name; `$group` is what the pattern's group found."""
    if not name.startswith("$"):
        return name
    return (groups.get(name[1:]) or "").lstrip("-").replace("_", "-")


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
    remedy: dict[str, Value] = dict(diagnosis.remedy)
    for rule in rules:
        for flag, value in rule.remedy.items():
            remedy.setdefault(flag, value)
    return replace(diagnosis, known_issues=tuple(r.issue for r in rules), remedy=remedy)
