"""Judges a machine: processors, memory, disks, limits, sessions, port, and its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.probe import holders
from sglsweep.probe.checks import GIB, Check, ok, problem, warning
from sglsweep.probe.gpus import judge_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.probe.checks import Facts, Wants

_MIB_PER_GIB = 1024


def judge_machine(facts: Facts, wants: Wants) -> Iterator[Check]:
    """Judge everything that does not depend on a build or a model."""
    yield from _machine(facts)
    yield from judge_gpus(facts, wants)
    yield from _disks(facts, wants)
    yield from _memory(facts)
    yield from _limits(facts)
    yield from _sessions(facts)
    yield from judge_port(facts)


def _machine(facts: Facts) -> Iterator[Check]:
    cpu = facts.get("cpu") or {}
    count, load = cpu.get("usable") or 0, (cpu.get("load") or [0])[0]
    said = f"{facts.get('os') or 'unknown system'}, kernel {facts.get('kernel')}, {count} CPUs"
    if count and load > 2 * count:
        yield warning(
            "machine",
            f"{said}, load {load:.0f}",
            "See with `top` what keeps it busy; timings lie.",
        )
    else:
        yield ok("machine", said)
    for name, error in (facts.get("errors") or {}).items():
        if name not in {"gpus", "gpu_processes", "python", "model"}:
            yield warning("machine", f"{name} is not known: {error}", "Look at it by hand.")


def _memory(facts: Facts) -> Iterator[Check]:
    memory, cgroup = facts.get("memory") or {}, facts.get("cgroup") or {}
    available, total = memory.get("available_mib"), memory.get("total_mib")
    limit = cgroup.get("memory_max")
    if limit and total and limit < total << 20:
        said = f"{limit / GIB:.0f} GiB for this container of {total / _MIB_PER_GIB:.0f} GiB"
        step = "Start the container with more memory (`--memory`): loading weights needs cache."
        yield (warning if limit < 32 * GIB else _calm)("memory", said, step)
    if available is None or total is None:
        return
    said = f"{available / _MIB_PER_GIB:.0f} GiB available of {total / _MIB_PER_GIB:.0f} GiB"
    if available < 8 * _MIB_PER_GIB and available < total / 2:
        step = "See with `ps aux --sort=-rss | head` what holds it."
        yield warning("memory", said, step)
    else:
        yield ok("memory", said)


def _calm(name: str, said: str, _next_step: str) -> Check:
    return ok(name, said)


def _limits(facts: Facts) -> Iterator[Check]:
    limits = facts.get("limits") or {}
    wanted = {
        "nofile": (4096, "open files", "Raise `nofile` in /etc/security/limits.conf to 65536."),
        "nproc": (4096, "processes", "Raise `nproc` in /etc/security/limits.conf."),
    }
    found = []
    for name, (least, words, step) in wanted.items():
        hard = (limits.get(name) or [None, None])[1]
        found.append(f"{hard} {words}")
        if isinstance(hard, int) and hard < least:
            yield warning("limits", f"at most {hard} {words}", step)
    space = (limits.get("as") or ["unlimited"])[0]
    if space != "unlimited":
        said = f"address space is limited to {int(space) / GIB:.0f} GiB: CUDA reserves far more"
        yield problem("limits", said, "Remove that limit: `ulimit -v unlimited`.")
    elif limits:
        yield ok("limits", ", ".join(found))


def _sessions(facts: Facts) -> Iterator[Check]:
    sessions = facts.get("sessions") or {}
    if sessions.get("kills_user_processes") and not sessions.get("lingers"):
        user = (facts.get("user") or {}).get("name") or "USER"
        yield problem(
            "sessions",
            "logind ends a user's processes with the last session: the server dies with SSH",
            f"Run `loginctl enable-linger {user}` there.",
        )


def judge_port(facts: Facts) -> Iterator[Check]:
    """Say whether the port that was asked about is free."""
    port = facts.get("port")
    if not port:
        return
    name = f"port {port['port']}"
    if port.get("is_free"):
        yield ok(name, "free")
        return
    yield problem(name, f"in use by {holders.who(port)}", holders.way_out(port))


# -- disks -----------------------------------------------------------------------------------


def _disks(facts: Facts, wants: Wants) -> Iterator[Check]:
    for disk in facts.get("disks") or ():
        path, free, total = str(disk["path"]), disk["free"], disk["total"]
        if path == "/dev/shm":  # noqa: S108 - a fact, not a place to write to
            yield from _shared_memory(disk, facts)
            continue
        said = f"{free / GIB:.1f} GiB free of {total / GIB:.0f} GiB"
        name = f"disk {path}"
        is_ours = path in {wants.workdir, "/tmp"}  # noqa: S108 - a fact
        if is_ours and not disk.get("is_writable"):
            yield problem(name, "cannot be written", f"Make it writable: `chown $USER {path}`.")
        elif disk.get("inodes_free") == 0 and is_ours:
            yield problem(name, "no inodes left", "Remove files there: `df -i` shows it.")
        elif free < GIB and is_ours:
            yield problem(name, said, f"Free some space: `du -xh {path} | sort -h | tail`.")
        elif free < 10 * GIB:
            yield warning(name, said, f"Free some space: `du -xh {path} | sort -h | tail`.")
        else:
            yield ok(name, said)


def _shared_memory(disk: Facts, facts: Facts) -> Iterator[Check]:
    """NCCL puts its buffers there: a container's 64 MiB end it with a bus error."""
    size = disk["total"]
    name, said = "shared memory", f"{size / GIB:.1f} GiB in /dev/shm"
    if size >= 4 * GIB or len(facts.get("gpus") or ()) < 2:  # noqa: PLR2004 - ranks that share
        yield ok(name, said)
        return
    step = "Start the container with `--shm-size 32g` or `--ipc=host`."
    yield (problem if size < GIB else warning)(name, f"{said}: too small for NCCL", step)
