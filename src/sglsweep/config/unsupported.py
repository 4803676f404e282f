"""What SWEEP.yaml may ask for that this version does not do yet.

It is said before anything is launched; nothing is ignored in silence. Whoever builds one of these
deletes its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sglsweep.config.document import Document, Loc
from sglsweep.config.mistakes import Note

NOT_YET: Final[Mapping[tuple[str, ...], str]] = {
    ("builds", "*", "pip"): "is not installed: such a build cannot be launched",
    ("builds", "*", "base"): "is not laid over: such a build cannot be launched",
    ("builds", "*", "image"): "is not run: such a build cannot be launched",
}


def not_yet(document: Document) -> tuple[Note, ...]:
    """Return what the file asks for in vain, in the order of `NOT_YET`."""
    return tuple(
        Note(document.where(loc), f"{'.'.join(str(part) for part in loc)} {why}")
        for pattern, why in NOT_YET.items()
        for loc in _matches(document.tree, pattern, ())
    )


def _matches(tree: object, pattern: tuple[str, ...], at: Loc) -> Iterator[Loc]:
    if not pattern:
        if tree is not None:
            yield at
        return
    if not isinstance(tree, dict):
        return
    keys = list(tree) if pattern[0] == "*" else [pattern[0]] if pattern[0] in tree else []
    for key in keys:
        yield from _matches(tree[key], pattern[1:], (*at, key))
