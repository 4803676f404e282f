"""Prompts that any vocabulary can take: token ids that surely exist, and plain English."""

from __future__ import annotations

import random

# Each begins differently, so that none is a prefix hit of another before that is asked for.
TEXTS = (
    "The harbour was quiet that morning. An old man sat on the wall, mended his net and told "
    "the children about the winter when the sea had frozen as far as one could see. He said",
    "Water boils at a lower temperature on a mountain than at the sea. The reason is that the "
    "air presses less strongly there. If you want to cook potatoes in a hut, you should",
    "My grandmother kept bees behind the house. Every spring she painted the hives, and in "
    "autumn she gave each neighbour a jar of honey. When somebody asked her for the secret,",
    "Long before there were railways, letters were carried by riders who changed horses at "
    "every inn. A letter from the coast to the capital took five days, unless",
)
SANITY_TEXT = (
    "The sun rises in the east and sets in the west. In the morning people wake up, drink "
    "a cup of coffee and go to work. In the evening they come home, eat dinner with their "
    "family and go to sleep."
)

# Without the size of the vocabulary only small ids are safe: an id beyond it kills the
# scheduler (0.5.23 on CPU: "index out of range in self", the whole server gone). Every
# byte-level or SentencePiece vocabulary has its bytes here, after the special ids.
_SAFE_FIRST, _SAFE_END = 100, 256
_MARGIN = 8
"""Ids left free at both ends: beginnings hold special ids, ends hold padding and added ones."""


def token_ids(
    count: int, *, seed: int, vocab: int | None, special: frozenset[int] = frozenset()
) -> list[int]:
    """Return `count` ids below `vocab`, the same for the same seed, none of them special.

    Args:
        count: how many.
        seed: different seeds give prompts that share no prefix.
        vocab: None where unknown; then only ids that every vocabulary has are used.
        special: ids to leave out.
    """
    first, end = _bounds(vocab)
    spare = next((i for i in range(first, end) if i not in special), first)
    drawn = random.Random(seed).choices(range(first, end), k=count)  # noqa: S311 - no secret
    return [spare if i in special else i for i in drawn]


def _bounds(vocab: int | None) -> tuple[int, int]:
    if vocab is None:
        return _SAFE_FIRST, _SAFE_END
    if vocab <= 4 * _MARGIN:
        return 0, vocab
    # The upper tenth of large vocabularies is added and reserved tokens (images, tools).
    return _MARGIN, max(vocab - max(_MARGIN, vocab // 10), _MARGIN + 1)
