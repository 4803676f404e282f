"""Host facts (`onhost/facts.py`) in words; whatever is absent is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.report.document import Line


def gpu_words(facts: Mapping[str, object]) -> Line:
    """Return "8x NVIDIA H200, 143,771 MiB", or that there is no GPU."""
    gpus = facts.get("gpus")
    if not isinstance(gpus, list):
        return ()
    kinds: dict[str, int] = {}
    for gpu in gpus:
        if isinstance(gpu, Mapping):
            kinds[_gpu(gpu)] = kinds.get(_gpu(gpu), 0) + 1
    if not kinds:
        return ("CPU only: the host has no GPU",)
    return ("GPU: " + "; ".join(f"{number}x {kind}" for kind, number in kinds.items()),)


def _gpu(gpu: Mapping[str, object]) -> str:
    memory = first_number(gpu, "memory_mib", "memory_total_mib", "total_mib")
    words = [
        str(gpu.get("name") or "GPU"),
        f"compute capability {gpu['compute_capability']}" if gpu.get("compute_capability") else "",
        f"{memory:,.0f} MiB" if memory else "",
    ]
    return ", ".join(word for word in words if word)


def host_words(facts: Mapping[str, object]) -> Line:
    """Return processor, memory, system and driver."""
    cpu = facts.get("cpu")
    name = cpu.get("model") if isinstance(cpu, Mapping) else cpu
    cores = cpu.get("count") if isinstance(cpu, Mapping) else facts.get("cpus")
    words = [
        f"CPU: {name}" if isinstance(name, str) and name else "",
        f"{cores} cores" if isinstance(cores, int) else "",
        _memory(facts),
        _word(facts, "os"),
        _word(facts, "kernel"),
        _word(facts, "driver", "driver "),
        _word(facts, "cuda", "CUDA "),
    ]
    said = [word for word in words if word]
    return (", ".join(said),) if said else ()


def _memory(facts: Mapping[str, object]) -> str:
    memory = facts.get("memory")
    total = first_number(memory, "total_mib") if isinstance(memory, Mapping) else None
    total = total or first_number(facts, "memory_total_mib", "ram_mib")
    return f"{total / 1024:,.0f} GiB RAM" if total else ""


def _word(facts: Mapping[str, object], key: str, prefix: str = "") -> str:
    value = facts.get(key)
    return f"{prefix}{value}" if isinstance(value, str) and value else ""


def version_words(facts: Mapping[str, object]) -> list[str]:
    """Return one line of package versions."""
    versions = facts.get("versions") or facts.get("packages")
    if not isinstance(versions, Mapping):
        return []
    said = [f"{name} {v}" for name, v in versions.items() if isinstance(v, str) and v]
    return [", ".join(said)] if said else []


def first_number(facts: Mapping[str, object], *keys: str) -> float | None:
    """Return the first of the keys that holds a number."""
    for key in keys:
        value = facts.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None


def gpu_hours(facts: Mapping[str, object], spent_s: float) -> str:
    """Return what the attempts cost; "" where there is no GPU or none is known."""
    gpus = facts.get("gpus")
    if not isinstance(gpus, list) or not gpus or not spent_s:
        return ""
    return f"{len(gpus) * spent_s / 3600:.1f} GPU-hours"
