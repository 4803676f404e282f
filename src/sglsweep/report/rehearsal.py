"""From the command that a rehearsal ran to the SGLang command it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.report.launches import command

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt

_OURS = ("--world", "--time-scale", "--rehearsal")


def sglang_command(attempt: Attempt) -> str:
    """Return the command without what only the stand-in server takes."""
    kept: list[str] = []
    is_ours = False
    for word in attempt.argv:
        if word.startswith("--"):
            is_ours = word.startswith(_OURS)
        if not is_ours:
            kept.append("sglang.launch_server" if word == "sglsweep.rehearsal" else word)
    env = {name: text for name, text in attempt.env.items() if not name.startswith("SGLSWEEP_")}
    return command(replace(attempt, argv=tuple(kept), env=env, python="python3"))
