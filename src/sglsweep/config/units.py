"""Durations and shares as people write them."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d)\s*)+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def seconds(text: str) -> float | None:
    """Return the seconds of `40m`, `90s`, `1h30m`, `60ms`; None if it is no duration."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def share(value: object) -> float | None:
    """Return 0.25 for `25%` or 0.25; None if it is no share from 0 to 1."""
    if isinstance(value, str):
        found = _SHARE.fullmatch(value.strip())
        number = float(found.group(1)) / 100 if found else -1.0
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    else:
        return None
    return number if 0.0 <= number <= 1.0 else None
