"""Which rank was gone first, by the processes that the keeper still sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# SGLang names its schedulers "sglang::scheduler_TP1", "sglang::scheduler_DP0_TP3".
_RANK = re.compile(r"sglang::scheduler_([A-Z][A-Z_]*\d+(?:_[A-Z][A-Z_]*\d+)*)")


class RankWatch:
    """Notes the rank whose process is gone while others run: the log may hold only their cascade.

    Attributes:
        first_gone: the rank as log lines name it ("DP0 TP3"); "" while nobody is missing, or
            where several were gone at one look.
    """

    def __init__(self) -> None:
        self.first_gone = ""
        self._seen: set[str] = set()
        self._is_decided = False

    def look(self, titles: Iterable[str]) -> None:
        """Take the titles of the attempt's living processes."""
        found = (_RANK.search(title) for title in titles)
        present = {match[1].replace("_", " ") for match in found if match}
        gone = self._seen - present
        if gone and not self._is_decided:
            self._is_decided = True
            self.first_gone = next(iter(gone)) if len(gone) == 1 and present else ""
        self._seen |= present
