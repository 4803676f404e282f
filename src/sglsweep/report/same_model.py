"""Whether a serving cell is the model that was asked for: what it computes otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.catalogue.semantic import Difference, Kind, differences
from sglsweep.flags import canonical
from sglsweep.report.document import Line, Strong, joined, prose
from sglsweep.report.launches import flags_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome

_SHOWN = 160


def differs(outcome: Outcome) -> tuple[Difference, ...]:
    """Return what an attempt computes otherwise than the model's own configuration."""
    config = _config(outcome)
    architectures = config.get("architectures") if config else None
    known = architectures[0] if isinstance(architectures, list) and architectures else None
    model = str(known or outcome.diagnosis.metrics.get("model_class") or "")
    effective = outcome.diagnosis.effective or flags_of(outcome.attempt.argv)
    found = differences(effective, config=config, model=model)
    asked = {canonical(name) for name in flags_of(outcome.attempt.argv)}
    # A kernel that SGLang itself chooses is how that build computes this model.
    return tuple(d for d in found if d.kind is Kind.MODEL or d.flag in asked)


def _config(outcome: Outcome) -> Mapping[str, object] | None:
    models = outcome.facts.get("models")
    known = models.get(outcome.attempt.model) if isinstance(models, dict) else None
    config = known.get("config") if isinstance(known, dict) else None
    return config if isinstance(config, dict) else None


def same_model(outcome: Outcome) -> list[Line]:
    """Return the lines that say in what a server is not the model's own configuration."""
    found = differs(outcome)
    asked = {canonical(name) for name in flags_of(outcome.attempt.argv)}
    lines: list[Line] = []
    for kind, words in (
        (Kind.MODEL, (Strong("Differs from the model's own configuration"), " in: ")),
        (Kind.ROUNDING, ("The same model, rounded otherwise: ",)),
    ):
        some = [d for d in found if d.kind is kind]
        if some:
            lines.append((*words, *joined(_clauses(some, asked), "; "), "."))
    return lines


def _clauses(some: Sequence[Difference], asked: set[str]) -> list[Line]:
    return [
        (*prose(d.says, limit=_SHOWN), "" if d.flag in asked else f" (SGLang chose {d.flag})")
        for d in some
    ]
