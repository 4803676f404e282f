"""One command over one SSH channel."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING

from sglsweep.errors import HostError
from sglsweep.hosts.base import Answer
from sglsweep.hosts.refusals import no_program, took_too_long
from sglsweep.hosts.ssh_words import command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import paramiko

_SHORTEST_NAP_S = 0.001
_LONGEST_NAP_S = 0.02
_PIECE = 1 << 15
_LATE_PID_S = 10.0
# What `ssh` itself exits with when the host tells no status.
_NO_STATUS = 255


class Command:
    """A command that was sent, what it said so far, and the pid it told us."""

    def __init__(self, name: str, channel: paramiko.Channel, argv: Sequence[str]) -> None:
        self._name = name
        self._channel = channel
        self._argv = argv
        self._token = f"sglsweep-{secrets.token_hex(8)}"
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._stdin = memoryview(b"")
        self._is_stdin_open = True

    def run(self, stdin: bytes, timeout_s: float, end: Callable[[int], None]) -> Answer:
        """Send the command and wait for its end; `end` ends a pid's process group.

        Raises:
            HostError: too late (then it is ended), no such program, or no shell to run it.
            EOFError: the link broke. As other errors of the link it passes through.
        """
        self._stdin = memoryview(stdin)
        self._channel.settimeout(timeout_s)
        self._channel.exec_command(command_line(self._argv, self._token))
        if not self._wait(timeout_s):
            self._end(end)
            raise took_too_long(self._name, self._argv, timeout_s)
        return self._answer()

    def _wait(self, limit_s: float) -> bool:
        """Move bytes both ways until the end; False if that did not come in time."""
        until = time.monotonic() + limit_s
        nap_s = _SHORTEST_NAP_S
        while not self._has_ended():
            if self._move():
                nap_s = _SHORTEST_NAP_S
                continue
            if time.monotonic() > until:
                return False
            time.sleep(nap_s)
            nap_s = min(nap_s * 1.5, _LONGEST_NAP_S)
        return True

    def _has_ended(self) -> bool:
        channel = self._channel
        if channel.recv_ready() or channel.recv_stderr_ready():
            return False
        return channel.closed or (bool(channel.eof_received) and channel.exit_status_ready())

    def _move(self) -> bool:
        """Take what has come, send what is wanted; False if there was nothing to do."""
        channel = self._channel
        if channel.recv_ready():
            self._stdout += channel.recv(_PIECE)
            return True
        if channel.recv_stderr_ready():
            self._stderr += channel.recv_stderr(_PIECE)
            return True
        if self._stdin and channel.send_ready() and not channel.closed:
            self._send()
            return True
        if not self._stdin and self._is_stdin_open:
            self._is_stdin_open = False
            channel.shutdown_write()
            return True
        return False

    def _send(self) -> None:
        try:
            self._stdin = self._stdin[self._channel.send(bytes(self._stdin[:_PIECE])) :]
        except OSError:
            # It reads no more: its answer tells why, and a broken link shows by itself.
            self._stdin = memoryview(b"")

    def _end(self, end: Callable[[int], None]) -> None:
        pid = self._find_pid()
        until = time.monotonic() + _LATE_PID_S
        # A slow login shell may only now come to the command; it must not stay behind.
        while pid is None and not self._has_ended() and time.monotonic() < until:
            if not self._move():
                time.sleep(_LONGEST_NAP_S)
            pid = self._find_pid()
        if pid is not None:
            end(pid)

    def _find_pid(self) -> int | None:
        told = re.search(rb"%s (\d+)\n" % self._token.encode(), bytes(self._stderr))
        return int(told.group(1)) if told else None

    def _answer(self) -> Answer:
        status = self._channel.exit_status
        if status < 0 and not self._channel.get_transport().is_active():
            raise EOFError("the connection is gone")
        before, token, stdout = bytes(self._stdout).partition(self._token.encode() + b"\n")
        if not token:
            said = (before + bytes(self._stderr)).decode("utf-8", "replace").strip()
            raise HostError(
                f"{self._name}: the login shell runs no commands (exit {status}): {said[:200]}",
                next_step="Give that user a login shell, and no forced command, on the host.",
            )
        noise, told, stderr = _cut_line(bytes(self._stderr), self._token.encode())
        if told == b"missing":
            raise no_program(self._name, self._argv[0], "no such program")
        return Answer(
            exit_status=_NO_STATUS if status < 0 else status, stdout=stdout, stderr=noise + stderr
        )


def _cut_line(text: bytes, token: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what stood before the token's line, the line's second word, and what came after."""
    before, _, rest = text.partition(token + b" ")
    word, _, after = rest.partition(b"\n")
    return before, word, after
