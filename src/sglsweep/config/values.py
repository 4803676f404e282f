"""Values of flags, axes, conditions and environment variables, as the file may write them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sglsweep.config.wrong import unknown_key, wrong
from sglsweep.flags import FlagValue
from sglsweep.matrix import Value, spell


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Stands for a value that the file leaves out (`flag:`); nobody can know what was meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoFraction:
    """`mem-fraction-static` solved by arithmetic instead of multiplied.

    Attributes:
        start: the fraction that attempts begin with.
        max: the highest that may be tried.
    """

    start: float
    max: float


def launch_value(value: object) -> FlagValue:
    """Read a flag's value: a scalar, a list of words, or a mapping that is passed as JSON text."""
    if isinstance(value, list):
        if not value:
            raise wrong("is an empty list", "Write at least one word, or null not to pass it.")
        return tuple(_word(item, index) for index, item in enumerate(value))
    return _value(value)


def _word(item: object, index: int) -> bool | int | float | str:
    value = _value(item, index)
    if value is None or isinstance(value, bool):
        raise wrong("is no word of a list", "Write words or numbers.", index)
    return value


def _value(value: object, *at: int) -> Value:
    if isinstance(value, Unwritten):
        raise wrong(
            "has no value",
            "Write true for a bare flag, its value, or null not to pass it.",
            *at,
            is_complete=True,
        )
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list):
        return json.dumps(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise wrong("is no value of a flag", "Write text, a number, true, false or null.", *at)


def axis_values(value: object) -> tuple[Value, ...] | AutoFraction:
    """Read an axis: a list of values, or `{auto: true, start, max}`."""
    if isinstance(value, dict):
        return _auto(value)
    if value is None or value == [] or isinstance(value, Unwritten):
        raise wrong("is empty", "List at least one value, or delete the axis.", is_complete=True)
    if not isinstance(value, list):
        raise wrong("is not a list", f"Write [{_shown(value)}].")
    values = tuple(_value(item, index) for index, item in enumerate(value))
    seen: dict[str, int] = {}
    for index, item in enumerate(values):
        if spell(item) in seen:
            raise wrong("stands twice on this axis", "Delete one of the two.", index)
        seen[spell(item)] = index
    return values


def _auto(value: dict[str, object]) -> AutoFraction:
    unknown = next((key for key in value if key not in {"auto", "start", "max"}), None)
    instead = "Write a list, or {auto: true, start: 0.85, max: 0.93}."
    if unknown is not None:
        raise unknown_key(unknown, instead)
    if value.get("auto") is not True:
        raise wrong("is no list of values", instead)
    start, highest = _fraction(value, "start", 0.85), _fraction(value, "max", 0.95)
    if start > highest:
        raise wrong(f"is above max {highest}", "Write a start at or below max.", "start")
    return AutoFraction(start=start, max=highest)


def _fraction(value: dict[str, object], key: str, default: float) -> float:
    number = value.get(key, default)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < 1:
        raise wrong("is no fraction of the memory", "Write a number between 0 and 1.", key)
    return float(number)


def only_value(value: object) -> tuple[Value, ...]:
    """Read one side of a condition: a value, or a list that means any of them."""
    if isinstance(value, list):
        if not value:
            raise wrong("is an empty list", "Write at least one value.")
        return tuple(_value(item, index) for index, item in enumerate(value))
    return (_value(value),)


def env_value(value: object) -> str | None:
    """Read an environment variable: text or a number; null removes one that a script sets."""
    if value is None:
        return None
    if isinstance(value, Unwritten):
        raise wrong(
            "has no value", 'Write "" for an empty text, null to remove it.', is_complete=True
        )
    if isinstance(value, bool):
        raise wrong(
            "is a boolean, an environment variable is text",
            f'Write "1" or "{str(value).lower()}".',
        )
    if isinstance(value, (int, float, str)):
        return str(value)
    raise wrong("is no text", "Write it in quotes.")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
