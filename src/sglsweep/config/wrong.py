"""A mistake that a validator found, on its way to the line it stands on."""

from __future__ import annotations

from pydantic_core import PydanticCustomError


def wrong(
    what: str, instead: str, *at: str | int, is_complete: bool = False
) -> PydanticCustomError:
    """Make the error a validator raises.

    Args:
        what: what is wrong, following the offending text ("is no duration").
        instead: a sentence.
        at: way down from the value validated to the place that is wrong.
        is_complete: `what` follows the place's name; its value is not worth repeating.
    """
    context = {"what": what, "instead": instead, "at": list(at), "complete": is_complete}
    return PydanticCustomError("wrong", "{what}", context)


def unknown_key(key: str, instead: str) -> PydanticCustomError:
    """Make the error for a key that a mapping may not hold."""
    context = {"what": f"unknown key '{key}'", "instead": instead, "at": [key], "key": key}
    return PydanticCustomError("wrong", "{what}", context)
