"""Judges a host's GPUs: are they there, alike, whole, and free."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from sglsweep.probe import holders
from sglsweep.probe.checks import GIB, Check, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.probe.checks import Facts, Wants

# A card that nobody uses holds some hundred MiB of the driver's own at most.
_HELD_MIB = 600
_HOT_C = 85
# Above this share nothing is left for the KV cache, activations and graphs.
_MOST_WEIGHTS = 0.95


def judge_gpus(facts: Facts, wants: Wants) -> Iterator[Check]:
    """Judge the cards that may be used; whoever holds one is named with the way to stop it."""
    gpus = facts.get("gpus")
    error = (facts.get("errors") or {}).get("gpus")
    if error:
        step = "Run `nvidia-smi` there; a driver that was updated wants a restart."
        yield problem("gpus", str(error), step)
        return
    if not gpus:
        yield _none(wants)
        return
    used = usable(gpus, wants)
    missing = sorted(set(wants.gpus or ()) - {g.get("index") for g in gpus})
    if missing:
        said = f"{len(gpus)} GPUs, but hosts.yaml names {', '.join(map(str, missing))}"
        yield problem("gpus", said, "Correct `gpus:` in hosts.yaml.")
    if wants.ranks is not None and wants.ranks > len(used):
        said = f"{wants.ranks} are needed (tp x pp), {len(used)} may be used"
        yield problem("gpus", said, "Lower `tp` in the sweep, or name more `gpus:` in hosts.yaml.")
    yield _alike(used)
    for gpu in used:
        yield from _card(gpu)
    yield from _held(facts, used)
    yield from _xids(facts)


def _none(wants: Wants) -> Check:
    words, step = "no NVIDIA GPU is seen", "Check `nvidia-smi`; a container needs `--gpus all`."
    if wants.needs_gpu is None:
        return warning("gpus", f"{words}: only an SGLang for the CPU can run", step)
    if wants.needs_gpu:
        return problem("gpus", words, step)
    return ok("gpus", f"{words}, and none is needed")


def usable(gpus: Sequence[Facts], wants: Wants) -> list[Facts]:
    """Return the cards that a sweep may use."""
    return [g for g in gpus if wants.gpus is None or g.get("index") in wants.gpus]


def judge_fit(name: str, model: Facts | None, facts: Facts, wants: Wants) -> Iterator[Check]:
    """Judge whether a model's weights can fit at all into the cards of one launch."""
    sizes = [g.get("memory_total_mib") for g in usable(facts.get("gpus") or (), wants)]
    known = sorted((size for size in sizes if isinstance(size, int)), reverse=True)[: wants.ranks]
    weights = (model or {}).get("bytes")
    if not known or not isinstance(weights, int):
        return
    room = sum(known) << 20
    if weights > room * _MOST_WEIGHTS:
        said = f"{weights / GIB:.0f} GiB of weights for {room / GIB:.0f} GiB on {len(known)} cards"
        step = "Use more cards, or a model with smaller weights (FP8, NVFP4, AWQ)."
        yield problem(f"model {name}", said, step)


def _alike(gpus: Sequence[Facts]) -> Check:
    kinds = {(g.get("name"), g.get("memory_total_mib")) for g in gpus}
    limits = {g.get("power_limit_w") for g in gpus}
    words = " and ".join(sorted(f"{name} {mib} MiB" for name, mib in kinds))
    driver = gpus[0].get("driver_version") if gpus else None
    said = f"{len(gpus)}x {words}, driver {driver}"
    if len(kinds) > 1:
        step = "Use equal cards: `gpus:` in hosts.yaml chooses which."
        return warning("gpus", f"{said}: not alike, the smallest decides", step)
    if len(limits) > 1:
        watts = ", ".join(f"{limit} W" for limit in sorted(limits, key=str))
        step = "Set the same limit for all: `sudo nvidia-smi -pl WATTS`."
        return warning("gpus", f"{said}: power limits differ ({watts})", step)
    return ok("gpus", said)


def _card(gpu: Facts) -> Iterator[Check]:
    """Judge one card; an idle link may be slow to save power, but never narrow."""
    name, index = f"gpu {gpu.get('index')}", gpu.get("index")
    width, widest = gpu.get("pcie_link_width_current"), gpu.get("pcie_link_width_max")
    if isinstance(width, int) and isinstance(widest, int) and width < widest:
        said = f"PCIe link is x{width} of x{widest}: loading and all-reduce are slower"
        yield warning(name, said, "Reseat the card or check the slot's bifurcation and riser.")
    limit, most = gpu.get("power_limit_w"), gpu.get("power_max_limit_w")
    if _is_number(limit) and _is_number(most) and limit < 0.75 * most:
        said = f"power limit {limit:.0f} W of {most:.0f} W: measured speeds will be lower"
        yield warning(
            name, said, f"If that is not meant: `sudo nvidia-smi -i {index} -pl {most:.0f}`."
        )
    heat = gpu.get("temperature_c")
    if _is_number(heat) and heat >= _HOT_C:
        yield warning(name, f"{heat} C before anything was launched", "Check fans and airflow.")
    if str(gpu.get("mig_mode_current")) == "Enabled":
        step = f"`sudo nvidia-smi -i {index} -mig 0`, or name the MIG devices yourself."
        yield warning(name, "MIG is on: memory and ranks count by slice", step)
    mode = str(gpu.get("compute_mode") or "Default")
    if mode == "Prohibited":
        step = f"`sudo nvidia-smi -i {index} -c 0`"
        yield problem(name, "compute mode Prohibited: nothing may use it", step)


def _held(facts: Facts, gpus: Sequence[Facts]) -> Iterator[Check]:
    """Name who holds memory, one check for each card that is not free."""
    held = 0
    for gpu in gpus:
        mine = [
            p for p in facts.get("gpu_processes") or () if p.get("gpu_uuid") == gpu.get("uuid")
        ]
        used = gpu.get("memory_used_mib")
        if not mine and not (isinstance(used, int) and used > _HELD_MIB):
            continue
        held += 1
        name = f"gpu {gpu.get('index')}"
        total = gpu.get("memory_total_mib")
        if not mine:
            said = f"{used} of {total} MiB held by a process that cannot be seen from here"
            step = "It is in another container or of another user: `sudo fuser -v /dev/nvidia*`."
            yield problem(name, said, step)
        for process in mine:
            size = process.get("memory_mib")
            mib = size if size is not None else used
            said = f"{mib} of {total} MiB held by {holders.who(process)}"
            yield problem(name, said, holders.way_out(process))
    if gpus and not held:
        yield ok("gpu memory", "free on every card")


def _xids(facts: Facts) -> Iterator[Check]:
    found = facts.get("xids") or []
    if found:
        said = f"the kernel told of GPU errors, the last: {found[-1]}"
        step = "Look the Xid up; after 48, 63, 64, 79 or 95 restart the machine before sweeping."
        yield warning("gpu errors", said, step)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
