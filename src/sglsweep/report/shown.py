"""What the attempts show about who is to blame: never more than that.

Proven: two attempts differ in just this, one serves and one fails. Narrowed: they differ in a
few settings, the fault is among them. Shared: every failure of the cause has it, no serving
attempt has. Suspected: the signature names it, the attempts neither show nor clear it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.matrix import spell
from sglsweep.report.launches import Change, changes, settings
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Blame, Outcome
    from sglsweep.report.view import RunView

_NARROW = 3
"""More differences than this narrow nothing down for a reader."""


class Standing(StrEnum):
    """How firmly something is shown, strongest first."""

    PROVEN = "proven"
    NARROWED = "narrowed"
    SHARED = "shared"
    SUSPECTED = "suspected"
    NOT_ALONE = "not alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A failing and a serving attempt and all that differs between them (failing -> serving)."""

    failing: Outcome
    serving: Outcome
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One thing that is to blame for a cause, and how that is known.

    Attributes:
        pair: the two attempts that show it, for proven and narrowed.
        blame: the signature's word, for suspected and not alone.
        served_by: attempts that serve in spite of it, for not alone.
        settings: for shared: what the failures have in common.
    """

    standing: Standing
    pair: Pair | None = None
    blame: Blame | None = None
    served_by: tuple[int, ...] = ()
    settings: tuple[tuple[str, str | None], ...] = ()


def pairs(run: RunView, failing: Sequence[Outcome]) -> tuple[Pair, ...]:
    """Return pairs that differ in few settings; of nested differences only the smallest."""
    found = [
        Pair(failing=bad, serving=good, changes=changes(bad, good))
        for bad in failing
        for good in run.serving
        if not (run.is_flaky(bad) or run.is_flaky(good))
    ]
    close = sorted(
        (pair for pair in found if 0 < len(pair.changes) <= _NARROW),
        key=lambda pair: (len(pair.changes), pair.failing.attempt.number),
    )
    kept: list[Pair] = []
    for pair in close:
        names = {(c.name, c.before) for c in pair.changes}
        if not any({(c.name, c.before) for c in k.changes} <= names for k in kept):
            kept.append(pair)
    return tuple(kept)


def shown(run: RunView, failing: Sequence[Outcome]) -> tuple[Shown, ...]:
    """Return what is shown about the failures of one cause, strongest first."""
    near = pairs(run, failing)
    result = [
        Shown(standing=Standing.PROVEN if len(pair.changes) == 1 else Standing.NARROWED, pair=pair)
        for pair in near
    ]
    said = {canonical(c.name) for pair in near for c in pair.changes}
    common = _shared(run, failing)
    if common and not near:
        result.append(Shown(standing=Standing.SHARED, settings=common))
        said |= {canonical(name) for name, _ in common}
    for blame in _blames(failing):
        if canonical(blame.flag) not in said:
            result.append(_suspected(run, blame))
    return tuple(result)


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


def _suspected(run: RunView, blame: Blame) -> Shown:
    served = tuple(o.attempt.number for o in run.serving if holds(o, blame.flag, blame.value))
    standing = Standing.NOT_ALONE if served and blame.value is not None else Standing.SUSPECTED
    return Shown(standing=standing, blame=blame, served_by=served)


def holds(outcome: Outcome, flag: str, value: object) -> bool:
    """True if the attempt ran with this value: what SGLang made of it, else what was asked."""
    name = flag.removeprefix("effective.")
    asked = _word(value)
    wanted = {asked, *same_values(canonical(name), asked)}
    effective = {canonical(k.replace("_", "-")): v for k, v in outcome.diagnosis.effective.items()}
    if canonical(name) in effective:
        return _word(effective[canonical(name)]) in wanted
    if flag.startswith("effective."):
        return False
    if name in outcome.attempt.cell.values:
        return _word(outcome.attempt.cell.get(name)) in wanted
    found = {canonical(k): v for k, v in settings(outcome.attempt).items()}
    text = found.get(canonical(name))
    return _word(True if text == "" else text) in wanted


def _word(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def did_not_help(failing: Sequence[Outcome]) -> tuple[tuple[Change, int], ...]:
    """Return single changes after which the cause stayed the same, with the attempt."""
    found: dict[tuple[str, str | None], tuple[Change, int]] = {}
    for index, outcome in enumerate(failing):
        for earlier in failing[:index]:
            made = changes(earlier, outcome)
            if len(made) == 1:
                found.setdefault((made[0].name, made[0].after), (made[0], outcome.attempt.number))
    return tuple(found.values())


def verdict_of(outcomes: Sequence[Outcome]) -> str:
    """Say how often the same launch served: "2 of 3"."""
    served = sum(o.verdict is Verdict.SERVING for o in outcomes)
    return f"{served} of {len(outcomes)}"
