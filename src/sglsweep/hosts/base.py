"""The seam between the tool and a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command on the host said.

    Attributes:
        exit_status: negative for a signal, where the transport tells.
    """

    exit_status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text, undecodable bytes replaced."""
        return self.stdout.decode("utf-8", "replace")


class Host(Protocol):
    """One machine: run, read, write, close. Every implementation passes tests/hosts/contract.py.

    All methods raise HostUnreachable when the link fails after its own retries, HostError when
    the machine refuses. A command that exits non-zero is an Answer, not an exception.
    """

    name: str

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0) -> Answer:
        """Run a command without a shell (every word quoted) in the login user's home folder.

        Raises:
            HostError: it did not end within `timeout_s` (it is then ended), or no such program.
        """
        ...

    def read(self, path: PurePosixPath, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Return at most `limit` bytes from byte `offset`; b"" at the end or if absent."""
        ...

    def write(self, path: PurePosixPath, content: bytes, *, mode: int = 0o600) -> None:
        """Write the whole file or nothing: a temporary name beside it, then a rename.

        Missing parent folders are made, with mode 0700.
        """
        ...

    def home(self) -> PurePosixPath:
        """Return the login user's home folder, absolute."""
        ...

    def close(self) -> None:
        """Drop the link; what runs on the host goes on."""
        ...
