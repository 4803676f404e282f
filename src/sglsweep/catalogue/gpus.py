"""GPUs by name: what SGLang asks of a card before it starts, for hosts that have none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sglsweep.errors import ConfigError
from sglsweep.flags import nearest

_MIB_OF_GB: Final = 1024
_ABOUT: Final = 0.06
"""By how much a described memory may miss a known card's: "96GB" are 97,887 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One card as torch and nvidia-smi tell of it.

    Attributes:
        sm_count: multiprocessors; None = not known.
        count: cards in the host; None = not known.
    """

    name: str
    capability: tuple[int, int]
    memory_mib: int
    sm_count: int | None = None
    count: int | None = None

    @property
    def arch(self) -> str:
        """`sm120` and the like."""
        return f"sm{self.capability[0]}{self.capability[1]}"

    def to_json(self) -> dict[str, object]:
        """Return it as `onhost/resolve.py cells` reads it."""
        return {
            "name": self.name,
            "capability": list(self.capability),
            "memory_mib": self.memory_mib,
            "sm_count": self.sm_count,
            "count": self.count,
            "is_described": True,
        }


def _card(name: str, sm: tuple[int, int], memory_mib: int, sm_count: int) -> Gpu:
    return Gpu(name=name, capability=sm, memory_mib=memory_mib, sm_count=sm_count)


# Names as nvidia-smi prints them, memory to within a few per cent, multiprocessors from NVIDIA's
# data sheets. The nearest by compute capability and memory is what `sm120:96GB` means.
CARDS: Final = (
    _card("NVIDIA A100-SXM4-80GB", (8, 0), 81920, 108),
    _card("NVIDIA A100-SXM4-40GB", (8, 0), 40960, 108),
    _card("NVIDIA A10G", (8, 6), 23028, 80),
    _card("NVIDIA GeForce RTX 3090", (8, 6), 24576, 82),
    _card("NVIDIA L40S", (8, 9), 46068, 142),
    _card("NVIDIA L4", (8, 9), 23034, 58),
    _card("NVIDIA GeForce RTX 4090", (8, 9), 24564, 128),
    _card("NVIDIA H100 80GB HBM3", (9, 0), 81559, 132),
    _card("NVIDIA H200", (9, 0), 143771, 132),
    _card("NVIDIA H20", (9, 0), 97871, 78),
    _card("NVIDIA B200", (10, 0), 183359, 148),
    _card("NVIDIA GB200", (10, 0), 189471, 152),
    _card("NVIDIA B300", (10, 3), 275040, 148),
    _card("NVIDIA GB300", (10, 3), 284208, 152),
    _card("NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0), 97887, 188),
    _card("NVIDIA GeForce RTX 5090", (12, 0), 32607, 170),
    _card("NVIDIA GB10", (12, 1), 122502, 48),
)

_ALIASES: Final = {"dgx spark": "gb10", "h100": "h100 80gb hbm3", "a100": "a100 sxm4 80gb"}
_COUNT = re.compile(r"(\d+)\s*[xX]\s*(.+)")
_BY_ARCH = re.compile(
    r"sm_?(\d+)(\d)[a-z]?(?::\s*(\d+(?:\.\d+)?)\s*(GB|GiB|MiB|G)?)?", re.IGNORECASE
)


def described(text: str) -> Gpu:
    """Return the card that a description means: `h200`, `sm120:96GB`, `8x RTX PRO 6000`.

    Raises:
        ConfigError: nothing like it is known, or the memory is missing.
    """
    counted = _COUNT.fullmatch(text.strip())
    count = int(counted.group(1)) if counted else None
    words = counted.group(2) if counted else text.strip()
    found = _by_arch(words) or _by_name(words)
    return Gpu(
        name=found.name,
        capability=found.capability,
        memory_mib=found.memory_mib,
        sm_count=found.sm_count,
        count=count,
    )


def _by_arch(text: str) -> Gpu | None:
    found = _BY_ARCH.fullmatch(text)
    if found is None:
        return None
    capability = (int(found.group(1)), int(found.group(2)))
    same = [card for card in CARDS if card.capability == capability]
    if found.group(3) is None:
        if len(same) == 1:
            return same[0]
        raise ConfigError(
            f"'{text}' does not say how much memory the GPU has",
            next_step=f"Write it like {text}:96GB.",
        )
    unit = (found.group(4) or "GB").lower()
    mib = round(float(found.group(3)) * (1 if unit == "mib" else _MIB_OF_GB))
    near = [card for card in same if abs(card.memory_mib - mib) <= _ABOUT * mib]
    if near:
        return min(near, key=lambda card: abs(card.memory_mib - mib))
    return Gpu(name=f"a GPU of {text}", capability=capability, memory_mib=mib)


def _by_name(text: str) -> Gpu:
    plain = _plain(text)
    wanted = set(_ALIASES.get(plain, plain).split())
    for card in CARDS:
        if wanted and wanted <= set(_plain(card.name).split()):
            return card
    names = [_plain(card.name).removeprefix("nvidia ") for card in CARDS]
    near = nearest(plain, names)
    hint = f"Write {' or '.join(repr(n) for n in near)}" if near else f"Known are {names}"
    raise ConfigError(f"no GPU '{text}' is known", next_step=f"{hint}, or sm120:96GB.")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()
