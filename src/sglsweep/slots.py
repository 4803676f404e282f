"""Attempts side by side on one host: who has which port and cards, and who has to run alone.

The cards (`gpus:` of hosts.yaml, else all that the host has) are divided evenly among the slots,
in order: with `slots: 2, gpus: [0, 1, 4, 5]` slot 0 has 0 and 1, slot 1 has 4 and 5. Where there
are more slots than cards each slot has one card, in turn, and slots on one card share its memory.
Without any card they share the host's. A cell that needs more cards than a slot has, and one whose
answer neighbours could change, is launched alone, on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.report.launches import flags_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt
    from sglsweep.config.hosts import HostConfig
    from sglsweep.keeper_files import GpuBefore
    from sglsweep.matrix import Cell

FRACTION = "mem-fraction-static"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
_PORTS = ("enable-dp-attention", "nccl-port", "dist-init-addr")
"""Flags that give a launch ports beside its own; DP attention has those after it."""
_ROOM = 0.9
"""Share of a card that neighbours may ask for together by their fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an attempt runs.

    Attributes:
        number: of the slot.
        gpus: the cards it may see; None = what it sees without us.
        is_alone: nothing else of the run is on the host meanwhile.
        shares_memory: attempts beside it take memory of the same cards, or of a host without any.
    """

    number: int = 0
    gpus: tuple[int, ...] | None = None
    is_alone: bool = True
    shares_memory: bool = False

    def env(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return an attempt's environment with its cards; what the sweep itself chose stays."""
        if self.gpus is None:
            return env
        chosen = {_VISIBLE: ",".join(map(str, self.gpus))}
        # CUDA's own order is by speed, nvidia-smi's and ours by place on the bus.
        return {_ORDER: "PCI_BUS_ID", **env, **chosen}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The places of one host.

    Attributes:
        given: `gpus:` of hosts.yaml.
        cards: what is divided; empty: there is none; None: nobody knows.
    """

    count: int
    given: tuple[int, ...] | None
    cards: tuple[int, ...] | None

    @property
    def each(self) -> int:
        """Cards of one slot."""
        return max(len(self.cards or ()) // self.count, 1)

    @property
    def is_tight(self) -> bool:
        """True where slots have cards in common."""
        return self.count > max(len(self.cards or ()), 1)

    def told(self, port: int) -> str:
        """Return one line: the slots' ports and cards.

        Args:
            port: of slot 0.
        """
        ports = f"{self.count} slots, ports {port} to {port + self.count - 1}"
        if not self.cards:
            return f"{ports}, {'GPUs unknown' if self.cards is None else 'no GPU'}"
        places = [self.place(n, {}, is_made_up=False).gpus or () for n in range(self.count)]
        each = " | ".join(",".join(map(str, cards)) for cards in places)
        return f"{ports}, GPUs {each}" + (" (memory shared)" if self.is_tight else "")

    def alone(self, env: Mapping[str, str], *, number: int = 0) -> Place:
        """Return the place of an attempt without neighbours: all cards are its own."""
        return Place(number=number, gpus=None if _VISIBLE in env else self.given)

    def place(self, number: int, env: Mapping[str, str], *, is_made_up: bool) -> Place:
        """Return the place of an attempt with neighbours.

        Args:
            number: of the slot, from 0.
            env: the attempt's; cards that the sweep itself chooses are those of every slot.
            is_made_up: a rehearsal takes no memory of a host.
        """
        if self.count == 1:
            return self.alone(env, number=number)
        if _VISIBLE in env or not self.cards:
            is_shared = not (is_made_up and self.cards == ())
            gpus = None if _VISIBLE in env else self.given
            return Place(number=number, gpus=gpus, is_alone=False, shares_memory=is_shared)
        first = number * self.each
        gpus = tuple(self.cards[(first + i) % len(self.cards)] for i in range(self.each))
        return Place(number=number, gpus=gpus, is_alone=False, shares_memory=self.is_tight)


def slots_of(config: HostConfig, facts: Mapping[str, object], count: int | None = None) -> Slots:
    """Return the slots of a host.

    Args:
        config: the host's entry.
        facts: what the host is (`onhost/facts.py`).
        count: instead of the entry's `slots`.
    """
    cards = config.gpus if config.gpus is not None else _visible(facts)
    return Slots(count=count or config.slots, given=config.gpus, cards=cards)


def _visible(
    facts: Mapping[str, object], env: Mapping[str, str] | None = None
) -> tuple[int, ...] | None:
    """Return the cards that a launch on the host sees by itself; None where nobody knows."""
    gpus = facts.get("gpus")
    if not isinstance(gpus, list):
        return None
    found = tuple(g["index"] for g in gpus if isinstance(g, dict) and "index" in g)
    environment = facts.get("environment")
    limit = environment.get(_VISIBLE) if isinstance(environment, dict) else None
    limit = (env or {}).get(_VISIBLE, limit)
    if limit is None:
        return found
    words = [word.strip() for word in str(limit).split(",")]
    return tuple(map(int, words)) if all(word.isdigit() for word in words) else None


def cards_of(attempt: Attempt, facts: Mapping[str, object]) -> tuple[int, ...] | None:
    """Return the cards that an attempt's server computes on; None where nobody knows.

    Args:
        attempt: its environment and flags say which.
        facts: what the host is.
    """
    seen = attempt.gpus or _visible(facts, attempt.env)
    flags = {canonical(name): text for name, text in flags_of(attempt.argv).items()}
    first, step = (flags.get(canonical(name), "") for name in ("base-gpu-id", "gpu-id-step"))
    from_there = (seen or ())[int(first) if first.isdigit() else 0 :]
    each = max(int(step), 1) if step.isdigit() else 1
    # A launch that wants more than it sees fails by that; what it sees is what it has.
    return from_there[::each][: gpus_needed(flags)] or None


def used_before(
    before: GpuBefore, attempt: Attempt, facts: Mapping[str, object]
) -> dict[int, int]:
    """Return card -> MiB in use before the server, of its own cards where those are known.

    What somebody has on a card beside them takes nothing from this server.
    """
    numbers = sorted(attempt.gpus) if attempt.gpus else range(len(before.used_mib))
    used = dict(zip(numbers, before.used_mib, strict=False))
    own = cards_of(attempt, facts)
    return {n: mib for n, mib in used.items() if own is None or n in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A launch that is to be made.

    Attributes:
        is_measured: its speed is measured to be compared.
        is_repeat: it repeats an attempt: only what is changed on purpose may differ.
    """

    cell: Cell
    argv: Sequence[str]
    is_measured: bool = False
    is_repeat: bool = False


def alone_because(wanted: Wanted, place: Place, slots: Slots) -> str:
    """Return the kind of launches that must not have neighbours; "" where this is of none."""
    if place.is_alone:
        return ""
    flags = {canonical(name): text for name, text in flags_of(wanted.argv).items()}
    if wanted.is_repeat:
        return "repeats of an attempt"
    if place.gpus and gpus_needed(flags) > len(place.gpus):
        return f"cells that need {gpus_needed(flags)} GPUs (a slot has {len(place.gpus)})"
    if any(canonical(name) in flags for name in _PORTS):
        return "cells with ports beside their own (DP attention, nccl-port, dist-init-addr)"
    if place.shares_memory and wanted.is_measured:
        return "cells whose speed is measured, since slots share a card"
    return _memory_words(wanted.cell, flags, slots) if place.shares_memory else ""


def gpus_needed(flags: Mapping[str, str]) -> int:
    """Return how many cards a launch wants on one node, by its canonical flags."""

    def size(name: str) -> int:
        text = flags.get(canonical(name), "")
        return max(int(text), 1) if text.isdigit() else 1

    own = 1 if canonical("enable-dp-attention") in flags else size("dp-size")
    return -(-size("tp-size") * size("pp-size") * own // size("nnodes"))


def _memory_words(cell: Cell, flags: Mapping[str, str], slots: Slots) -> str:
    """Return the kind of launches whose memory forbids neighbours on the same card.

    A fraction is taken of what is free when the server measures it, so neighbours that start
    together see each other's pools as missing memory; a number of tokens is no such matter.
    """
    if cell.get(FRACTION) is not None:
        return f"cells that name {FRACTION}, since slots share memory"
    if canonical("max-total-tokens") in flags:
        return ""
    fraction = _number(flags.get(canonical(FRACTION)))
    on_one = -(-slots.count // max(len(slots.cards or ()), 1))
    if fraction is not None and fraction * on_one <= _ROOM:
        return ""
    return "cells without a cap on memory (max-total-tokens is one), since slots share it"


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
