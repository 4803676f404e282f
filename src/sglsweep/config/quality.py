"""`quality: {reference: ...}`: the answers that those of every serving cell are compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sglsweep.config.document import Document
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.config.schema import SweepEntry
from sglsweep.flags import canonical, nearest
from sglsweep.matrix import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What answers are compared with: one of the two.

    Attributes:
        when: axis -> values of the cell in this sweep.
        answers: saved ones, as `attempt.json` holds them.
        source: the file that they are from, as it was written.
    """

    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    answers: tuple[Mapping[str, object], ...] = ()
    source: str = ""


_SAVED = "Name an attempt.json of a serving attempt whose sweep had `quality:`."


def read_reference(document: Document, entry: SweepEntry) -> Reference | None:
    """Read what a sweep's answers are compared with.

    Raises:
        ConfigError: an axis that is none, or a file without saved answers.
    """
    wanted = entry.quality.reference if entry.quality is not None else None
    if wanted is None:
        return None
    where = document.where(("quality", "reference"))
    if not isinstance(wanted, str):
        refuse(_strange(entry, wanted, where))
        return Reference(when=dict(wanted))
    path = document.path.parent / Path(wanted).expanduser()
    answers = _saved(path)
    if not answers:
        refuse([Mistake(where=where, what=f"{wanted} holds no saved answers", instead=_SAVED)])
    return Reference(answers=answers, source=wanted)


def _strange(entry: SweepEntry, wanted: Mapping[str, object], where: str) -> list[Mistake]:
    known = {canonical(name) for name in entry.matrix} | set(entry.matrix)
    return [
        Mistake(where=where, what=f"'{name}' is no axis", instead=_instead(name, entry))
        for name in wanted
        if name not in known and canonical(name) not in known
    ]


def _instead(name: str, entry: SweepEntry) -> str:
    near = nearest(name, entry.matrix, count=1)
    return f"Write '{near[0]}'." if near else "Name axes of the matrix."


def _saved(path: Path) -> tuple[Mapping[str, object], ...]:
    try:
        said = json.loads(path.read_text("utf-8"))
        answers = said["quality"]["answers"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    found = answers if isinstance(answers, list) else []
    return tuple(a for a in found if isinstance(a, dict) and "id" in a and "text" in a)
