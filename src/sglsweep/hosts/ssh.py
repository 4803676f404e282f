"""A machine behind SSH: strict host keys, links that may break, commands that never run twice."""

from __future__ import annotations

import contextlib
import secrets
import stat
import threading
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import paramiko

from sglsweep.errors import HostError, HostUnreachable
from sglsweep.hosts.refusals import cannot_read, cannot_write
from sglsweep.hosts.ssh_command import Command
from sglsweep.hosts.ssh_config import SshTarget, resolve
from sglsweep.hosts.ssh_link import Link, connect
from sglsweep.hosts.ssh_words import end_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sglsweep.hosts.base import Answer

__all__ = ["SshHost", "SshTarget"]

_T = TypeVar("_T")
_LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 10.0
# A request that gets no answer for so long is taken for a dead link.
_ANSWER_S = 30.0
# paramiko's SFTP fetches 32 KiB a round trip; from so many bytes on a command is faster.
_BULK_BYTES = 1 << 18
_BULK_S = 300.0
# sshd allows 10 sessions of one connection (MaxSessions); SFTP has one, ending a command another.
_COMMANDS_AT_ONCE = 8

_READ = (
    '[ -e "$1" ] || exit 0; [ -d "$1" ] && { echo is a directory >&2; exit 1; }; '
    '[ -r "$1" ] || { echo permission denied >&2; exit 1; }; '
    'tail -c "+$2" -- "$1" | head -c "$3"'
)
_WRITE = (
    'set -e; umask 077; if [ -d "$1" ]; then echo is a directory >&2; exit 1; fi; '
    'd=${1%/*}; [ -d "${d:-/}" ] || mkdir -p -- "$d"; '
    'trap "rm -f -- \\"$2\\"" EXIT; cat >"$2"; [ "$(wc -c <"$2")" -eq "$3" ]; '
    'chmod "$4" -- "$2"; mv -f -- "$2" "$1"'
)


class SshHost:
    """One machine behind SSH. Usable from several threads; connects when first used."""

    def __init__(self, target: SshTarget) -> None:
        self.name = target.name
        self._target = target
        self._lock = threading.RLock()
        self._link: Link | None = None
        self._sftp: paramiko.SFTPClient | None = None
        # paramiko's SFTP client drops answers that another thread waits for.
        self._sftp_turn = threading.Lock()
        self._commands = threading.BoundedSemaphore(_COMMANDS_AT_ONCE)
        self._has_sftp = True
        self._was_up = False
        self._home: PurePosixPath | None = None
        # A write that is done again after a broken link uses the same temporary name again.
        self._tag = secrets.token_hex(4)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0) -> Answer:
        """Run a command in the login user's home folder. See `Host.run`.

        A command killed by signal N is told as exit status 128+N. It is sent at most once: if the
        link breaks after that, HostUnreachable leaves open whether it ran.
        """
        with self._commands:
            channel = self._retried(_open_session)
            try:
                return self._run_over(channel, argv, stdin, timeout_s)
            except _LINK_ERRORS as error:
                raise self._broken(f"while `{argv[0]}` ran", error) from error

    def read(self, path: PurePosixPath, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Return a part of a file. See `Host.read`."""
        return self._retried(lambda link: self._read(link, path, offset, limit))

    def write(self, path: PurePosixPath, content: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file or nothing. See `Host.write`."""
        self._retried(lambda link: self._write(link, path, content, mode))

    def home(self) -> PurePosixPath:
        """Return the login user's home folder, asked once."""
        if self._home is None:
            answer = self.run(["/bin/sh", "-c", "cd && pwd"])
            self._home = PurePosixPath(answer.text.rstrip("\n"))
        return self._home

    def close(self) -> None:
        """Drop the link; what runs on the host goes on."""
        self._drop(self._link)

    def _connected(self) -> Link:
        with self._lock:
            if self._link is None or not self._link.is_alive:
                self._drop(self._link)
                self._link = connect(self._target, resolve(self._target))
                self._was_up = True
            return self._link

    def _drop(self, link: Link | None) -> None:
        """Close a link; one that another thread has put in its place stays."""
        with self._lock:
            if link is self._link:
                self._link = self._sftp = None
        if link is not None:
            link.close()

    def _retried(self, ask: Callable[[Link], _T]) -> _T:
        """Do something that may be done twice, over a new link where the old one breaks.

        A host that never answered is not waited for: a wrong address should be told at once.
        """
        down_since: float | None = None
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                return self._asked(ask)
            except HostUnreachable:
                now = time.monotonic()
                down_since = down_since or now
                if not self._was_up or now + backoff_s - down_since > self._target.patience_s:
                    raise
            time.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, _LONGEST_BACKOFF_S)

    def _asked(self, ask: Callable[[Link], _T]) -> _T:
        link = self._connected()
        try:
            return ask(link)
        except paramiko.ChannelException as error:
            raise HostError(
                f"{self.name}: the host opens no further session: {error.text}",
                next_step="Raise MaxSessions in the host's sshd_config.",
            ) from error
        except _LINK_ERRORS as error:
            self._drop(link)
            raise self._broken("", error) from error

    def _broken(self, when: str, error: Exception) -> HostUnreachable:
        said = str(error) or type(error).__name__
        return HostUnreachable(
            f"{self.name}: the link broke{' ' + when if when else ''}: {said}",
            next_step="Run the same sglsweep command again; it goes on where it was.",
        )

    def _run_over(
        self, channel: paramiko.Channel, argv: Sequence[str], stdin: bytes, timeout_s: float
    ) -> Answer:
        with contextlib.closing(channel):
            return Command(self.name, channel, argv).run(stdin, timeout_s, self._end)

    def _end(self, pid: int) -> None:
        """End the process group of a command of ours that still runs."""
        channel = self._retried(_open_session)
        with contextlib.closing(channel), contextlib.suppress(*_LINK_ERRORS):
            channel.settimeout(_ANSWER_S)
            channel.exec_command(end_line(pid))
            channel.recv(1)

    def _read(self, link: Link, path: PurePosixPath, offset: int, limit: int) -> bytes:
        sftp = self._sftp_of(link)
        if sftp is None:
            return self._read_by_command(link, path, offset, limit)
        try:
            with self._sftp_turn:
                found = self._read_over(sftp, path, offset, limit)
            if isinstance(found, bytes):
                return found
            return self._read_by_command(link, path, offset, found)
        except FileNotFoundError:
            return b""
        except OSError as error:
            if _is_of_link(sftp, error):
                raise
            raise cannot_read(self.name, path, str(error.strerror or error)) from error

    def _read_over(
        self, sftp: paramiko.SFTPClient, path: PurePosixPath, offset: int, limit: int
    ) -> bytes | int:
        """Return what is wanted, or only its size where that is too much for this way."""
        about = sftp.stat(str(path))
        if about.st_mode is not None and stat.S_ISDIR(about.st_mode):
            raise cannot_read(self.name, path, "is a directory")
        # Files of /proc have no size and yet something to read.
        rest = min(limit, about.st_size - offset) if about.st_size else limit
        if about.st_size and rest > _BULK_BYTES:
            return rest
        if rest <= 0:
            return b""
        with sftp.open(str(path), "rb") as file:
            file.seek(offset)
            return file.read(rest)

    def _read_by_command(self, link: Link, path: PurePosixPath, offset: int, limit: int) -> bytes:
        argv = ["/bin/sh", "-c", _READ, "sh", str(path), str(offset + 1), str(limit)]
        with self._commands:
            answer = self._run_over(_open_session(link), argv, b"", _BULK_S)
        if answer.exit_status:
            raise cannot_read(self.name, path, _last_line(answer))
        return answer.stdout

    def _write(self, link: Link, path: PurePosixPath, content: bytes, mode: int) -> None:
        temporary = path.with_name(f".{path.name}.{self._tag}-{threading.get_ident()}")
        sftp = self._sftp_of(link)
        if sftp is None:
            self._write_by_command(link, path, temporary, content, mode)
            return
        try:
            with self._sftp_turn:
                self._write_over(sftp, temporary, content, mode)
                sftp.posix_rename(str(temporary), str(path))
        except OSError as error:
            if _is_of_link(sftp, error):
                raise
            with self._sftp_turn, contextlib.suppress(OSError):
                sftp.remove(str(temporary))
            raise cannot_write(self.name, path, str(error.strerror or error)) from error

    @staticmethod
    def _write_over(
        sftp: paramiko.SFTPClient, path: PurePosixPath, content: bytes, mode: int
    ) -> None:
        try:
            file = sftp.open(str(path), "wb")
        except FileNotFoundError:
            _make_folder(sftp, path.parent)
            file = sftp.open(str(path), "wb")
        with file:
            file.chmod(mode)
            file.set_pipelined(True)
            file.write(content)

    def _write_by_command(
        self,
        link: Link,
        path: PurePosixPath,
        temporary: PurePosixPath,
        content: bytes,
        mode: int,
    ) -> None:
        argv = ["/bin/sh", "-c", _WRITE, "sh", str(path), str(temporary)]
        argv += [str(len(content)), f"{mode:o}"]
        with self._commands:
            answer = self._run_over(_open_session(link), argv, content, _BULK_S)
        if answer.exit_status:
            raise cannot_write(self.name, path, _last_line(answer))

    def _sftp_of(self, link: Link) -> paramiko.SFTPClient | None:
        """Return the link's SFTP session; None where the host offers none that works."""
        with self._lock:
            if self._sftp is None and self._has_sftp:
                channel = _open_session(link)
                channel.settimeout(_ANSWER_S)
                try:
                    channel.invoke_subsystem("sftp")
                    self._sftp = paramiko.SFTPClient(channel)
                except (paramiko.SFTPError, *_LINK_ERRORS):
                    if not link.is_alive:
                        raise
                    channel.close()
                    self._has_sftp = False
            return self._sftp


def _open_session(link: Link) -> paramiko.Channel:
    return link.transport.open_session(timeout=_ANSWER_S)


def _is_of_link(sftp: paramiko.SFTPClient, error: OSError) -> bool:
    """Tell a broken link from a refusal: paramiko raises OSError for both."""
    channel = sftp.get_channel()
    return isinstance(error, TimeoutError) or channel is None or channel.closed


def _make_folder(sftp: paramiko.SFTPClient, folder: PurePosixPath) -> None:
    """Make missing folders, each private."""
    try:
        sftp.mkdir(str(folder), 0o700)
    except FileNotFoundError:
        _make_folder(sftp, folder.parent)
        sftp.mkdir(str(folder), 0o700)


def _last_line(answer: Answer) -> str:
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit {answer.exit_status}"
