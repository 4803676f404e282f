"""Which GPUs are there, how they are set, and who holds their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.changed.difference import (
    Difference,
    Facts,
    Kind,
    both_known,
    gib,
    number,
    plain,
    rows,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEAST_LOST_MIB = 512
_COMMAND = 100
_SETTINGS = {
    "power_limit_w": ("power limit in W", 0.6),
    "memory_total_mib": ("memory in MiB", 1.5),
    "compute_mode": ("compute mode", 2.0),
    "mig_mode_current": ("MIG mode", 3.0),
    "ecc_mode_current": ("ECC", 0.8),
    "persistence_mode": ("persistence mode", 0.5),
    "pcie_link_width_current": ("PCIe lanes", 0.8),
    "vbios_version": ("VBIOS", 0.5),
    "compute_capability": ("compute capability", 3.0),
}
"""Field -> its words, and its weight among the settings."""


def gpu_differences(old: Facts, new: Facts) -> Iterator[Difference]:
    """Yield what is not as it was about GPUs."""
    if old.get("gpus") is None or new.get("gpus") is None:
        if old.get("gpus"):
            yield plain(Kind.GPU, "nvidia-smi", "answering", "not answering")
        return
    before = {_key(gpu): gpu for gpu in rows(old, "gpus")}
    after = {_key(gpu): gpu for gpu in rows(new, "gpus")}
    yield from _fleet(before, after)
    same = [(before[key], after[key]) for key in before if key in after]
    yield from _settings(same)
    yield from _holders(old, new)
    yield from _free(same)


def _key(gpu: Facts) -> str:
    return str(gpu.get("uuid") or gpu.get("index"))


def _title(gpu: Facts) -> str:
    return f"GPU {gpu.get('index')} ({gpu.get('name')})"


def _fleet(before: dict[str, Facts], after: dict[str, Facts]) -> Iterator[Difference]:
    for key, gpu in before.items():
        if key not in after:
            yield plain(Kind.GPU, _title(gpu), key, None)
    for key, gpu in after.items():
        if key not in before:
            yield plain(Kind.GPU, _title(gpu), None, key)


def _settings(same: Sequence[tuple[Facts, Facts]]) -> Iterator[Difference]:
    """Yield each changed setting once, for all GPUs on which it changed alike."""
    for field, (title, weight) in _SETTINGS.items():
        found: dict[tuple[str | None, str | None], list[str]] = {}
        for old, new in same:
            if both_known(old, new, field) and old[field] != new[field]:
                change = (text_of(old[field]), text_of(new[field]))
                found.setdefault(change, []).append(str(new.get("index")))
        for (before, after), indices in found.items():
            which = f"{title} of GPU {', '.join(indices)}"
            yield Difference(
                kind=Kind.GPU_SETTING,
                name=title,
                before=before,
                after=after,
                sentence=f"{which} is {after}, was {before}",
                weight=weight,
            )


def _holders(old: Facts, new: Facts) -> Iterator[Difference]:
    """Yield processes that hold GPU memory and did not then; the largest weigh most."""
    known = {(p.get("gpu_uuid"), p.get("pid"), p.get("command")) for p in _processes(old)}
    index = {gpu.get("uuid"): gpu for gpu in rows(new, "gpus")}
    for process in _processes(new):
        if (process.get("gpu_uuid"), process.get("pid"), process.get("command")) in known:
            continue
        gpu = index.get(process.get("gpu_uuid"), {})
        held, total = number(process, "memory_mib"), number(gpu, "memory_total_mib")
        size = gib(held) if held is not None else "memory"
        who = str(process.get("command") or process.get("name") or "?")[:_COMMAND]
        user = process.get("user")
        where = f"GPU {gpu.get('index', '?')}"
        sentence = f"pid {process.get('pid')} ({f'{user}: ' if user else ''}{who}) holds {size}"
        yield Difference(
            kind=Kind.GPU_HOLDER,
            name=f"pid {process.get('pid')}",
            before=None,
            after=size,
            sentence=f"{sentence} of {where}",
            weight=1.0 if not held or not total else 0.3 + 1.4 * min(1.0, held / total),
        )


def _processes(facts: Facts) -> list[Facts]:
    return rows(facts, "gpu_processes")


def _free(same: Sequence[tuple[Facts, Facts]]) -> Iterator[Difference]:
    for old, new in same:
        was, now = number(old, "memory_free_mib"), number(new, "memory_free_mib")
        if was is None or now is None or was - now < _LEAST_LOST_MIB:
            continue
        title = f"free memory of {_title(new)}"
        total = number(new, "memory_total_mib") or was
        yield Difference(
            kind=Kind.GPU_MEMORY,
            name=title,
            before=gib(was),
            after=gib(now),
            sentence=f"{title} is {gib(now)}, was {gib(was)}",
            weight=0.3 + 1.4 * min(1.0, (was - now) / total),
        )
