"""Settings that make SGLang say what is wrong: they bring a failure to light, they make none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.matrix import Cell
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Outcome

WATCHERS = frozenset(
    {
        "enable-nan-detection",
        "env.SGLANG_ENABLE_ASYNC_ASSERT",
        "env.SGLANG_ENABLE_NAN_LOGITS_CHECK",
    }
)


@dataclass(frozen=True, slots=True)
class Watched:
    """What comes of attempts that were launched with such a setting.

    Attributes:
        left_out: settings that nothing is blamed on; empty where a launch fails with one and
            serves without: then it is worth a row like any other.
        twins: attempt with a watcher -> the same launch without, which fails too. The two tell
            of one fault by two names.
    """

    left_out: frozenset[str] = WATCHERS
    twins: Mapping[int, int] = field(default_factory=dict)


def watched(outcomes: Sequence[Outcome], words: Sequence[Mapping[str, str | None]]) -> Watched:
    """Compare launches that differ in nothing but watchers."""
    groups: dict[str, tuple[list[Outcome], list[Outcome]]] = {}
    for outcome, own in zip(outcomes, words, strict=True):
        rest = Cell((name, text) for name, text in own.items() if name not in WATCHERS)
        plain, seen = groups.setdefault(rest.key, ([], []))
        (seen if WATCHERS & own.keys() else plain).append(outcome)
    twins: dict[int, int] = {}
    for plain, seen in groups.values():
        failing = [o for o in seen if o.verdict is not Verdict.SERVING]
        if failing and any(o.verdict is Verdict.SERVING for o in plain):
            return Watched(left_out=frozenset())
        if plain:
            twins |= {o.attempt.number: plain[0].attempt.number for o in failing}
    return Watched(twins=twins)
