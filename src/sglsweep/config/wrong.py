"""A mistake that a validator found, on its way to the line it stands on."""

from __future__ import annotations

from pydantic_core import PydanticCustomError


def wrong(
    what: str, instead: str, *at: str | int, is_about_key: bool = False
) -> PydanticCustomError:
    """Make the error a validator raises.

    Args:
        what: what is wrong, following the offending text ("is no duration").
        instead: a sentence.
        at: way down from the value validated to the place that is wrong.
        is_about_key: `what` is complete as it stands, the value is not worth repeating.
    """
    context = {"what": what, "instead": instead, "at": list(at), "complete": is_about_key}
    return PydanticCustomError("wrong", "{what}", context)
