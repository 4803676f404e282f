"""What a rehearsal ran, and the SGLang command that it stands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from sglsweep.report.launches import command

if TYPE_CHECKING:
    from sglsweep.attempt import Attempt

MODULE = "sglsweep.rehearsal"
_OURS = ("--world", "--time-scale", "--rehearsal")


def is_rehearsal(attempt: Attempt) -> bool:
    """True if the stand-in server was launched."""
    return MODULE in attempt.argv


def sglang_words(attempt: Attempt) -> tuple[str, ...]:
    """Return what follows the interpreter, without what only the stand-in server takes."""
    kept: list[str] = []
    is_ours = False
    for word in attempt.argv:
        if word.startswith("--"):
            is_ours = word.startswith(_OURS)
        if not is_ours:
            kept.append("sglang.launch_server" if word == MODULE else word)
    return tuple(kept)


def sglang_command(attempt: Attempt) -> str:
    """Return the command for any machine, without what only the stand-in server takes."""
    return command(replace(attempt, argv=sglang_words(attempt), python="python3"))


def shown_argv(attempt: Attempt) -> tuple[str, ...]:
    """Return the words of a launch; of a rehearsal's world only the file's name is told."""
    if not is_rehearsal(attempt):
        return attempt.argv
    words = list(attempt.argv)
    for index, word in enumerate(words[:-1]):
        if word == "--world":
            words[index + 1] = PurePath(words[index + 1]).name
    return tuple(words)


def shown_command(attempt: Attempt) -> str:
    """Return the command as launched; a rehearsal's interpreter is the controller's own."""
    if not is_rehearsal(attempt):
        return command(attempt)
    return command(replace(attempt, argv=shown_argv(attempt), python="python3"))
