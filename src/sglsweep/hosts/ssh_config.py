"""Where an SSH host is and how it wants to be reached: hosts.yaml first, then `~/.ssh/config`."""

from __future__ import annotations

import getpass
import glob
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import paramiko

from sglsweep.errors import ConfigError
from sglsweep.hosts.known_hosts import SSH_PORT, entry_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAX_JUMPS = 8
_DEFAULT_KEYS = ("id_rsa", "id_ecdsa", "id_ed25519")
_SYSTEM_KNOWN_HOSTS = (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """A host as hosts.yaml describes it; what is None comes from `~/.ssh/config` or its default.

    Attributes:
        name: what the user calls it; errors begin with it.
        host: a name or address, or an alias of `~/.ssh/config`; None = `name`.
        key: a private key file, tried first.
        jump: `[user@]host[:port]`, several joined by commas, as in `ssh -J`.
        known_hosts: instead of the user's and the system's files.
        password_env: environment variable that holds a password.
        passphrase_env: environment variable that opens encrypted key files; None = the
            password's.
        connect_timeout_s: for each machine on the way, key exchange and log-in included.
        patience_s: how long a link that was up may stay down before we give up.
        config: instead of `~/.ssh/config`.
    """

    name: str
    host: str | None = None
    user: str | None = None
    port: int | None = None
    key: str | None = None
    jump: str | None = None
    known_hosts: tuple[Path, ...] | None = None
    password_env: str | None = None
    passphrase_env: str | None = None
    connect_timeout_s: float = 15.0
    patience_s: float = 600.0
    config: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One machine on the way, everything about it resolved.

    Attributes:
        keys: files to try, in order.
        chosen_keys: the user named them; a missing one is worth a word.
        known_as: names under which its host key may be known, the preferred first.
        proxy_command: run it and speak through it; only ever on the first hop.
    """

    address: str
    port: int
    user: str
    keys: tuple[Path, ...]
    chosen_keys: bool
    identities_only: bool
    known_as: tuple[str, ...]
    known_hosts: tuple[Path, ...]
    proxy_command: str | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"


def resolve(target: SshTarget) -> tuple[Hop, ...]:
    """Return the machines to go through, the target last.

    Raises:
        ConfigError: the SSH configuration cannot be understood, or jumps in a circle.
    """
    asked = _Asked(target.host or target.name, target.user, target.port)
    options = _lookup(target, asked)
    jump = target.jump or options.get("proxyjump") or ""
    return (*_jumps(target, jump, seen=(asked,)), _hop(target, asked, options))


class _Asked(NamedTuple):
    """A machine as somebody spelled it: a name or an alias, and what wins over its entry."""

    alias: str
    user: str | None
    port: int | None


def _jumps(target: SshTarget, jump: str, seen: tuple[_Asked, ...]) -> tuple[Hop, ...]:
    """Return the hops of a ProxyJump; the first of them may itself need jumps."""
    if jump.strip().lower() == "none":
        return ()
    hops: list[Hop] = []
    for word in filter(None, map(str.strip, jump.split(","))):
        asked = _split_jump(word)
        if asked in seen or len(seen) > _MAX_JUMPS:
            way = " -> ".join(one.alias for one in (*seen, asked))
            raise ConfigError(
                f"{target.name}: the SSH jumps go in a circle: {way}",
                next_step="Correct ProxyJump in ~/.ssh/config, or `jump:` in hosts.yaml.",
            )
        options = _lookup(target, asked)
        if not hops:
            further = str(options.get("proxyjump") or "")
            hops.extend(_jumps(target, further, seen=(*seen, asked)))
        hops.append(_hop(target, asked, options))
    return tuple(hops)


def _split_jump(word: str) -> _Asked:
    """Split `[ssh://][user@]host[:port]`; an IPv6 address stands in brackets."""
    user, _, rest = word.removeprefix("ssh://").rstrip("/").rpartition("@")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = rest.partition(":")
    if not host or (port and not port.isdigit()):
        raise ConfigError(
            f"{word!r} is no machine to jump through",
            next_step="Write it as [user@]host[:port].",
        )
    return _Asked(host, user or None, int(port) if port else None)


def _hop(target: SshTarget, asked: _Asked, options: Mapping[str, Any]) -> Hop:
    address = str(options["hostname"])
    at_port = asked.port or int(options.get("port", SSH_PORT))
    named = ([target.key] if target.key else []) + list(options.get("identityfile", ()))
    keys = [Path(name).expanduser() for name in named if name.lower() != "none"]
    ssh = Path.home() / ".ssh"
    if not named:
        keys = [ssh / name for name in _DEFAULT_KEYS]
    return Hop(
        address=address,
        port=at_port,
        user=asked.user or options.get("user") or getpass.getuser(),
        keys=tuple(dict.fromkeys(keys)),
        chosen_keys=bool(named),
        identities_only=str(options.get("identitiesonly", "no")).lower() == "yes",
        known_as=_known_as(address, at_port, options),
        known_hosts=target.known_hosts or _known_hosts(options),
        proxy_command=options.get("proxycommand"),
    )


def _known_as(address: str, port: int, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a host key. As OpenSSH: without its port too, where that is known."""
    chosen = options.get("hostkeyalias")
    if chosen:
        return (str(chosen).lower(),)
    return tuple(dict.fromkeys((entry_name(address, port), address.lower())))


def _known_hosts(options: Mapping[str, Any]) -> tuple[Path, ...]:
    ssh = Path.home() / ".ssh"
    user = shlex.split(str(options.get("userknownhostsfile", ""))) or [
        str(ssh / "known_hosts"),
        str(ssh / "known_hosts2"),
    ]
    system = shlex.split(str(options.get("globalknownhostsfile", ""))) or _SYSTEM_KNOWN_HOSTS
    names = [str(name).replace("%d", str(Path.home())) for name in (*user, *system)]
    return tuple(Path(name).expanduser() for name in names if name.lower() != "none")


def _lookup(target: SshTarget, asked: _Asked) -> Mapping[str, Any]:
    """Return what `~/.ssh/config` says of a machine, tokens like %h and %p filled in."""
    file = target.config or Path.home() / ".ssh" / "config"
    # The first value wins: what was asked for stands before the file, as `ssh -p -l` puts it.
    first = ["Host *"]
    first += [f"Port {asked.port}"] if asked.port else []
    first += [f"User {asked.user}"] if asked.user else []
    config = paramiko.SSHConfig()
    try:
        config.parse([*first, *_with_includes(file, depth=0)])
        options: Mapping[str, Any] = config.lookup(asked.alias)
    except (paramiko.SSHException, KeyError, ValueError, ImportError) as error:
        raise ConfigError(
            f"{file}: what it says of {asked.alias} cannot be understood: {error}",
            next_step=f"Compare with `ssh -G {asked.alias}`, or write the fields into hosts.yaml.",
        ) from error
    return options


def _with_includes(file: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a file with those of its `Include`s, which paramiko leaves aside.

    After an included file the enclosing block goes on, as it does for OpenSSH.
    """
    max_depth = 16
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:
        return
    block = "Host *"
    for line in lines:
        words = line.strip().replace("=", " ", 1).split(None, 1)
        keyword = words[0].lower() if words else ""
        if keyword in {"host", "match"}:
            block = line
        if keyword != "include" or depth >= max_depth:
            yield line
            continue
        for pattern in shlex.split(words[1]):
            path = Path(pattern).expanduser()
            wanted = str(path if path.is_absolute() else Path.home() / ".ssh" / path)
            for found in sorted(glob.glob(wanted)):  # noqa: PTH207 - Path.glob takes no absolute pattern
                yield from _with_includes(Path(found), depth + 1)
        yield block
