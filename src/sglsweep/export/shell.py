"""A launch as a shell script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.export.deployment import quoted
from sglsweep.flags import render_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglsweep.export.deployment import Deployment


def shell(deployment: Deployment) -> str:
    """Return a bash script that becomes the server."""
    place = ("--host", deployment.bind, "--port", str(deployment.port))
    command = render_command(deployment.python, (*deployment.words, *place), {})
    hints = []
    if "/" in deployment.python and not deployment.python.startswith(("/", "~")):
        hints.append("Relative paths mean the folder of the sweep: start it there.")
    if deployment.nodes > 1:
        hints.append(
            f"One of {deployment.nodes} nodes: add --nnodes {deployment.nodes} --node-rank I"
            " --dist-init-addr HOST:PORT on each."
        )
    lines = [
        "#!/usr/bin/env bash",
        *comments((*deployment.notes, *hints)),
        "set -euo pipefail",
        *environment(deployment),
        f"exec {command}",
    ]
    return "\n".join(lines) + "\n"


def comments(notes: Iterable[str]) -> list[str]:
    """Write notes as comments."""
    return [f"# {note}" for note in notes]


def environment(deployment: Deployment, *, left_out: Iterable[str] = ()) -> list[str]:
    """Write the lines that refuse a missing secret and set the environment."""
    needed = [f': "${{{name}:?set it before you start this}}"' for name in deployment.secrets]
    skipped = set(left_out)
    return needed + [
        f"export {name}={quoted(value)}"
        for name, value in deployment.env.items()
        if name not in skipped
    ]
