"""A run's attempts as the blame table takes them: all that reaches the server, as words.

The matrix alone would not do: a relaunch sets flags outside it, and a machine on which something
was changed between two attempts is a difference like any flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.matrix import NO_EFFECT, Axis, Cell
from sglsweep.plan.strategy import Evidence
from sglsweep.report.held import holds, resolved_to, word
from sglsweep.report.launches import BARE, HOST, settings, stable_facts
from sglsweep.report.view import is_doubtful
from sglsweep.report.watchers import watched
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Value
    from sglsweep.report.view import RunView

Words = dict[str, str | None]
"""Setting -> its text; None = not passed, "" = passed without a value."""
_MOST_AXES = 60
_LABELS = frozenset({"served-model-name"})
"""What a server is called makes nothing fail."""
_MODEL_FLAG = "model-path"
"""The flag that the axis `model` sets; signatures name the flag."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a run, in the terms of `plan.blame`.

    Attributes:
        axes: settings that may be behind a failure: what the matrix varies, and what differs.
        written: setting -> how this run spells it.
        twins: attempts left out, since they only show more of another: number -> that one.
    """

    axes: tuple[Axis, ...]
    evidence: tuple[Evidence, ...]
    written: Mapping[str, str]
    twins: Mapping[int, int]

    def cell(self, number: int) -> Cell | None:
        """Return an attempt's cell; None where it is no evidence."""
        return next((e.cell for e in self.evidence if e.number == number), None)


def evidence_in(run: RunView) -> Known:
    """Return the attempts that count for or against their settings."""
    counted = [o for o in run.evidence if o.verdict is not Verdict.SERVING or not is_doubtful(o)]
    words = _with_host(counted, [asked(o) for o in counted])
    listed = {key(a.name): [_text(v) for v in a.values] for a in run.axes if len(a.values) > 1}
    every = dict.fromkeys([*listed, *sorted(_varying(words))])
    found = watched(counted, words)
    left_out = found.left_out | _LABELS
    names = [name for name in every if name not in left_out][:_MOST_AXES]
    acted = [_acted(run, o) for o in counted]
    alike = {name: _alike(name, counted, words, acted) for name in names}
    values = {
        name: tuple(
            dict.fromkeys(
                alike[name].get(text, text)
                for text in (*(own.get(name) for own in words), *listed.get(name, ()))
            )
        )
        for name in names
    }
    evidence = [
        _evidence(
            outcome,
            {name: acts[name] if name in acts else alike[name][own.get(name)] for name in names},
        )
        for outcome, own, acts in zip(counted, words, acted, strict=True)
        if outcome.attempt.number not in found.twins
    ]
    axes = tuple(Axis(name, values[name]) for name in names)
    return Known(axes, tuple(evidence), _written(run), found.twins)


def _written(run: RunView) -> dict[str, str]:
    spelled = [a.name for a in run.axes]
    spelled += [name for o in run.outcomes for name in settings(o.attempt)]
    return {key(name): name for name in reversed(spelled)}


def key(name: str) -> str:
    """Return one name for all spellings of a setting."""
    if name in {"build", "model"} or name.startswith(("env.", HOST)):
        return name
    flag = canonical(name)
    return "model" if flag == _MODEL_FLAG else flag


def is_inert(run: RunView, outcome: Outcome, name: str) -> bool:
    """True if SGLang says that a setting selects nothing in an attempt."""
    return _acted(run, outcome).get(name) == NO_EFFECT


def asked(outcome: Outcome) -> Words:
    """Return what an attempt passed, by the settings' newest names."""
    return {key(name): text for name, text in settings(outcome.attempt).items()}


def _evidence(outcome: Outcome, cell: Mapping[str, Value]) -> Evidence:
    blamed = dict.fromkeys(
        key(b.flag.removeprefix("effective."))
        for b in outcome.diagnosis.blames
        if b.value is None or holds(outcome, b.flag, b.value)
    )
    return Evidence(
        number=outcome.attempt.number,
        cell=Cell(cell),
        verdict=outcome.verdict,
        phase=outcome.diagnosis.phase,
        cause=outcome.diagnosis.cause or outcome.verdict.value,
        blames=tuple(name for name in blamed if cell.get(name, NO_EFFECT) != NO_EFFECT),
    )


def _text(value: Value) -> str | None:
    """Write a value of the matrix as a setting; false is a flag that is not passed."""
    if value is None or value is False:
        return None
    return BARE if value is True else word(value)


def _varying(words: Sequence[Words]) -> set[str]:
    names = {name for own in words for name in own}
    return {name for name in names if len({own.get(name) for own in words}) > 1}


def _with_host(outcomes: Sequence[Outcome], words: list[Words]) -> list[Words]:
    """Add what the machine was; what an attempt did not know is as it last was."""
    seen = [{"name": o.attempt.host, **stable_facts(o)} for o in outcomes]
    for name in sorted({name for facts in seen for name in facts}):
        last = next(facts[name] for facts in seen if name in facts)
        for own, facts in zip(words, seen, strict=True):
            last = own[f"{HOST}{name}"] = facts.get(name, last)
    return words


def _acted(run: RunView, outcome: Outcome) -> Words:
    """Return what acted on the axes of the matrix, where that is recorded."""
    cell = run.acted.get(outcome.attempt.number)
    return {key(name): _text(value) for name, value in cell.values.items()} if cell else {}


def _alike(
    name: str, outcomes: Sequence[Outcome], words: Sequence[Words], acted: Sequence[Words]
) -> dict[str | None, str | None]:
    """Return each value -> the one that stands for all that SGLang resolved to the same.

    Only where every attempt that tells resolved it so: what a flag that is not passed becomes
    can depend on the others.
    """
    became: dict[str | None, set[str | None]] = {}
    for own, acts in zip(words, acted, strict=True):
        if name in acts:
            became.setdefault(own.get(name), set()).add(acts[name])
    if became:
        asked_for = {own.get(name) for own in words}
        return {t: _single(became.get(t, {t}), t) for t in asked_for}
    return _by_launches(name, outcomes, words)


def _single(values: set[str | None], otherwise: str | None) -> str | None:
    return next(iter(values)) if len(values) == 1 else otherwise


def _by_launches(
    name: str, outcomes: Sequence[Outcome], words: Sequence[Words]
) -> dict[str | None, str | None]:
    """Return the same by what the launches printed."""
    made: dict[str | None, set[str]] = {}
    for outcome, own in zip(outcomes, words, strict=True):
        became = made.setdefault(own.get(name), set())
        resolved = resolved_to(outcome, name)
        if resolved is not None:
            became.add(_spelling(name, resolved))
    ends = {
        text: _only(became) or (None if text is None else _spelling(name, text))
        for text, became in made.items()
    }
    first: dict[str | None, str | None] = {}
    for text, end in ends.items():
        if end is not None:
            first.setdefault(end, text)
    return {text: first.get(end, text) if end is not None else text for text, end in ends.items()}


def _only(values: Iterable[str]) -> str | None:
    found = list(values)
    return found[0] if len(found) == 1 else None


def _spelling(name: str, text: str) -> str:
    """Return one spelling of a value that versions write differently."""
    text = "true" if text == BARE else text
    return min((text, *same_values(name, text)))
