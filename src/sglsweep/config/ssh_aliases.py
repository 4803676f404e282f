"""Names that `~/.ssh/config` knows, so that they work as hosts without another file."""

from __future__ import annotations

from pathlib import Path


def ssh_aliases(path: Path | None = None) -> tuple[str, ...]:
    """Return the names of `Host` lines, patterns aside; nothing where there is no such file."""
    config = path or Path.home() / ".ssh" / "config"
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    names: list[str] = []
    for line in lines:
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if keyword.lower() == "host":
            names += [word.strip('"') for word in rest.split()]
    return tuple(name for name in names if name and not set(name) & set("*?!"))
