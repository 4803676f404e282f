"""How likely a difference breaks a launch: by its kind, and by how the launch failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.changed.difference import Difference, Kind
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Diagnosis

_BASE = {
    Kind.LAUNCH: 0.9,
    Kind.GPU: 0.85,
    Kind.PACKAGE: 0.6,
    Kind.MODEL: 0.55,
    Kind.DRIVER: 0.5,
    Kind.GPU_HOLDER: 0.5,
    Kind.GPU_MEMORY: 0.45,
    Kind.PYTHON: 0.45,
    Kind.DISK: 0.45,
    Kind.ENVIRONMENT: 0.4,
    Kind.CUDA: 0.4,
    Kind.HOST_MEMORY: 0.35,
    Kind.RESOLVED: 0.35,
    Kind.KERNEL: 0.3,
    Kind.GPU_SETTING: 0.25,
    Kind.LIMIT: 0.25,
    Kind.SYSTEM: 0.2,
    Kind.BOOT: 0.15,
}
_PACKAGES = {
    "sglang": 1.3,
    "torch": 1.2,
    "sgl-kernel": 1.2,
    "sglang-kernel": 1.2,
    "flashinfer-python": 1.2,
    "transformers": 1.1,
}
"""Packages that break a launch more often than others."""

_SOFTWARE = {Kind.PACKAGE: 1.7, Kind.PYTHON: 1.7, Kind.CUDA: 1.4, Kind.DRIVER: 1.2}
_NO_MEMORY = {Kind.GPU_HOLDER: 0.2, Kind.GPU_MEMORY: 0.2, Kind.HOST_MEMORY: 0.3}
_KERNELS = {Kind.PACKAGE: 1.5, Kind.DRIVER: 1.5, Kind.CUDA: 1.5, Kind.GPU: 1.2, **_NO_MEMORY}
_FACTORS: Mapping[Verdict, Mapping[Kind, float]] = {
    Verdict.ENV_ERROR: {**_SOFTWARE, **_NO_MEMORY, Kind.MODEL: 0.4, Kind.ENVIRONMENT: 1.5},
    Verdict.BAD_CONFIG: {**_SOFTWARE, **_NO_MEMORY, Kind.MODEL: 1.3, Kind.DRIVER: 0.5},
    Verdict.LOAD_ERROR: {Kind.MODEL: 1.8, Kind.DISK: 1.8, Kind.DRIVER: 0.4, **_NO_MEMORY},
    Verdict.OOM: {
        Kind.GPU_HOLDER: 2.0,
        Kind.GPU_MEMORY: 2.0,
        Kind.GPU_SETTING: 1.5,
        Kind.PACKAGE: 0.8,
        Kind.DISK: 0.3,
    },
    Verdict.KILLED: {Kind.HOST_MEMORY: 2.5, Kind.LIMIT: 1.5, Kind.PACKAGE: 0.6, Kind.GPU: 0.6},
    Verdict.KERNEL_UNSUPPORTED: _KERNELS,
    Verdict.CUDA_FAULT: _KERNELS,
    Verdict.DEVICE_ASSERT: {**_KERNELS, Kind.MODEL: 1.3},
    Verdict.NAN_IN_PROBS: {**_KERNELS, Kind.MODEL: 1.4},
    Verdict.GARBAGE_OUTPUT: {**_KERNELS, Kind.MODEL: 1.4},
    Verdict.COLLECTIVE_ERROR: {
        Kind.DRIVER: 1.5,
        Kind.GPU: 1.2,
        Kind.ENVIRONMENT: 1.6,
        Kind.LIMIT: 2.0,
        Kind.KERNEL: 1.5,
        Kind.MODEL: 0.3,
    },
    Verdict.HANG: {
        Kind.DRIVER: 1.4,
        Kind.ENVIRONMENT: 1.4,
        Kind.GPU_HOLDER: 1.3,
        Kind.DISK: 1.4,
        Kind.HOST_MEMORY: 1.4,
        Kind.GPU_SETTING: 1.3,
    },
}
_HOST_OOM = re.compile(r"oom-host|killed-host-oom")
_EVERYWHERE = frozenset({"sglang", "torch", "triton"})
"""Words of every traceback: they name a package only where an import failed."""
_NAMED = 2.0
_LEAST_WORD = 4
_LIKELY, _POSSIBLE = 0.6, 0.3


@dataclass(frozen=True, slots=True)
class Ranked:
    """A difference with the chance, between 0 and 1, that a launch fails of such a one."""

    difference: Difference
    chance: float
    is_named: bool

    @property
    def word(self) -> str:
        """The chance in a word."""
        if self.chance >= _LIKELY:
            return "likely"
        return "possible" if self.chance >= _POSSIBLE else "unlikely"

    @property
    def sentence(self) -> str:
        """The difference, and that the error names it where it does."""
        named = "; the error names it" if self.is_named else ""
        return self.difference.sentence + named


def ranked(found: Sequence[Difference], failure: Diagnosis | None) -> list[Ranked]:
    """Return the differences, likeliest first.

    Args:
        found: what is not as it was.
        failure: what the failing attempt came to; None where there is none yet.
    """
    judged = [_judged(difference, failure) for difference in found]
    return sorted(judged, key=lambda item: -item.chance)


def _judged(difference: Difference, failure: Diagnosis | None) -> Ranked:
    chance = _BASE[difference.kind] * difference.weight
    if difference.kind is Kind.PACKAGE:
        chance *= _PACKAGES.get(difference.name, 1.0)
    if failure is None:
        return Ranked(difference, min(1.0, chance), is_named=False)
    chance *= _factor(difference.kind, failure)
    is_named = _is_named(difference.name, failure)
    return Ranked(difference, min(1.0, chance * (_NAMED if is_named else 1.0)), is_named)


def _factor(kind: Kind, failure: Diagnosis) -> float:
    if _HOST_OOM.search(failure.cause or ""):
        return _FACTORS[Verdict.KILLED].get(kind, 0.5)
    return _FACTORS.get(failure.verdict, {}).get(kind, 1.0)


def _is_named(name: str, failure: Diagnosis) -> bool:
    """True if the error holds the word: a package, a file, a variable."""
    word = name.removesuffix("-python")
    if len(word) < _LEAST_WORD or " " in word:
        return False
    if word in _EVERYWHERE and failure.verdict is not Verdict.ENV_ERROR:
        return False
    either = re.escape(word).replace(r"\-", "[-_]")
    pattern = rf"(?<![\w/]){either}(?!\w)"
    return re.search(pattern, failure.evidence, re.IGNORECASE) is not None
