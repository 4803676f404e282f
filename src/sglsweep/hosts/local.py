"""This machine, through the same seam as every other."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from sglsweep.hosts.base import Answer
from sglsweep.hosts.refusals import cannot_read, cannot_write, no_program, took_too_long

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_GRACE_S = 2.0


class LocalHost:
    """The machine the controller itself runs on."""

    def __init__(self, name: str = "local") -> None:
        self.name = name

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0) -> Answer:
        """Run a command without a shell in the user's home folder. See `Host.run`."""
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.home(),
                start_new_session=True,
            )
        except OSError as error:
            raise no_program(self.name, argv[0], str(error.strerror or error)) from error
        with child:
            try:
                stdout, stderr = child.communicate(stdin, timeout=timeout_s)
            except subprocess.TimeoutExpired as error:
                _end_session(child)
                raise took_too_long(self.name, argv, timeout_s) from error
        return Answer(exit_status=child.returncode, stdout=stdout, stderr=stderr)

    def read(self, path: PurePosixPath, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Return a part of a file. See `Host.read`."""
        try:
            with Path(self.home() / path).open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise cannot_read(self.name, path, str(error.strerror or error)) from error

    def write(self, path: PurePosixPath, content: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file or nothing. See `Host.write`."""
        target = Path(self.home() / path)
        try:
            _make_folder(target.parent)
            number, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(content)
                    os.fchmod(file.fileno(), mode)
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise cannot_write(self.name, path, str(error.strerror or error)) from error

    def home(self) -> PurePosixPath:
        """Return the user's home folder."""
        return PurePosixPath(Path.home())

    def close(self) -> None:
        """Nothing to drop: there is no link."""


def _make_folder(folder: Path) -> None:
    """Make missing folders, each private; `mkdir(parents=True)` would open all but the last."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def _end_session(child: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.communicate(timeout=_END_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
