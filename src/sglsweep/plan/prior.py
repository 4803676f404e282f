"""What an attempt of an earlier run is worth here: by GPU, SGLang, model and flags.

Nothing of an earlier run is certain here, not even where everything is equal: another day, another
driver. So the weight stays below one, and what weighs less than one never clears a value and
never rules one out (see `belief`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglsweep.attempt import FROM_OUTSIDE
from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.flags.script import typed
from sglsweep.matrix import Axis, Cell, Value, spell
from sglsweep.plan.strategy import Evidence
from sglsweep.plan.why import joined
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.verdict import Phase

MOST = 0.95
"""Weight of an attempt whose circumstances are all as they are here."""
LEAST = 0.05
"""An attempt that weighs less is not taken."""
NO_GPU = "no GPU"
_PLACE = frozenset({"host", "port", "model-path", "served-model-name", "tokenizer-path", "world"})
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What an outcome depends on beside its cell; "" = not known.

    Attributes:
        arch: `sm120` and the like, or `NO_GPU`.
        version: SGLang's.
        model: the class that config.json names, or the model's name.
        world: of a rehearsal.
        builds: value of a `build` axis -> its SGLang's version.
        flags: flag -> the text of its value as launched; "" = passed bare.
    """

    arch: str = ""
    version: str = ""
    model: str = ""
    world: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAttempt:
    """One attempt of an earlier run, as its record has it.

    Attributes:
        flags: flag or `env.NAME` -> the text of its value as launched.
        blames: flags that the cause's signature implicates.
    """

    number: int
    cell: Cell
    flags: Mapping[str, str]
    version: str
    verdict: Verdict
    phase: Phase
    cause: str | None
    blames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """An earlier run named under `prior`.

    Attributes:
        name: what to call it.
        where: FILE:LINE that names it.
    """

    name: str
    where: str
    circumstances: Circumstances
    attempts: tuple[EarlierAttempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What of an earlier run counts here, and why not all of it.

    Attributes:
        weights: smallest and largest weight of what was taken.
        why: one sentence.
    """

    run: EarlierRun
    evidence: tuple[Evidence, ...]
    weights: tuple[float, float]
    why: str


def trusted(priors: Sequence[Evidence], own: Sequence[Evidence]) -> list[Evidence]:
    """Return attempts of earlier runs, those of a run that this one contradicts for less.

    A contradiction is a cell that served there and fails here, or the other way round: each
    halves what the whole run weighs.
    """
    here = {entry.cell.key: entry.verdict is Verdict.SERVING for entry in own}
    wrong: dict[str, set[str]] = {}
    for entry in priors:
        key = entry.cell.key
        if key in here and here[key] is not (entry.verdict is Verdict.SERVING):
            wrong.setdefault(_run_of(entry), set()).add(key)
    return [
        replace(entry, weight=entry.weight * 0.5 ** len(wrong.get(_run_of(entry), ())))
        for entry in priors
    ]


def _run_of(entry: Evidence) -> str:
    return entry.source.partition(", attempt ")[0]


def take(
    runs: Sequence[EarlierRun], axes: Sequence[Axis], here: Circumstances
) -> tuple[Taken, ...]:
    """Return what each run says about this matrix; attempts get numbers below 0."""
    taken: list[Taken] = []
    seen: set[_Mark] = set()
    for run in runs:
        taken.append(_take(run, axes, here, seen))
        seen |= {_mark(entry) for entry in run.attempts}
    return tuple(taken)


_Mark = tuple[int, str, str, str]


def _mark(entry: EarlierAttempt) -> _Mark:
    """Return what tells an attempt from others, so that a run named twice counts once."""
    return entry.number, entry.cell.key, entry.verdict.value, entry.cause or ""


def _take(run: EarlierRun, axes: Sequence[Axis], here: Circumstances, seen: set[_Mark]) -> Taken:
    found: list[Evidence] = []
    left: Counter[str] = Counter()
    others: set[str] = set()
    for place, entry in enumerate(run.attempts, start=1):
        there = replace(
            run.circumstances,
            version=entry.version or run.circumstances.version,
            flags=entry.flags,
        )
        weight, unlike = likeness(here, there, axes)
        others |= set(unlike)
        reason = _not_taken(entry, {canonical(axis.name) for axis in axes}, unlike)
        if _mark(entry) in seen:
            left["counted already"] += 1
        elif weight < LEAST:
            left["too unlike"] += 1
        elif reason:
            left[reason] += 1
        else:
            cell = Cell((axis.name, _value(entry, axis, here)) for axis in axes)
            known = _evidence(run, entry, axes, cell)
            found.append(replace(known, number=-len(seen) - place, weight=weight))
    weights = [entry.weight for entry in found] or [0.0]
    return Taken(
        run=run,
        evidence=tuple(found),
        weights=(min(weights), max(weights)),
        why=_told(run, here, found, left, others),
    )


def _not_taken(entry: EarlierAttempt, axes: set[str], unlike: Sequence[str]) -> str:
    """Say why an attempt tells nothing here; "" where it does.

    A failure that is blamed on a flag beside this matrix counts only if it is passed here too.
    """
    if not entry.verdict.is_evidence:
        return "ended by a lost host or an interruption"
    if entry.cause in FROM_OUTSIDE:
        return "ended by another process on the host"
    blamed = {canonical(flag) for flag in entry.blames}
    if blamed and not blamed & axes and blamed & set(unlike):
        return f"failed by {joined(sorted(blamed & set(unlike)))}, which is not so here"
    return ""


def _evidence(
    run: EarlierRun, entry: EarlierAttempt, axes: Sequence[Axis], cell: Cell
) -> Evidence:
    blamed = {canonical(flag) for flag in entry.blames}
    return Evidence(
        number=entry.number,
        cell=cell,
        verdict=entry.verdict,
        phase=entry.phase,
        cause=entry.cause,
        blames=tuple(axis.name for axis in axes if canonical(axis.name) in blamed),
        source=f"run {run.name}, attempt {entry.number}",
    )


def _value(entry: EarlierAttempt, axis: Axis, here: Circumstances) -> Value:
    """Return which value of the axis an attempt had; one that is not listed as it was written.

    A build is the one with the same SGLang, whatever it is called.
    """
    if axis.name == "build":
        same = (name for name, version in here.builds.items() if version == entry.version)
        return next(same, entry.version or None)
    own = {canonical(name): value for name, value in entry.cell.values.items()}
    name = canonical(axis.name)
    listed = {spell(value): value for value in axis.values}
    if name in own and spell(own[name]) in listed:
        return own[name]
    text = {canonical(flag): value for flag, value in entry.flags.items()}.get(name)
    if text is None:
        return next((v for v in axis.values if v is None or v is False), None)
    return next((v for v in axis.values if _is_written(axis.name, v, text)), typed(text))


def _is_written(flag: str, value: Value, text: str) -> bool:
    if value is None or value is False:
        return False
    if value is True:
        return text in {"", "true", "True"}
    written = str(value)
    return text == written or text in same_values(flag, written)


def likeness(
    here: Circumstances, there: Circumstances, axes: Sequence[Axis]
) -> tuple[float, tuple[str, ...]]:
    """Return the weight of an attempt, and the flags beside the matrix in which it differs.

    A stand-in teaches nothing about a real SGLang, nor the other way round.
    """
    if here.world != there.world:
        return 0.0, ()
    weight = MOST
    if not here.world:
        weight *= _alike(here.arch, there.arch, unknown=0.6, other=0.3)
        is_among = there.version in here.builds.values()
        mine_or_its = there.version if is_among else here.version
        weight *= _alike(mine_or_its, there.version, unknown=0.6, other=0.5)
    weight *= _alike(here.model, there.model, unknown=0.6, other=0.4)
    axis_names = {canonical(axis.name) for axis in axes}
    mine, its = _beside(here.flags, axis_names), _beside(there.flags, axis_names)
    names = sorted({*mine, *its})
    unlike = tuple(n for n in names if mine.get(n) != its.get(n))
    if names:
        weight *= 1.0 - 0.5 * len(unlike) / len(names)
    return weight, unlike


def _alike(here: str, there: str, *, unknown: float, other: float) -> float:
    if not here or not there:
        return unknown
    return 1.0 if here == there else other


def _beside(flags: Mapping[str, str], axes: set[str]) -> dict[str, str]:
    named = {canonical(name): text for name, text in flags.items()}
    return {n: t for n, t in named.items() if n not in axes and n not in _PLACE}


def _told(
    run: EarlierRun,
    here: Circumstances,
    found: Sequence[Evidence],
    left: Mapping[str, int],
    unlike: set[str],
) -> str:
    """Write what was taken, what it weighs and why, and what was left."""
    count = len(run.attempts)
    head = f"{len(found)} of {count} attempts of run {run.name} count here"
    if found:
        low, high = min(e.weight for e in found), max(e.weight for e in found)
        shown = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        head += f", each {shown} as much as one of this run"
    reasons = joined(list(_differences(here, run.circumstances)))
    told = [head + (f": {reasons}" if reasons else "")]
    if unlike and found:
        names = sorted(unlike)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        told.append(f"launched with other {joined(names[:_SHOWN])}{more}")
    told += [f"not taken: {number} {why}" for why, number in sorted(left.items())]
    return "; ".join(told)


def _differences(here: Circumstances, there: Circumstances) -> Iterator[str]:
    if here.world != there.world:
        yield _other_world(here.world, there.world)
        return
    if here.world:
        yield f"the same world ({here.world})"
        return
    for what, mine, its in (
        ("GPU", here.arch, there.arch),
        ("SGLang", here.version, there.version),
        ("model", here.model, there.model),
    ):
        if not mine or not its:
            yield f"{what} not known {'here' if not mine else 'there'}"
        elif mine == its:
            yield f"same {what} ({mine})"
        else:
            yield f"other {what} ({its} there, {mine} here)"


def _other_world(here: str, there: str) -> str:
    if not here:
        return "it is a rehearsal, its servers are made up"
    if not there:
        return "it ran a real SGLang, this is a rehearsal"
    return f"it rehearsed another world ({there})"


def arch_of(facts: Mapping[str, object]) -> str:
    """Return `sm120` and the like, `NO_GPU`, or "" where the host does not say."""
    gpus = facts.get("gpus")
    if gpus == []:
        return NO_GPU
    first = gpus[0] if isinstance(gpus, list) else None
    capability = first.get("compute_capability") if isinstance(first, Mapping) else None
    return f"sm{str(capability).replace('.', '')}" if capability else ""


def architecture_of(facts: Mapping[str, object], model: str) -> str:
    """Return the class that a model's config.json names; "" where it is not known."""
    models = facts.get("models")
    known = models.get(model) if isinstance(models, Mapping) else None
    names = known.get("architectures") if isinstance(known, Mapping) else None
    return str(names[0]) if isinstance(names, list) and names else ""
