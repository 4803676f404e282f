"""Answers to waves of streamed requests, as 0.5.23 gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.proof import Asked

if TYPE_CHECKING:
    from sglsweep.probe.proof import ProofStepPlan

TEXT = "the sea was calm and the boats came home with their nets full of silver fish that day "


def streamed(text: str, tokens: int) -> str:
    """Events as 0.5.23 sends them on /v1/completions, the new text in each."""
    words = text.split(" ")
    events: list[dict[str, Any]] = [{"choices": [{"text": f"{w} "}]} for w in words]
    events[-1]["choices"][0]["finish_reason"] = "length"
    events.append({"choices": [], "usage": {"completion_tokens": tokens}})
    return "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"


def answered(step: ProofStepPlan, *, tokens_per_s: float, text: str = TEXT) -> Asked:
    """Every request served, the whole rung at this speed."""
    wall = step.tokens * len(step.requests) / tokens_per_s
    body = streamed(text, step.tokens)
    return Asked(
        responses=[
            HttpResponse(id=r.id, status=200, body=body, elapsed_s=wall, chunks=(0.1, wall))
            for r in step.requests
        ]
    )
