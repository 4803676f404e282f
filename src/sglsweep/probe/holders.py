"""Who holds a card or a port, in words, and the command that ends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]


def who(process: Facts) -> str:
    """Say what a process is: its command, its user, and what it is part of."""
    command = str(process.get("command") or process.get("name") or "a process that hides itself")
    pid = f"pid {process['pid']} " if process.get("pid") else ""
    user = process.get("user") or process.get("uid")
    of = f" of user {user}" if user is not None else ""
    parts = [part for part in (_container(process), _unit(process), _job(process)) if part]
    inside = f", in {', '.join(parts)}" if parts else ""
    return f"{pid}({command[:120]}){of}{inside}"


def _container(process: Facts) -> str:
    found = process.get("container")
    if process.get("pod"):
        return f"Kubernetes pod {process['pod']}"
    if not found:
        return ""
    name = found.get("name") or found.get("id")
    restart = found.get("restart")
    policy = f", restart policy {restart}" if restart else ""
    image = f" ({found['image']}{policy})" if found.get("image") else ""
    return f"{found.get('engine') or ''} container {name}{image}".strip()


def _unit(process: Facts) -> str:
    unit = process.get("unit")
    if not unit:
        return ""
    return f"{'user ' if unit.get('is_user') else ''}unit {unit['name']}"


def _job(process: Facts) -> str:
    return f"Slurm job {process['slurm_job']}" if process.get("slurm_job") else ""


def way_out(process: Facts) -> str:
    """Return the command that ends it for good: what would restart it must be stopped instead."""
    if process.get("keeper_marker"):
        return "It is an earlier attempt of ours: `sglsweep clean HOST` ends it."
    return _stop_whole(process) or _stop_one(process)


def _stop_whole(process: Facts) -> str:
    """Return how to stop what a process is part of; "" if it is part of nothing."""
    if process.get("slurm_job"):
        return f"Stop it with `scancel {process['slurm_job']}`."
    if process.get("pod"):
        return "Stop it with `kubectl delete pod NAME`, or scale its deployment to 0."
    if process.get("container"):
        return _stop_container(process["container"])
    unit = process.get("unit")
    if unit:
        how = "systemctl --user" if unit.get("is_user") else "sudo systemctl"
        return f"Stop it with `{how} stop {unit['name']}`; killed, systemd may start it again."
    return ""


def _stop_one(process: Facts) -> str:
    if process.get("pid"):
        return f"Ask its owner, or stop it with `kill {process['pid']}`."
    return "Find it as root: `sudo ss -ltnp`, `sudo nvidia-smi`."


def _stop_container(container: Facts) -> str:
    engine = container.get("engine") or "docker"
    name = container.get("name") or container.get("id")
    step = f"Stop it with `{engine} stop {name}`"
    if container.get("restart") in {"always", "unless-stopped", "on-failure"}:
        return (
            f"{step}; killed, its restart policy brings it back"
            f" (`{engine} update --restart=no {name}` for good)."
        )
    return f"{step}."
