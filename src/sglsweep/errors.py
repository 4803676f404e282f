"""Everything the tool refuses, each with the way out and an exit code.

SglsweepError
├── ConfigError       exit 2: what the user wrote is wrong
├── StorageError      exit 2: the controller's own disk refused
└── HostError         exit 3: the machine is unusable
└── HostUnreachable   the link failed; the machine may be fine
"""

from __future__ import annotations

from typing import ClassVar


class SglsweepError(Exception):
    """A refusal: what happened and where (`message`), what to do about it (`next_step`)."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, next_step: str) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


class ConfigError(SglsweepError):
    """The input is wrong: a file, an option, a flag, a value."""


class StorageError(SglsweepError):
    """The controller's own disk refused a write."""


class HostError(SglsweepError):
    """The host cannot do what was asked of it."""

    exit_code: ClassVar[int] = 3


class HostUnreachable(HostError):  # noqa: N818 - names what happened, like TimeoutExpired
    """The link to the host failed; says nothing about the attempt that runs there."""
