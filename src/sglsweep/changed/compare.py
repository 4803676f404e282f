"""Two states of a host, fact by fact; what one side does not know is not compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.changed.difference import (
    Difference,
    Facts,
    Kind,
    both_known,
    gib,
    number,
    part,
    plain,
    rows,
    text_of,
)
from sglsweep.changed.gpus import gpu_differences
from sglsweep.changed.models import model_differences

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB = 1024 * 1024
_LEAST_MEMORY_MIB = 2048
_LEAST_MEMORY_SHARE = 0.2
_DISK_FULL_MIB = 20 * 1024
_DISK_FULL_SHARE = 0.05
_FEW_INODES = 1000
_COMPARED = ("gpus", "gpu_processes", "kernel", "memory", "disks", "environment", "limits")


def differences(old: Facts, new: Facts, *, build: str, model: str) -> list[Difference]:
    """Return what is not as it was, in no order of importance.

    Args:
        old: facts of the host when it served (see onhost/facts.py).
        new: facts of the host later.
        build: whose packages count.
        model: whose files count.
    """
    return [
        *_build(part(old, "builds", build), part(new, "builds", build), build),
        *_system(old, new),
        *gpu_differences(old, new),
        *model_differences(part(old, "models", model), part(new, "models", model), model),
        *_memory(old, new),
        *_disks(old, new),
        *_words(part(old, "environment"), part(new, "environment"), Kind.ENVIRONMENT),
        *_limits(part(old, "limits"), part(new, "limits")),
    ]


def unknown(old: Facts, new: Facts, *, build: str, model: str) -> list[str]:
    """Return what could not be compared, with the reason where there is one."""
    said = []
    for name in _COMPARED:
        if not both_known(old, new, name):
            why = part(new, "errors").get(name) or part(old, "errors").get(name)
            said.append(f"{name} ({why})" if why else name)
    if not part(old, "builds", build) or not part(new, "builds", build):
        said.append(f"packages of build {build}")
    if not part(old, "models", model) or not part(new, "models", model):
        said.append(f"files of {model}")
    return said


def _build(old: Facts, new: Facts, build: str) -> Iterator[Difference]:
    if not old or not new:
        return
    before, after = part(old, "packages"), part(new, "packages")
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield plain(Kind.PACKAGE, str(name), before.get(name), after.get(name))
    for name, title in (
        ("sglang_commit", "sglang's commit"),
        ("sglang_file", "the place sglang is imported from"),
        ("torch_cuda", "torch's CUDA"),
    ):
        if old.get(name) != new.get(name):
            yield plain(Kind.PACKAGE, title, old.get(name), new.get(name))
    if old.get("version") != new.get("version"):
        title = f"Python of build {build}"
        yield plain(Kind.PYTHON, title, old.get("version"), new.get("version"))


def _system(old: Facts, new: Facts) -> Iterator[Difference]:
    for name, kind, title in (
        ("driver", Kind.DRIVER, "the NVIDIA driver"),
        ("cuda", Kind.CUDA, "the CUDA toolkit (nvcc)"),
        ("kernel", Kind.KERNEL, "the kernel"),
        ("os", Kind.SYSTEM, "the operating system"),
    ):
        # A driver that is not known any more is a host whose GPUs do not answer: see there.
        if old.get(name) != new.get(name) and (both_known(old, new, name) or name == "cuda"):
            yield plain(kind, title, old.get(name), new.get(name))
    if both_known(old, new, "boot_id") and old.get("boot_id") != new.get("boot_id"):
        yield Difference(
            kind=Kind.BOOT,
            name="boot",
            before=text_of(old.get("boot_id")),
            after=text_of(new.get("boot_id")),
            sentence="the machine was started anew in between",
        )
    before, after = part(old, "user").get("name"), part(new, "user").get("name")
    if before and after and before != after:
        yield plain(Kind.SYSTEM, "the user that launches", before, after)


def _memory(old: Facts, new: Facts) -> Iterator[Difference]:
    before, after = part(old, "memory"), part(new, "memory")
    for name, title in (("total_mib", "host memory"), ("available_mib", "available host memory")):
        was, now = number(before, name), number(after, name)
        if was is None or now is None:
            continue
        lost = was - now
        if lost > max(_LEAST_MEMORY_MIB, was * _LEAST_MEMORY_SHARE):
            yield plain(Kind.HOST_MEMORY, title, gib(was), gib(now))
    limit_was = part(old, "cgroup").get("memory_max")
    limit = part(new, "cgroup").get("memory_max")
    if part(old, "cgroup") and part(new, "cgroup") and limit_was != limit:
        shown = [gib(v / _MIB) if isinstance(v, int) else "no limit" for v in (limit_was, limit)]
        yield plain(Kind.HOST_MEMORY, "the cgroup's memory limit", *shown)


def _disks(old: Facts, new: Facts) -> Iterator[Difference]:
    before = {str(disk.get("path")): disk for disk in rows(old, "disks")}
    for disk in rows(new, "disks"):
        path = str(disk.get("path"))
        was = before.get(path)
        if was is None:
            continue
        if was.get("is_writable") is True and disk.get("is_writable") is False:
            yield plain(Kind.DISK, path, "writable", "not writable")
        if was.get("exists") is True and disk.get("exists") is False:
            yield plain(Kind.DISK, path, "there", None)
        yield from _full(path, was, disk)


def _full(path: str, was: Facts, disk: Facts) -> Iterator[Difference]:
    """Say so where a disk has become full; less room is no news while there is enough."""
    free, free_was, total = (number(disk, "free"), number(was, "free"), number(disk, "total"))
    if free is None or free_was is None or free >= free_was:
        return
    is_low = free / _MIB < _DISK_FULL_MIB and free < (total or 0) * _DISK_FULL_SHARE
    inodes = number(disk, "inodes_free")
    if is_low:
        title = f"free space of {path}"
        yield plain(Kind.DISK, title, gib(free_was / _MIB), gib(free / _MIB))
    elif inodes is not None and 0 < inodes < _FEW_INODES < (number(was, "inodes_free") or 0):
        yield plain(Kind.DISK, f"free inodes of {path}", was.get("inodes_free"), int(inodes))


def _words(old: Facts, new: Facts, kind: Kind) -> Iterator[Difference]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield plain(kind, str(name), old.get(name), new.get(name))


def _limits(old: Facts, new: Facts) -> Iterator[Difference]:
    for name in old:
        if both_known(old, new, name) and old[name] != new[name]:
            yield plain(Kind.LIMIT, f"ulimit {name}", old[name], new[name])
