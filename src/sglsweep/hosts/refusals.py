"""What a machine refuses, in the same words whichever way it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePosixPath


def took_too_long(name: str, argv: Sequence[str], timeout_s: float) -> HostError:
    """Return the refusal for a command that had to be ended."""
    shown = " ".join(argv)[:120]
    return HostError(
        f"{name}: `{shown}` did not end within {timeout_s:g} s and was ended",
        next_step="Run it on the host by hand to see what it waits for.",
    )


def no_program(name: str, program: str, why: str) -> HostError:
    """Return the refusal for a program that is not there."""
    return HostError(
        f"{name}: cannot run {program}: {why}",
        next_step=f"Install {program} there, or give its full path.",
    )


def cannot_read(name: str, path: PurePosixPath, why: str) -> HostError:
    """Return the refusal for a file that is there and cannot be read."""
    return HostError(
        f"{name}: cannot read {path}: {why}",
        next_step="Check the path and its permissions on that machine.",
    )


def cannot_write(name: str, path: PurePosixPath, why: str) -> HostError:
    """Return the refusal for a file that could not be written; nothing of it is there."""
    return HostError(
        f"{name}: cannot write {path}: {why}",
        next_step="Check the path, its permissions and the free space on that machine.",
    )
