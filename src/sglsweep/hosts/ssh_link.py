"""One authenticated SSH connection, through as many machines as it takes."""

from __future__ import annotations

import logging
import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import paramiko

from sglsweep.errors import HostError
from sglsweep.hosts.known_hosts import SSH_PORT, KnownKey, find_keys, fingerprint
from sglsweep.hosts.ssh_login import Login, no_answer

if TYPE_CHECKING:
    from sglsweep.hosts.ssh_config import Hop, SshTarget

_KEEPALIVE_S = 15
# Unanswered bytes older than this break the connection, instead of the kernel's 15 minutes.
_DEAD_LINK_MS = 45_000
_RSA = ("rsa-sha2-512", "rsa-sha2-256")

# paramiko logs tracebacks of what we translate and report.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


@dataclass(slots=True)
class Link:
    """The connection to the target, and those it goes through.

    Attributes:
        proxy: the ProxyCommand that carries it.
    """

    transports: list[paramiko.Transport] = field(default_factory=list)
    proxy: subprocess.Popen[bytes] | None = None

    @property
    def transport(self) -> paramiko.Transport:
        """The connection to the target itself."""
        return self.transports[-1]

    @property
    def is_alive(self) -> bool:
        """Every connection on the way is up, as far as anyone has noticed."""
        return bool(self.transports) and all(one.is_active() for one in self.transports)

    def close(self) -> None:
        """Close everything, the last first."""
        for transport in reversed(self.transports):
            transport.close()
        if self.proxy is not None:
            with self.proxy:
                self.proxy.kill()


def connect(target: SshTarget, hops: tuple[Hop, ...]) -> Link:
    """Connect and log in.

    Raises:
        HostUnreachable: a machine does not answer.
        HostError: a host key is not the known one, or no key or password was accepted.
    """
    link = Link()
    try:
        for at, hop in enumerate(hops):
            until = time.monotonic() + target.connect_timeout_s
            sock = _open(target, hop, link)
            link.transports.append(_begin(target, hop, sock, until, via=hops[:at]))
            Login(target, hop, link.transport).run()
    except BaseException:
        link.close()
        raise
    return link


def _open(target: SshTarget, hop: Hop, link: Link) -> socket.socket | paramiko.Channel:
    try:
        if link.transports:
            return link.transport.open_channel(
                "direct-tcpip", (hop.address, hop.port), ("", 0), timeout=target.connect_timeout_s
            )
        if hop.proxy_command:
            return _run_proxy(link, hop.proxy_command)
        sock = socket.create_connection((hop.address, hop.port), target.connect_timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_LINK_MS)
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise no_answer(target, hop, error) from error
    return sock


def _run_proxy(link: Link, command: str) -> socket.socket:
    """Run a ProxyCommand on a socket of its own; paramiko's own way polls pipes."""
    near, far = socket.socketpair()
    with far:
        link.proxy = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=far.fileno(),
            stdout=far.fileno(),
            start_new_session=True,
        )
    return near


def _begin(
    target: SshTarget,
    hop: Hop,
    sock: socket.socket | paramiko.Channel,
    until: float,
    *,
    via: tuple[Hop, ...],
) -> paramiko.Transport:
    """Exchange keys and check the host's."""
    known: list[KnownKey] = []
    for name in hop.known_as:
        known = known or find_keys(list(hop.known_hosts), name)
    transport = paramiko.Transport(sock)
    transport.banner_timeout = transport.handshake_timeout = target.connect_timeout_s
    transport.auth_timeout = target.connect_timeout_s
    try:
        _prefer_known_kinds(transport, known)
        transport.start_client(timeout=max(0.1, until - time.monotonic()))
        blob = transport.get_remote_server_key().asbytes()
        kind = transport.get_remote_server_key().get_name()
    except (OSError, EOFError, paramiko.SSHException) as error:
        transport.close()
        raise no_answer(target, hop, error) from error
    try:
        _check_host_key(target, hop, known, (kind, blob), via)
    except HostError:
        transport.close()
        raise
    transport.set_keepalive(_KEEPALIVE_S)
    return transport


def _prefer_known_kinds(transport: paramiko.Transport, known: list[KnownKey]) -> None:
    """Ask for a host key of a kind that we can compare, as OpenSSH does."""
    options = transport.get_security_options()
    offered = tuple(options.key_types)
    kinds = {key.kind for key in known}
    wanted = [kind for kind in offered if kind in kinds or (kind in _RSA and "ssh-rsa" in kinds)]
    options.key_types = (*wanted, *(kind for kind in offered if kind not in wanted))


def _check_host_key(
    target: SshTarget,
    hop: Hop,
    known: list[KnownKey],
    shown: tuple[str, bytes],
    via: tuple[Hop, ...],
) -> None:
    kind, blob = shown
    same = [key for key in known if key.blob == blob]
    revoked = [key for key in same if key.is_revoked]
    if revoked:
        raise HostError(
            f"{target.name}: {hop.address} shows a revoked host key, {kind} {fingerprint(blob)} "
            f"({revoked[0].file}:{revoked[0].line})",
            next_step="Do not connect. Ask the host's administrator for its new key.",
        )
    if same:
        return
    others = [key for key in known if key.kind == kind and not key.is_revoked]
    if others:
        old = others[0]
        raise HostError(
            f"{target.name}: the host key of {hop.address} has changed: it shows {kind} "
            f"{fingerprint(blob)}, known is {fingerprint(old.blob)} ({old.file}:{old.line})",
            next_step="If the machine was installed anew: "
            f"ssh-keygen -f {old.file} -R '{hop.known_as[0]}'; otherwise somebody may be "
            "in between.",
        )
    raise HostError(
        f"{target.name}: the host key of {hop.address}, port {hop.port}, is unknown: "
        f"{kind} {fingerprint(blob)}",
        next_step="Compare that fingerprint with the host's own, then: "
        + _command_that_adds(hop, kind, blob, via),
    )


def _command_that_adds(hop: Hop, kind: str, blob: bytes, via: tuple[Hop, ...]) -> str:
    file = hop.known_hosts[0]
    first = "" if file.parent.exists() else f"mkdir -p -m 700 {file.parent} && "
    if via or hop.known_as[0] not in {hop.address.lower(), f"[{hop.address.lower()}]:{hop.port}"}:
        # ssh-keyscan neither jumps nor knows of HostKeyAlias.
        line = (
            f"{hop.known_as[0]} {kind} {paramiko.PKey.from_type_string(kind, blob).get_base64()}"
        )
        return f"{first}echo '{line}' >> {file}"
    port = "" if hop.port == SSH_PORT else f"-p {hop.port} "
    scan = kind.removeprefix("ssh-").partition("-")[0]
    return f"{first}ssh-keyscan -t {scan} {port}{hop.address} >> {file}"
