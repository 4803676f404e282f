"""What an attempt ran with: what SGLang made of a flag, else what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.report.launches import Change, changes, distance, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome, Scalar


def holds(outcome: Outcome, flag: str, value: Scalar) -> bool:
    """True if the attempt ran with this value: what SGLang made of it, else what was asked."""
    asked = word(value)
    found = value_in(outcome, flag)
    if found is None:
        return value is None and not flag.startswith("effective.")
    return found in {asked, *same_values(canonical(flag.removeprefix("effective.")), asked)}


def value_in(outcome: Outcome, flag: str) -> str | None:
    """Return the value an attempt ran with, as text; None where that is not known.

    `effective.FLAG` asks for nothing but what SGLang resolved.
    """
    name = canonical(flag.removeprefix("effective."))
    resolved = resolved_to(outcome, name)
    if resolved is not None or flag.startswith("effective."):
        return resolved
    text = {canonical(k): v for k, v in settings(outcome.attempt).items()}.get(name)
    if text is None:
        asked = outcome.attempt.cell.get(flag)
        return None if asked is None else word(asked)
    return "true" if text == "" else text


def resolved_to(outcome: Outcome, name: str) -> str | None:
    """Return what SGLang's own log says of a flag, by its newest name; None where it does not."""
    for key, value in outcome.diagnosis.effective.items():
        if value is not None and canonical(key.replace("_", "-")) == name:
            return word(value)
    return None


def word(value: Scalar) -> str:
    """Write a value as SGLang's log would."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def did_not_help(failing: Sequence[Outcome]) -> tuple[tuple[Change, int], ...]:
    """Return single changes after which the cause stayed the same, with the attempt."""
    found: dict[tuple[str, str | None], tuple[Change, int]] = {}
    for index, outcome in enumerate(failing):
        for earlier in failing[:index]:
            if distance(earlier, outcome) == 1:
                (made,) = changes(earlier, outcome)
                found.setdefault((made.name, made.after), (made, outcome.attempt.number))
    return tuple(found.values())
