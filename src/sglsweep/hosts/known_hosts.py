"""Which host keys the user knows: OpenSSH's known_hosts files, read as `sshd(8)` describes them.

paramiko's own reader knows neither wildcards nor `@revoked`: a key taken back would pass.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SSH_PORT = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """One line of a known_hosts file that speaks of the host asked about."""

    kind: str
    blob: bytes
    file: Path
    line: int
    is_revoked: bool = False


def entry_name(host: str, port: int) -> str:
    """Return a host as known_hosts names it: the bare name on port 22, else `[host]:port`."""
    return host.lower() if port == SSH_PORT else f"[{host.lower()}]:{port}"


def find_keys(files: Sequence[Path], name: str) -> list[KnownKey]:
    """Return the keys of a name in all files, in order; files that are absent have none."""
    return [key for file in files for key in _keys_in(file, name)]


def fingerprint(blob: bytes) -> str:
    """Return a key's fingerprint as `ssh-keygen -l` prints it."""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode()
    return "SHA256:" + digest.rstrip("=")


def _keys_in(file: Path, name: str) -> Iterator[KnownKey]:
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        field = line.split()
        marker = field.pop(0) if field and field[0].startswith("@") else ""
        # Host certificates are not spoken by paramiko, so an authority's key proves nothing here.
        if len(field) < 3 or field[0].startswith("#") or marker == "@cert-authority":  # noqa: PLR2004 - names, kind, key
            continue
        if not _matches(field[0], name):
            continue
        try:
            blob = base64.b64decode(field[2], validate=True)
        except binascii.Error:
            continue
        yield KnownKey(
            kind=field[1], blob=blob, file=file, line=number, is_revoked=marker == "@revoked"
        )


def _matches(names: str, name: str) -> bool:
    if names.startswith("|1|"):
        return _matches_hash(names, name)
    is_match = False
    for pattern in names.lower().split(","):
        is_negated = pattern.startswith("!")
        if _matches_pattern(pattern.removeprefix("!"), name):
            if is_negated:
                return False
            is_match = True
    return is_match


def _matches_pattern(pattern: str, name: str) -> bool:
    # Brackets are part of `[host]:port`, not a class of characters.
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _matches_hash(hashed: str, name: str) -> bool:
    _, _, salt, digest = hashed.split("|", 3)
    try:
        made = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
        return hmac.compare_digest(made, base64.b64decode(digest))
    except binascii.Error:
        return False
