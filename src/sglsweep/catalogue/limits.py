"""How long a launch may be silent and how long its phases may last: phases.yaml as types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from sglsweep.errors import ConfigError
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping


class CpuLife(StrEnum):
    """When CPU time of the process tree is a sign of life."""

    ALWAYS = "always"
    WITHOUT_GPU = "without-gpu"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Limits of one kind of work, in seconds; None = without end."""

    quiet_s: float | None
    cap_s: float | None
    cpu: CpuLife = CpuLife.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeThresholds:
    """How much must change to be a sign of life and not noise.

    Attributes:
        cpu_share: cores in use, on average since the last sign.
    """

    read_bytes: int
    net_rx_bytes: int
    page_cache_bytes: int
    gpu_mib: int
    cpu_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """GPUs that are fully used and do nothing; `power_share` is of their power limit."""

    util_percent: float
    power_share: float
    quiet_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All limits of one attempt.

    Attributes:
        ready_s: from the start until ready, whatever happens; None = only the phases' limits.
        blind_quiet_s: limit of silence where no life signs can be had.
        cause_grace_s: from a fatal line to the end of the wait.
        alone_grace_s: from the last line after it, where one rank is all there is.
        cascade_grace_s: the same while only a consequence is printed.
        listening_s: a port open this long without a ready line is taken for ready where the
            log level hides that line.
    """

    phases: Mapping[Phase, Limit]
    jit: Limit
    download: Limit
    pd_warmup_s: float
    ready_s: float | None
    blind_quiet_s: float
    cause_grace_s: float
    alone_grace_s: float
    cascade_grace_s: float
    listening_s: float
    life: LifeThresholds
    spin: Spin

    @property
    def unseen(self) -> Limit:
        """One limit for the whole way to ready, where the log shows none of its phases."""
        known = [*self.phases.values(), self.jit]
        quiet = max(limit.quiet_s for limit in known if limit.quiet_s is not None)
        cap = sum(limit.cap_s for limit in known if limit.cap_s is not None)
        return Limit(quiet_s=quiet, cap_s=cap, cpu=CpuLife.ALWAYS)


def load(
    overrides: Mapping[str, float] | None = None,
    *,
    weights_bytes: int | None = None,
    has_compiled_before: bool = False,
) -> Limits:
    """Return the catalogue's limits with the user's on top.

    Args:
        overrides: SWEEP.yaml's `limits:` in seconds. A phase, `jit` or `download` caps that
            work, and lengthens its limit of silence to match; `ready` caps the whole way there.
        weights_bytes: size of the model's weights, where known: slow disks get more time.
        has_compiled_before: this build has served on this GPU, so its kernel caches are full.

    Raises:
        ConfigError: a key that means nothing.
    """
    raw = _catalogue()
    limits = Limits(
        phases={Phase(name): _limit(entry) for name, entry in raw["phases"].items()},
        jit=_limit(raw["jit"]),
        download=_limit(raw["download"]),
        pd_warmup_s=raw["pd_warmup_s"],
        ready_s=None,
        blind_quiet_s=raw["blind_quiet_s"],
        cause_grace_s=raw["grace"]["cause_s"],
        alone_grace_s=raw["grace"]["alone_s"],
        cascade_grace_s=raw["grace"]["cascade_s"],
        listening_s=raw["listening_s"],
        life=LifeThresholds(**raw["life"]),
        spin=Spin(**raw["spin"]),
    )
    if has_compiled_before:
        limits = replace(limits, jit=replace(limits.jit, cap_s=raw["jit"]["cap_again_s"]))
    if weights_bytes is not None:
        limits = _with_slow_disk(limits, weights_bytes / raw["weights_bytes_per_s"])
    for key, seconds in (overrides or {}).items():
        limits = _overridden(limits, str(key), seconds)
    return limits


def quiet_s(phase: Phase, *, is_compiling: bool = False) -> float | None:
    """Return how long a log alone may be silent in this phase before that is a hang.

    Nobody saw life signs there, so a compiler's last line gets the long limit.
    """
    limits = load()
    limit = limits.phases[phase].quiet_s
    return limits.blind_quiet_s if is_compiling and limit is not None else limit


@cache
def _catalogue() -> dict[str, Any]:
    text = (resources.files("sglsweep.catalogue") / "phases.yaml").read_text("utf-8")
    raw: dict[str, Any] = yaml.safe_load(text)
    return raw


def _limit(entry: Mapping[str, Any]) -> Limit:
    return Limit(quiet_s=entry["quiet_s"], cap_s=entry["cap_s"], cpu=CpuLife(entry["cpu"]))


def _with_slow_disk(limits: Limits, seconds: float) -> Limits:
    weights = limits.phases[Phase.WEIGHTS]
    longer = replace(weights, cap_s=max(weights.cap_s or 0.0, seconds))
    return replace(limits, phases={**limits.phases, Phase.WEIGHTS: longer})


def _overridden(limits: Limits, key: str, seconds: float) -> Limits:
    if key == Phase.READY:
        return replace(limits, ready_s=seconds)
    if key == "jit":
        return replace(limits, jit=_capped(limits.jit, seconds))
    if key == "download":
        return replace(limits, download=_capped(limits.download, seconds))
    known = {str(p) for p in Phase if limits.phases[p].quiet_s is not None}
    if key not in known:
        raise ConfigError(
            f"limits: {key!r} has no limit",
            next_step=f"Name one of {', '.join(sorted({*known, 'ready', 'jit', 'download'}))}.",
        )
    changed = _capped(limits.phases[Phase(key)], seconds)
    return replace(limits, phases={**limits.phases, Phase(key): changed})


def _capped(limit: Limit, seconds: float) -> Limit:
    """Cap at `seconds`; whoever grants more time than the catalogue grants silence too."""
    is_longer = limit.cap_s is not None and seconds > limit.cap_s
    quiet = max(limit.quiet_s or 0.0, seconds) if is_longer else limit.quiet_s
    return replace(limit, cap_s=seconds, quiet_s=quiet)
