"""What the attempts show about who is to blame: never more than that.

Proven: two attempts differ in just this, one serves and one fails. Passed: they differ in just
this, and the other gets further before it fails of something else. Pointed at: several pairs
differ in a few settings and have just this one in common. Narrowed: they differ in a few
settings, the fault is among them. Shared: every failure of the cause has it, no serving
attempt has. Suspected: the signature names it and nothing more is known. Not alone: an attempt
serves in spite of it. Not needed: an attempt fails of the same cause without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.matrix import spell
from sglsweep.report.launches import Change, changes, distance, settings
from sglsweep.report.view import is_doubtful

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Blame, Outcome, Scalar
    from sglsweep.report.view import RunView

_NARROW = 3
"""More differences than this narrow nothing down for a reader."""
_NARROWED_SHOWN = 2


class Standing(StrEnum):
    """How firmly something is shown, strongest first."""

    PROVEN = "proven"
    PASSED = "passed"
    POINTED = "pointed at"
    NARROWED = "narrowed"
    SHARED = "shared"
    SUSPECTED = "suspected"
    NOT_ALONE = "not alone"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A failing attempt, a better one, and all that differs between them (failing -> better)."""

    failing: Outcome
    better: Outcome
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One thing that is to blame for a cause, and how that is known.

    Attributes:
        pair: the two attempts that show it, for all but the last four; the first of several.
        blame: the signature's word, for the last three.
        against: attempts that fail of the same cause without it, or serve in spite of it.
        settings: for shared: what the failures have in common.
    """

    standing: Standing
    pair: Pair | None = None
    blame: Blame | None = None
    against: tuple[int, ...] = ()
    settings: tuple[tuple[str, str | None], ...] = ()


def shown(run: RunView, failing: Sequence[Outcome]) -> tuple[Shown, ...]:
    """Return what is shown about the failures of one cause, strongest first."""
    result = _paired(run, failing)
    said = {canonical(c.name) for item in result if item.pair for c in item.pair.changes}
    common = () if result else _shared(run, failing)
    if common:
        result.append(Shown(standing=Standing.SHARED, settings=common))
        said |= {canonical(name) for name, _ in common}
    result += [
        _suspected(run, failing, blame)
        for blame in _blames(failing)
        if canonical(blame.flag) not in said
    ]
    return tuple(sorted(result, key=lambda item: list(Standing).index(item.standing)))


def _paired(run: RunView, failing: Sequence[Outcome]) -> list[Shown]:
    served = _smallest(_pairs(run, failing, run.serving))
    proven = [pair for pair in served if len(pair.changes) == 1]
    narrowed = [pair for pair in served if len(pair.changes) > 1]
    further = [o for o in run.failing if o not in failing]
    passed = [
        pair
        for pair in _smallest(_pairs(run, failing, further))
        if len(pair.changes) == 1 and _got_further(pair) and not _is_said(pair, proven)
    ]
    narrowed = [pair for pair in narrowed if not any(_is_within(p, pair) for p in passed)]
    pointed = [] if proven or passed else _pointed(narrowed)
    if pointed:
        return pointed
    return [
        *(_shown(Standing.PROVEN, pair, failing) for pair in proven),
        *(_shown(Standing.PASSED, pair, failing) for pair in passed),
        *(Shown(standing=Standing.NARROWED, pair=pair) for pair in narrowed[:_NARROWED_SHOWN]),
    ]


def _pointed(narrowed: Sequence[Pair]) -> list[Shown]:
    """Return the one setting that all differences have in common, if there is just one."""
    common = set.intersection(*(_suspects(pair) for pair in narrowed)) if narrowed else set()
    if len(narrowed) == 1 or len(common) != 1:
        return []
    better = tuple(sorted({pair.better.attempt.number for pair in narrowed}))
    return [
        Shown(
            standing=Standing.POINTED,
            pair=narrowed[0],
            settings=tuple(common),
            against=better,
        )
    ]


def _pairs(run: RunView, failing: Sequence[Outcome], better: Sequence[Outcome]) -> list[Pair]:
    """Return pairs that differ in little; a launch that is not reliable proves nothing."""
    reliable = [o for o in better if not (run.is_flaky(o) or is_doubtful(o))]
    return [
        Pair(failing=bad, better=good, changes=changes(bad, good))
        for bad in failing
        if not run.is_flaky(bad)
        for good in reliable
        if 0 < distance(bad, good) <= _NARROW
    ]


def _smallest(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose difference holds no other's: what remains is to blame."""
    ordered = sorted(pairs, key=lambda p: (len(p.changes), p.failing.attempt.number))
    kept: list[Pair] = []
    for pair in ordered:
        if not any(_is_within(other, pair) for other in kept):
            kept.append(pair)
    return kept


def _is_within(smaller: Pair, larger: Pair) -> bool:
    return _suspects(smaller) <= _suspects(larger)


def _is_said(pair: Pair, others: Sequence[Pair]) -> bool:
    return any(_is_within(other, pair) for other in others)


def _suspects(pair: Pair) -> set[tuple[str, str | None]]:
    return {(change.name, change.before) for change in pair.changes}


def _got_further(pair: Pair) -> bool:
    return pair.better.diagnosis.phase.order > pair.failing.diagnosis.phase.order


def _shown(standing: Standing, pair: Pair, failing: Sequence[Outcome]) -> Shown:
    (change,) = pair.changes
    others = tuple(
        o.attempt.number for o in failing if settings(o.attempt).get(change.name) != change.before
    )
    return Shown(standing=standing, pair=pair, against=others)


def _shared(run: RunView, failing: Sequence[Outcome]) -> tuple[tuple[str, str | None], ...]:
    """Return settings that all these failures have and no serving attempt has.

    Says nothing of a single launch, nor where nothing serves: everything would be shared.
    """
    launches = {o.attempt.launch_key for o in failing}
    if len(launches) == 1 or not run.serving:
        return ()
    having = [settings(o.attempt) for o in failing]
    names = sorted({name for one in having for name in one})
    serving = [settings(o.attempt) for o in run.serving]
    common: list[tuple[str, str | None]] = [
        (name, having[0].get(name))
        for name in names
        if len({one.get(name) for one in having}) == 1
        and all(one.get(name) != having[0].get(name) for one in serving)
    ]
    return tuple(common) if len(common) <= _NARROW else ()


def _blames(failing: Sequence[Outcome]) -> tuple[Blame, ...]:
    found = {(b.flag, spell(b.value)): b for o in failing for b in o.diagnosis.blames}
    return tuple(found.values())


def _suspected(run: RunView, failing: Sequence[Outcome], blame: Blame) -> Shown:
    if blame.value is None:
        return Shown(standing=Standing.SUSPECTED, blame=blame)
    served = tuple(o.attempt.number for o in run.serving if holds(o, blame.flag, blame.value))
    if served:
        return Shown(standing=Standing.NOT_ALONE, blame=blame, against=served)
    without = tuple(
        o.attempt.number
        for o in failing
        if value_in(o, blame.flag) is not None and not holds(o, blame.flag, blame.value)
    )
    standing = Standing.NOT_NEEDED if without else Standing.SUSPECTED
    return Shown(standing=standing, blame=blame, against=without)


def holds(outcome: Outcome, flag: str, value: Scalar) -> bool:
    """True if the attempt ran with this value: what SGLang made of it, else what was asked."""
    asked = _word(value)
    found = value_in(outcome, flag)
    if found is None:
        return value is None and not flag.startswith("effective.")
    return found in {asked, *same_values(canonical(flag.removeprefix("effective.")), asked)}


def value_in(outcome: Outcome, flag: str) -> str | None:
    """Return the value an attempt ran with, as text; None where that is not known.

    `effective.FLAG` asks for nothing but what SGLang resolved.
    """
    name = canonical(flag.removeprefix("effective."))
    effective = {canonical(k.replace("_", "-")): v for k, v in outcome.diagnosis.effective.items()}
    if effective.get(name) is not None:
        return _word(effective[name])
    if flag.startswith("effective."):
        return None
    text = {canonical(k): v for k, v in settings(outcome.attempt).items()}.get(name)
    if text is None:
        asked = outcome.attempt.cell.get(flag)
        return None if asked is None else _word(asked)
    return "true" if text == "" else text


def _word(value: Scalar) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def did_not_help(failing: Sequence[Outcome]) -> tuple[tuple[Change, int], ...]:
    """Return single changes after which the cause stayed the same, with the attempt."""
    found: dict[tuple[str, str | None], tuple[Change, int]] = {}
    for index, outcome in enumerate(failing):
        for earlier in failing[:index]:
            if distance(earlier, outcome) == 1:
                (made,) = changes(earlier, outcome)
                found.setdefault((made.name, made.after), (made, outcome.attempt.number))
    return tuple(found.values())
