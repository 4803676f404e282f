"""Which signatures a piece of text has: literals first, in one pass, then their patterns."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

import ahocorasick_rs

from sglsweep.catalogue.signature import Role, Site, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.catalogue import Catalogue, Signature
    from sglsweep.verdict import Phase


class Matcher:
    """All literals of a catalogue, and of the reader's own marks, as one automaton.

    Built once for a catalogue; holds no state of a log.
    """

    __slots__ = ("_automaton", "_by_literal", "_free")

    def __init__(self, catalogue: Catalogue, marks: Sequence[str]) -> None:
        table: dict[str, list[Signature]] = {mark: [] for mark in marks}
        self._free = [
            s
            for s in catalogue.signatures.values()
            if s.site is Site.EXCEPTION and not s.literals and s.pattern
        ]
        for signature in catalogue.signatures.values():
            for literal in signature.literals:
                table.setdefault(literal, []).append(signature)
        for literal in [text for text in table if _in_json(text) != text]:
            table.setdefault(_in_json(literal), table[literal])
        self._by_literal = list(table.items())
        self._automaton = ahocorasick_rs.BytesAhoCorasick([k.encode() for k in table])

    def offsets(self, block: bytes) -> Iterator[int]:
        """Yield where in `block` literals start, in order of their ends."""
        for _, start, _ in self._automaton.find_matches_as_indexes(block):
            yield start

    def hits(self, text: str) -> tuple[set[str], list[Signature]]:
        """Return (literals that stand in `text`, signatures that own one of them)."""
        found = self._automaton.find_matches_as_indexes(
            text.encode("utf-8", "replace"), overlapping=True
        )
        literals: set[str] = set()
        signatures: dict[str, Signature] = {}
        for index, _, _ in found:
            literal, owners = self._by_literal[index]
            if literal not in literals:
                literals.add(literal)
                signatures.update((s.id, s) for s in owners)
        return literals, list(signatures.values())

    @property
    def free(self) -> Sequence[Signature]:
        """Signatures for the last line of a traceback that need no literal."""
        return self._free


def _in_json(literal: str) -> str:
    """Return a literal as it stands in the raw bytes of a JSON-lines shipper."""
    return json.dumps(literal)[1:-1]


@functools.lru_cache(maxsize=4)
def matcher(catalogue: Catalogue, marks: tuple[str, ...]) -> Matcher:
    """Return the automaton of `catalogue` with the reader's `marks`; built once."""
    return Matcher(catalogue, marks)


def holds(signature: Signature, text: str, phase: Phase, frames: str) -> bool:
    """Say whether `signature` matches `text`, seen in `phase` under a traceback's `frames`."""
    if signature.or_pattern and compiled(signature.or_pattern).search(text):
        return True
    if signature.pattern and not compiled(signature.pattern).search(text):
        return False
    if signature.unless and compiled(signature.unless).search(text):
        return False
    if signature.or_frames and compiled(signature.or_frames).search(frames):
        return True
    if signature.phases and phase not in signature.phases:
        return False
    return not signature.frames or bool(compiled(signature.frames).search(frames))


def best(signatures: Sequence[Signature]) -> Signature | None:
    """Return the one that speaks for a piece: harmless wins, then the closest to the root."""
    if not signatures:
        return None
    for signature in signatures:
        if signature.role is Role.HARMLESS:
            return signature
    order = {Role.CAUSE: 0, Role.CASCADE: 1, Role.ADVICE: 2, Role.HARMLESS: 3}
    return min(signatures, key=lambda s: (order[s.role], s.tier.order))
