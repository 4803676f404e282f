"""hosts.yaml: the machines that sweeps may run on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator, Strict

from sglsweep.config.document import Document, load_document
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.config.schema import Count, EnvName, Keys, Text
from sglsweep.config.secrets import read_secrets
from sglsweep.config.ssh_aliases import ssh_aliases
from sglsweep.config.validate import validate
from sglsweep.config.wrong import wrong
from sglsweep.errors import ConfigError
from sglsweep.flags import nearest

LOCAL = "local"
DEFAULT_PORT = 30000
DEFAULT_WORKDIR = "~/.sglsweep"

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
HIGHEST_PORT = 65535
_Port = Annotated[int, Strict(), Field(ge=1, le=HIGHEST_PORT)]


def _gpus(value: object) -> tuple[int, ...] | None:
    """Read how many GPUs may be used, or which."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return tuple(range(value))
    if isinstance(value, list) and all(type(v) is int and v >= 0 for v in value):
        return tuple(dict.fromkeys(value))
    raise wrong("names no GPUs", "Write how many, like 8, or which, like [0, 1, 4, 5].")


def _password(value: object) -> str:
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise wrong("is not read from the environment", "Write ${NAME}.", is_complete=True)
    return found.group(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings(Keys):
    """How to reach a machine; what is None is left to `~/.ssh/config`.

    Attributes:
        host: an address, or a name that `~/.ssh/config` knows.
        key: a private key's file; `~/` is the controller's home folder.
        jump: `[user@]host[:port]` to go through.
        password_env: name of the environment variable that holds the password.
    """

    host: Text
    user: Text | None = None
    port: _Port | None = None
    key: Text | None = None
    jump: Text | None = None
    password_env: EnvName | None = None
    password: Annotated[str | None, PlainValidator(_password)] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry(Keys):
    """One machine as the file names it."""

    ssh: Annotated[
        SshSettings | None, BeforeValidator(lambda v: {"host": v} if isinstance(v, str) else v)
    ] = None
    workdir: Text = DEFAULT_WORKDIR
    port: _Port = DEFAULT_PORT
    gpus: Annotated[tuple[int, ...] | None, PlainValidator(_gpus)] = None
    slots: Count = 1
    python: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """One machine.

    Attributes:
        ssh: None = this machine.
        workdir: where attempts have their folders; `~/` is the home folder there.
        port: the first that a server listens on; a slot adds its number.
        gpus: which may be used, as nvidia-smi numbers them; None = all.
        slots: attempts at once; see `slots.py` for who gets which GPU.
        python: for builds that name none.
        where: FILE:LINE, or what made it known.
    """

    name: str
    ssh: SshSettings | None = None
    workdir: str = DEFAULT_WORKDIR
    port: int = DEFAULT_PORT
    gpus: tuple[int, ...] | None = None
    slots: int = 1
    python: str | None = None
    where: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def load_host(name: str, near: Path, *, where: str | None = None) -> HostConfig:
    """Find a machine by name: beside the sweep, in the user's config folder, in `~/.ssh/config`.

    Args:
        name: what `host:` says; `local` is always known.
        near: SWEEP.yaml, or the folder it is in.
        where: FILE:LINE that names the host, for the error.

    Raises:
        ConfigError: no file knows the name, or the entry is wrong.
    """
    known: list[str] = [LOCAL]
    for path in _files(near):
        document = load_document(path)
        if not isinstance(document.tree, dict):
            raise ConfigError(
                f"{path}:1: the file is no mapping", next_step="Write `NAME: {ssh: ...}`."
            )
        if name in document.tree:
            return _host(document, document.tree, name)
        known += document.tree
    if name == LOCAL:
        return HostConfig(name=LOCAL, where="this machine")
    aliases = ssh_aliases()
    if any(fnmatchcase(name, alias) for alias in aliases):
        return HostConfig(name=name, ssh=SshSettings(host=name), where="~/.ssh/config")
    raise _unknown(
        name, (*known, *(a for a in aliases if "*" not in a)), near, where or _place(near)
    )


def _place(near: Path) -> str:
    """FILE:LINE of `host:` in a sweep's file; the folder where only that is known."""
    if near.is_file():
        return load_document(near).where(("host",))
    return str(near)


def _files(near: Path) -> Iterator[Path]:
    folder = near if near.is_dir() else near.parent
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (folder / "hosts.yaml", config / "sglsweep" / "hosts.yaml"):
        if path.exists():
            yield path


def _host(document: Document, tree: Mapping[str, object], name: str) -> HostConfig:
    entry = validate(document, tree[name] or {}, HostEntry, at=(name,))
    refuse(_mistakes(document, entry, name))
    ssh = entry.ssh
    if ssh is not None and ssh.password is not None:
        ssh = SshSettings(
            host=ssh.host,
            user=ssh.user,
            port=ssh.port,
            key=ssh.key,
            jump=ssh.jump,
            password_env=ssh.password,
        )
    return HostConfig(
        name=name,
        ssh=ssh,
        workdir=entry.workdir,
        port=entry.port,
        gpus=entry.gpus,
        slots=entry.slots,
        python=entry.python,
        where=document.where((name,)),
        secrets=read_secrets(document, under=(name,)),
    )


def _mistakes(document: Document, entry: HostEntry, name: str) -> Iterator[Mistake]:
    if entry.ssh is None and name != LOCAL:
        yield Mistake(
            where=document.where((name,)),
            what=f"host '{name}' says not how to reach it",
            instead=f"Add `ssh: {{host: ..., user: ...}}`; this machine itself is `{LOCAL}`.",
        )
    if entry.ssh is not None and entry.ssh.password and entry.ssh.password_env:
        yield Mistake(
            where=document.where((name, "ssh", "password_env")),
            what="both password and password_env are given",
            instead="Keep one.",
        )
    if entry.port + entry.slots - 1 > HIGHEST_PORT:
        yield Mistake(
            where=document.where((name, "slots")),
            what=f"{entry.slots} slots from port {entry.port} on end above {HIGHEST_PORT}",
            instead="Lower `port`: each slot has the port after the one before it.",
        )


def _unknown(name: str, known: tuple[str, ...], near: Path, where: str) -> ConfigError:
    close = nearest(name, known)
    folder = near if near.is_dir() else near.parent
    listed = ", ".join(dict.fromkeys(known))
    hint = f"Write {' or '.join(repr(n) for n in close)}" if close else f"Known are {listed}"
    return ConfigError(
        f"{where}: no host '{name}'",
        next_step=f"{hint}, or add it to {folder / 'hosts.yaml'}.",
    )
