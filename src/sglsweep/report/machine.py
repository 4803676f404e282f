"""What `onhost/facts.py` knows of a machine, in words; whatever is absent is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.report.document import Line

_SECONDS_PER_HOUR = 3600
_MIB_PER_GIB = 1024


def is_without_gpu(facts: Mapping[str, object]) -> bool:
    """True if the host was asked and has none; null stands for a question that failed."""
    return facts.get("gpus") == []


def gpu_words(facts: Mapping[str, object]) -> Line:
    """Return "GPU: 8x NVIDIA H200, ...", or that there is none."""
    if is_without_gpu(facts):
        return ("No GPU: everything ran on the CPU",)
    kinds: dict[str, int] = {}
    for gpu in _gpus(facts):
        kinds[_gpu(gpu)] = kinds.get(_gpu(gpu), 0) + 1
    words = "; ".join(f"{number}x {kind}" for kind, number in kinds.items())
    return (f"GPU: {words}",) if words else ()


def _gpus(facts: Mapping[str, object]) -> list[Mapping[str, object]]:
    gpus = facts.get("gpus")
    return [g for g in gpus if isinstance(g, Mapping)] if isinstance(gpus, list) else []


def _gpu(gpu: Mapping[str, object]) -> str:
    memory, limit = _number(gpu, "memory_total_mib"), _number(gpu, "power_limit_w")
    words = [
        _text(gpu, "name") or "GPU",
        _text(gpu, "compute_capability", "compute capability "),
        f"{memory:,.0f} MiB" if memory else "",
        f"limit {limit:.0f} W" if limit else "",
        _text(gpu, "driver_version", "driver "),
    ]
    return ", ".join(word for word in words if word)


def host_words(facts: Mapping[str, object]) -> Line:
    """Return processor, memory and system."""
    cpu = _object(facts, "cpu")
    cores, memory = _number(cpu, "count"), _number(_object(facts, "memory"), "total_mib")
    words = [
        _text(cpu, "model", "CPU: "),
        f"{cores:.0f} cores" if cores else "",
        f"{memory / _MIB_PER_GIB:,.0f} GiB RAM" if memory else "",
        _text(facts, "os"),
        _text(facts, "kernel", "kernel "),
        _text(facts, "cuda", "nvcc "),
    ]
    said = [word for word in words if word]
    return (", ".join(said),) if said else ()


def version_words(facts: Mapping[str, object], build: str | None = None) -> list[str]:
    """Return a line of versions for each build, or for one."""
    return [
        f"Build {name}: " + ", ".join(f"{package} {v}" for package, v in versions.items())
        for name, versions in _versions(facts).items()
        if build in {None, name}
    ]


def _versions(facts: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return build -> package -> version; builds of which nothing is known are left out."""
    found: dict[str, dict[str, str]] = {}
    for name, known in _object(facts, "builds").items():
        if not isinstance(known, Mapping):
            continue
        packages = _object(known, "packages")
        versions = {package: v for package in packages if (v := _text(packages, package))}
        extra = {
            "torch's CUDA": _text(known, "torch_cuda"),
            "commit": _text(known, "sglang_commit")[:12],
            "Python": _text(known, "version"),
        }
        versions |= {title: v for title, v in extra.items() if v}
        if versions:
            found[str(name)] = versions
    return found


def stable(facts: Mapping[str, object]) -> dict[str, str]:
    """Return what should be the same at two attempts: hardware, driver, kernel, versions."""
    found = {
        "GPUs": "; ".join(_gpu(gpu) for gpu in _gpus(facts)),
        "kernel": _text(facts, "kernel"),
        "CPU": _text(_object(facts, "cpu"), "model"),
    }
    for build, versions in _versions(facts).items():
        found |= {f"{build} {package}": v for package, v in versions.items()}
    return {name: text for name, text in found.items() if text}


def gpu_hours(facts: Mapping[str, object], spent_s: float) -> str:
    """Return what the attempts cost; "" where there is no GPU or none is known."""
    gpus = len(_gpus(facts))
    return f"{gpus * spent_s / _SECONDS_PER_HOUR:.1f} GPU-hours" if gpus and spent_s else ""


def _object(facts: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}


def _text(facts: Mapping[str, object], key: str, prefix: str = "") -> str:
    value = facts.get(key)
    return f"{prefix}{value}" if isinstance(value, str) and value else ""


def _number(facts: Mapping[str, object], key: str) -> float | None:
    value = facts.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
