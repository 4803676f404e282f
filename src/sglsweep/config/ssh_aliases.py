"""Names that `~/.ssh/config` knows, so that they work as hosts without another file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_DEPTH = 8  # of files that include each other; ssh itself allows 16


def ssh_aliases(path: Path | None = None) -> tuple[str, ...]:
    """Return names and patterns of `Host` lines, `Include` followed; `*` alone names no host."""
    return tuple(dict.fromkeys(_names(path or Path.home() / ".ssh" / "config", _DEPTH)))


def _names(config: Path, depth: int) -> Iterator[str]:
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        words = [word.strip('"') for word in rest.split()]
        if keyword.lower() == "host":
            yield from (word for word in words if word.strip("*?") and not word.startswith("!"))
        elif keyword.lower() == "include" and depth:
            for word in words:
                yield from _included(word, depth)


def _included(word: str, depth: int) -> Iterator[str]:
    """Yield the names of files that an `Include` names, relative to `~/.ssh`."""
    pattern = str((Path.home() / ".ssh" / Path(word).expanduser()).relative_to("/"))
    for path in sorted(Path("/").glob(pattern)):
        yield from _names(path, depth - 1)
