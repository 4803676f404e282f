"""A launch as a Slurm job."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sglsweep.export.deployment import VISIBLE
from sglsweep.export.shell import comments, environment
from sglsweep.flags import render_command

if TYPE_CHECKING:
    from sglsweep.export.deployment import Deployment

_DIST_PORT = 20000


def sbatch(deployment: Deployment) -> str:
    """Return a script for sbatch: one task on each node, which becomes the server."""
    lines = [
        "#!/usr/bin/env bash",
        f"#SBATCH --job-name=sglang-{deployment.name}",
        f"#SBATCH --nodes={deployment.nodes}",
        "#SBATCH --ntasks-per-node=1",
        *([f"#SBATCH --gpus-per-node={deployment.gpus}"] if deployment.gpus else []),
        "#SBATCH --exclusive",
        "#SBATCH --output=%x-%j.log",
        *comments((*deployment.notes, *_hints(deployment))),
        "set -euo pipefail",
        *environment(deployment, left_out=[VISIBLE]),
        *(_many(deployment) if deployment.nodes > 1 else _one(deployment)),
    ]
    return "\n".join(lines) + "\n"


def _hints(deployment: Deployment) -> list[str]:
    hints = ["Add --partition, --account and --time as your cluster wants them."]
    if VISIBLE in deployment.env:
        hints.append(f"{VISIBLE} is left to Slurm.")
    return hints


def _place(deployment: Deployment) -> tuple[str, ...]:
    return ("--host", deployment.bind, "--port", str(deployment.port))


def _one(deployment: Deployment) -> list[str]:
    command = render_command(deployment.python, (*deployment.words, *_place(deployment)), {})
    return [f"srun --ntasks=1 --kill-on-bad-exit=1 {command}"]


def _many(deployment: Deployment) -> list[str]:
    """Each node learns its rank from Slurm, and all of them where the first one listens."""
    command = render_command(deployment.python, (*deployment.words, *_place(deployment)), {})
    ranked = (
        f"exec {command} \\\n  --nnodes {deployment.nodes} \\\n"
        '  --node-rank "$SLURM_NODEID" \\\n  --dist-init-addr "$SGLANG_FIRST_NODE"'
    )
    first = '"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)'
    return [
        f'SGLANG_FIRST_NODE={first}:{_DIST_PORT}"',
        "export SGLANG_FIRST_NODE",
        f"srun --kill-on-bad-exit=1 bash -c {shlex.quote(ranked)}",
    ]
