"""A real OpenSSH server on loopback, with keys of its own, as the user who runs the tests."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.hosts.ssh_config import SshTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_S = 20.0


def program(name: str) -> str:
    """Return a program of OpenSSH's, found where distributions put it."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        raise RuntimeError(
            f"no {name} on this machine: `make test` installs it (Debian: openssh-server)"
        )
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [program("ssh-keygen"), "-q", "-t", kind, "-N", passphrase, "-f", str(path)]
    subprocess.run([*command, "-C", "sglsweep-test"], check=True)
    return path


@dataclass
class Sshd:
    """One running server; `known_hosts` holds its key, `user_key` is let in."""

    folder: Path
    port: int
    user_key: Path
    known_hosts: Path
    process: subprocess.Popen[bytes]

    def target(self, name: str = "gpu-01", **changes: object) -> SshTarget:
        """Return how to reach it, with some fields changed."""
        fields: dict[str, object] = {
            "name": name,
            "host": "127.0.0.1",
            "user": getpass.getuser(),
            "port": self.port,
            "key": str(self.user_key),
            "known_hosts": (self.known_hosts,),
            "connect_timeout_s": 10.0,
            "patience_s": 15.0,
            "config": self.folder / "no-ssh-config",
        }
        return SshTarget(**{**fields, **changes})  # type: ignore[arg-type] # a test's own words

    def hosts_yaml(self, path: Path, *, name: str = "gpu-01", port: int | None = None) -> str:
        """Return a hosts.yaml that names this server, known to the home folder in `path`."""
        target, port = self.target(), port or self.port
        known = path / "home" / ".ssh"
        known.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = self.known_hosts.read_text()
        (known / "known_hosts").write_text(lines.replace(f":{self.port}", f":{port}"))
        ssh = f"{{host: 127.0.0.1, port: {port}, user: {target.user}, key: {target.key}}}"
        return f"{name}: {{ssh: {ssh}, workdir: {path}/work}}\n"

    def log(self) -> str:
        return (self.folder / "sshd.log").read_text("utf-8", "replace")


@contextlib.contextmanager
def running_sshd(folder: Path, *extra: str, kind: str = "ed25519") -> Iterator[Sshd]:
    """Start a server; `extra` are lines of its configuration, before ours (the first one wins)."""
    folder.mkdir(parents=True, exist_ok=True)
    host_key = make_key(folder / "host_key", kind=kind)
    user_key = make_key(folder / "user_key")
    authorized = folder / "authorized_keys"
    authorized.write_text(Path(f"{user_key}.pub").read_text())
    authorized.chmod(0o600)
    port = free_port()
    config = folder / "sshd_config"
    ours = _settings(folder, host_key, port)
    if not any(line.startswith("Subsystem") for line in extra):
        ours.append("Subsystem sftp internal-sftp")
    config.write_text("\n".join([*extra, *ours]) + "\n")
    public = Path(f"{host_key}.pub").read_text().split()
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    _make_separation_folder()
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [program("sshd"), "-D", "-e", "-f", str(config)], stdout=log, stderr=log
        )
    sshd = Sshd(folder, port, user_key, known_hosts, process)
    try:
        _wait_until_it_answers(sshd)
        yield sshd
    finally:
        process.terminate()
        process.wait(10)


def _settings(folder: Path, host_key: Path, port: int) -> list[str]:
    return [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {host_key}",
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin yes",
        "MaxStartups 100:30:200",
        "MaxSessions 50",
        "LogLevel VERBOSE",
    ]


def _make_separation_folder() -> None:
    """Make the empty folder that sshd wants when root starts it."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def _wait_until_it_answers(sshd: Sshd) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if sshd.process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", sshd.port), 1):
            return
        threading.Event().wait(0.02)
    raise RuntimeError(f"sshd did not start: {sshd.log()}")


class Gate:
    """A TCP relay in front of a server, that can be cut, kept shut, and opened again."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = threading.Event()
        self._open.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._passed = 0
        self._cut_at: int | None = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *, stay_shut: bool = False) -> None:
        """Break every connection; new ones are refused until `open` if it stays shut."""
        if stay_shut:
            self._open.clear()
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for sock in [sock for pair in pairs for sock in pair]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def cut_after(self, count: int) -> None:
        """Break the connections once so many more bytes have come from the server."""
        self._cut_at = self._passed + count

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.cut(stay_shut=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._target))
            self.connections += 1
            with self._lock:
                self._pairs.append((near, far))
            for source, sink, counts in ((near, far, False), (far, near, True)):
                relay = threading.Thread(
                    target=self._relay, args=(source, sink), kwargs={"counts": counts}, daemon=True
                )
                relay.start()

    def _relay(self, source: socket.socket, sink: socket.socket, *, counts: bool) -> None:
        try:
            while piece := source.recv(1 << 14):
                sink.sendall(piece)
                if counts:
                    self._count(len(piece))
        except OSError:
            pass
        finally:
            for sock in (source, sink):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            source.close()

    def _count(self, count: int) -> None:
        self._passed += count
        if self._cut_at is not None and self._passed >= self._cut_at:
            self._cut_at = None
            self.cut()
