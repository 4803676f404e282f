"""Prefixes that nobody described: what stands in front of SGLang's own headers, learned."""

from __future__ import annotations

import re

ENOUGH = 2
"""Headers behind the same prefix before it is taken for one."""
MOST = 32
"""Prefixes that one log can teach: pods, nodes, streams."""


class Prefixes:
    """What one log puts in front of its records, so that continuation lines lose it as well.

    A traceback's lines have no header of SGLang's own: without this, a log from an unknown
    shipper would be a log without tracebacks.
    """

    __slots__ = ("_known", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._known: tuple[re.Pattern[str], ...] = ()

    def copy(self) -> Prefixes:
        """Return a copy that can go on by itself."""
        copy = Prefixes()
        copy._seen, copy._known = dict(self._seen), self._known
        return copy

    def learn(self, prefix: str, *, is_certain: bool = False) -> None:
        """Take what stood in front of a header; digits may differ from line to line.

        `is_certain`: it stood in front of a traceback, whose next lines need it at once.
        """
        shape = re.sub(r"\d+", r"\\d+", re.escape(prefix))
        if not prefix.strip() or (shape not in self._seen and len(self._seen) >= MOST):
            return
        before = self._seen.get(shape, 0)
        self._seen[shape] = before + (ENOUGH if is_certain else 1)
        if before < ENOUGH <= self._seen[shape]:
            self._known = (*self._known, re.compile(shape))

    def end(self, text: str, at: int) -> int:
        """Return where a known prefix that begins at `at` ends; `at` without one."""
        for pattern in self._known:
            if match := pattern.match(text, at):
                return match.end()
        return at
