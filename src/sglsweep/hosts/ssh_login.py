"""Logging in: agent, key files, password, and words for what the host did not accept."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, NoReturn

import paramiko
from paramiko.pkey import PublicBlob, UnknownKeyType

from sglsweep.errors import HostError, HostUnreachable
from sglsweep.hosts.known_hosts import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglsweep.hosts.ssh_config import Hop, SshTarget


def no_answer(target: SshTarget, hop: Hop, error: Exception) -> HostUnreachable:
    """Return the refusal for a machine that cannot be reached, in words a person can act on."""
    where = f"{hop.address}, port {hop.port}"
    if isinstance(error, socket.gaierror):
        return HostUnreachable(
            f"{target.name}: no machine is called {hop.address}",
            next_step="Correct `host:` in hosts.yaml, or HostName in ~/.ssh/config.",
        )
    if isinstance(error, ConnectionRefusedError):
        return HostUnreachable(
            f"{target.name}: {where} refuses the connection",
            next_step="Check the port, and that sshd runs there.",
        )
    if isinstance(error, paramiko.ChannelException):
        said = f"cannot be reached from the machine before it: {error.text}"
    elif isinstance(error, TimeoutError):
        said = f"does not answer within {target.connect_timeout_s:g} s"
    else:
        said = f"does not speak SSH with us: {str(error) or type(error).__name__}"
    return HostUnreachable(
        f"{target.name}: {where} {said}",
        next_step=f"Try `ssh -v -p {hop.port} {hop.user}@{hop.address}` from this machine.",
    )


class Login:
    """Tries what the user has, in the order of OpenSSH, and remembers what it tried."""

    def __init__(self, target: SshTarget, hop: Hop, transport: paramiko.Transport) -> None:
        self._target = target
        self._hop = hop
        self._transport = transport
        self._tried: list[str] = []
        self._allowed: list[str] = []
        self._password = os.environ.get(target.password_env or "") or None
        self._passphrase = os.environ.get(target.passphrase_env or "") or self._password

    def run(self) -> None:
        """Log in.

        Raises:
            HostError: nothing was accepted; the message lists what was tried.
            HostUnreachable: the connection broke meanwhile.
        """
        try:
            self._allowed = self._ask_what_is_allowed()
            if self._allowed and not self._with_keys() and not self._with_password():
                self._refuse()
        except paramiko.AuthenticationException as error:
            self._tried.append(f"then the host ended it: {error}")
            self._refuse()
        except (OSError, EOFError, paramiko.SSHException) as error:
            if self._tried:
                # sshd hangs up after MaxAuthTries, six keys by default.
                self._tried.append("then the host hung up")
                self._refuse()
            raise no_answer(self._target, self._hop, error) from error

    def _ask_what_is_allowed(self) -> list[str]:
        """Return the methods of the host; empty if it lets us in without any."""
        try:
            self._transport.auth_none(self._hop.user)
        except paramiko.BadAuthenticationType as error:
            return list(error.allowed_types)
        return []

    def _with_keys(self) -> bool:
        if "publickey" not in self._allowed:
            return False
        with contextlib.closing(paramiko.Agent()) as agent:
            for what, key in self._keys(agent):
                self._tried.append(what)
                try:
                    # What is left to do, where a key alone is not enough for the host.
                    self._allowed = self._transport.auth_publickey(self._hop.user, key)
                except paramiko.BadAuthenticationType:
                    raise
                except paramiko.AuthenticationException:
                    if not self._transport.is_active():
                        raise
                else:
                    return not self._allowed
        return False

    def _keys(self, agent: paramiko.Agent) -> Iterator[tuple[str, paramiko.PKey]]:
        held = self._held_by(agent)
        chosen = {blob for blob in map(_public_blob, self._hop.keys) if blob}
        first = [key for key in held if key.asbytes() in chosen]
        rest = [] if self._hop.identities_only else [key for key in held if key not in first]
        yield from ((f"agent key {fingerprint(key.asbytes())}", key) for key in first)
        files = [(f"key file {file}", key) for file in self._hop.keys if (key := self._load(file))]
        if self._hop.chosen_keys:
            yield from files
            yield from ((f"agent key {fingerprint(key.asbytes())}", key) for key in rest)
        else:
            yield from ((f"agent key {fingerprint(key.asbytes())}", key) for key in rest)
            yield from files

    def _held_by(self, agent: paramiko.Agent) -> list[paramiko.PKey]:
        try:
            return list(agent.get_keys())
        except paramiko.SSHException as error:
            self._tried.append(f"agent ({error})")
            return []

    def _load(self, file: Path) -> paramiko.PKey | None:
        try:
            return _load_key(file, self._passphrase)
        except FileNotFoundError:
            if self._hop.chosen_keys:
                self._tried.append(f"key file {file} (absent)")
        except _Encrypted:
            env = self._target.passphrase_env or self._target.password_env
            why = f"${env} does not open it" if env else "encrypted, and no passphrase variable"
            self._tried.append(f"key file {file} ({why})")
        except (OSError, ValueError, paramiko.SSHException, UnknownKeyType) as error:
            self._tried.append(f"key file {file} ({type(error).__name__})")
        return None

    def _with_password(self) -> bool:
        methods = {"password", "keyboard-interactive"}
        if self._password is None or not methods.intersection(self._allowed):
            return False
        self._tried.append(f"password of ${self._target.password_env}")
        try:
            return not self._transport.auth_password(self._hop.user, self._password)
        except paramiko.AuthenticationException:
            return False

    def _refuse(self) -> NoReturn:
        tried = "; ".join(self._tried) or "nothing: there is no agent and no key file"
        takes = f"; the host takes {', '.join(self._allowed)}" if self._allowed else ""
        raise HostError(
            f"{self._target.name}: {self._hop} let us in with none of these: {tried}{takes}",
            next_step="Set `key:` in hosts.yaml (or IdentityFile with IdentitiesOnly in "
            "~/.ssh/config), and see that its public half stands in the host's "
            "~/.ssh/authorized_keys.",
        )


class _Encrypted(Exception):  # noqa: N818 - names what happened
    """A key file needs a passphrase, or another one."""


def _load_key(file: Path, passphrase: str | None) -> paramiko.PKey:
    """Return a private key; tries without a passphrase first, so that none is wasted."""
    try:
        return paramiko.PKey.from_path(file)
    except (paramiko.PasswordRequiredException, TypeError) as error:
        if passphrase is None:
            raise _Encrypted from error
    try:
        return paramiko.PKey.from_path(file, passphrase.encode())  # type: ignore[arg-type] # cryptography wants bytes
    except (ValueError, TypeError, paramiko.SSHException) as error:
        raise _Encrypted from error


def _public_blob(file: Path) -> bytes | None:
    """Return the public half that lies beside a key file, to know it among the agent's."""
    try:
        with open(f"{os.fspath(file)}.pub", encoding="utf-8") as text:  # noqa: PTH123 - a suffix of any name
            return PublicBlob.from_string(text.read()).key_blob
    except (OSError, ValueError):
        return None
