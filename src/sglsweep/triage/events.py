"""Lines that mean something by the catalogue, each with where and when it was printed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.catalogue.signature import Role, Signature, Site
from sglsweep.triage.signature import best, holds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.triage.record import Piece
    from sglsweep.triage.signature import Matcher
    from sglsweep.triage.traceback import Trace
    from sglsweep.verdict import Phase

FLOOD = 8
"""Matches of one signature by one rank that are kept; the rest is only counted."""
MAX_EVENTS = 20000


@dataclass(slots=True)
class Event:
    """A line that a signature matched, where and in what context.

    Attributes:
        piece: the text that shows it.
        signature: None for an exception that no signature knows.
        trace: the traceback it belongs to.
        section: 0 for the innermost exception of a chain.
        count: how often it was seen, folded lines included.
    """

    piece: Piece
    signature: Signature | None
    phase: Phase
    rank: str | None
    stamp: str | None
    is_fatal: bool
    trace: Trace | None = None
    section: int = 0
    count: int = 1


class Events:
    """What was matched so far: causes and cascades in order, suspects, ignored imports."""

    __slots__ = ("_folded", "_matcher", "_seen", "found", "ignored_imports", "suspects")

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._seen: dict[tuple[str, str], Event] = {}
        self.found: list[Event] = []
        self.suspects: dict[str, Event] = {}
        self.ignored_imports: list[Event] = []
        self._folded: tuple[str, str] | None = None

    def take_folded(self) -> tuple[str, str] | None:
        """Return the event that pieces since the last call were only counted for, the last one."""
        folded, self._folded = self._folded, None
        return folded

    def count_again(self, key: tuple[str, str]) -> None:
        """Count one more of what was folded before."""
        self._seen[key].count += 1

    def copy(self, twins: dict[int, Trace]) -> Events:
        """Return a copy that can go on by itself, over copies of the traces."""
        copy = Events(self._matcher)
        mine = {
            id(e): replace(e, trace=twins[id(e.trace)] if e.trace else None) for e in self.found
        }
        copy.found = list(mine.values())
        copy._seen = {k: mine[id(e)] for k, e in self._seen.items() if id(e) in mine}
        copy.suspects = dict(self.suspects)
        copy.ignored_imports = list(self.ignored_imports)
        return copy

    def is_harmless(self, piece: Piece, phase: Phase) -> bool:
        """Say whether a record announces a traceback that hurts nobody."""
        _, candidates = self._matcher.hits(piece.text)
        return any(s.role is Role.HARMLESS and holds(s, piece.text, phase, "") for s in candidates)

    def judge(
        self,
        piece: Piece,
        candidates: Sequence[Signature],
        trace: Trace | None,
        phase: Phase,
        *,
        is_exception: bool,
    ) -> None:
        """Take a piece with the signatures whose literals it holds.

        `is_exception`: it ends a traceback, or would if there were one.
        """
        if trace is not None and trace.is_ignored:
            return
        matched = self._matching(piece, candidates, trace, phase, is_exception=is_exception)
        signature = best(matched)
        if signature is None:
            if is_exception:
                self._add(piece, None, trace, phase)
            return
        if signature.role is Role.HARMLESS:
            self._ignore(piece, signature, phase)
            return
        for advice in matched:
            if advice.role is Role.ADVICE:
                self._suspect(piece, advice, phase)
        if signature.role is not Role.ADVICE:
            self._add(piece, signature, trace, phase)

    def _matching(
        self,
        piece: Piece,
        candidates: Sequence[Signature],
        trace: Trace | None,
        phase: Phase,
        *,
        is_exception: bool,
    ) -> list[Signature]:
        """Return the signatures that hold; those without a literal only for an exception."""
        frames = trace.where if trace else ""
        if not is_exception:
            return [
                s
                for s in candidates
                if s.site is not Site.EXCEPTION and holds(s, piece.text, phase, frames)
            ]
        text, more = self._said(piece, trace)
        known = [*candidates, *(s for s in more if s not in candidates)]
        matched = [s for s in known if holds(s, text, phase, frames)]
        if not any(s.role is not Role.ADVICE for s in matched):
            matched += [s for s in self._matcher.free if holds(s, text, phase, frames)]
        return matched

    def _said(self, piece: Piece, trace: Trace | None) -> tuple[str, list[Signature]]:
        """Return an exception's text; with the source line that raised it where it has none."""
        if ":" in piece.text or trace is None or trace.source is None:
            return piece.text, []
        _, more = self._matcher.hits(trace.source.text)
        text = f"{piece.text.strip()}: {trace.source.text.strip()}"
        return text, [s for s in more if s.site is Site.EXCEPTION]

    def _ignore(self, piece: Piece, signature: Signature, phase: Phase) -> None:
        if signature.id == "import-ignored" and len(self.ignored_imports) < MAX_EVENTS:
            self.ignored_imports.append(_event(piece, signature, None, phase))

    def _suspect(self, piece: Piece, signature: Signature, phase: Phase) -> None:
        known = self.suspects.get(signature.id)
        if known is None:
            self.suspects[signature.id] = _event(piece, signature, None, phase)
        else:
            self.suspects[signature.id] = replace(known, count=known.count + 1)

    def _add(
        self, piece: Piece, signature: Signature | None, trace: Trace | None, phase: Phase
    ) -> None:
        event = _event(piece, signature, trace, phase)
        key = (signature.id if signature else piece.text[:200], event.rank or "")
        known = self._seen.setdefault(key, event)
        if known is not event:
            known.count += 1
            if known.count > FLOOD:
                self._folded = key
                return
        if len(self.found) < MAX_EVENTS:
            self.found.append(event)


def _event(piece: Piece, signature: Signature | None, trace: Trace | None, phase: Phase) -> Event:
    is_fatal = bool(trace and trace.is_fatal) or bool(signature and signature.is_fatal)
    rank, stamp = piece.rank, piece.stamp
    if trace is not None and not piece.is_headed:
        rank, stamp = trace.head.rank, trace.head.stamp or piece.stamp
    section = trace.section if trace else 0
    return Event(piece, signature, phase, rank, stamp, is_fatal, trace, section)
