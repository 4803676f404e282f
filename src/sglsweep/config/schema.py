"""What SWEEP.yaml may hold, as types; pydantic reads them, everything else just uses them.

A mistake that pydantic does not know by itself is raised as `wrong(what, instead)`; `validate.py`
joins either kind to the line it stands on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, Strict, model_validator
from pydantic.fields import FieldInfo

from sglsweep.config.units import seconds, share
from sglsweep.config.values import axis_values, env_value, launch_value, only_value
from sglsweep.config.wrong import unknown_key, wrong
from sglsweep.flags import nearest
from sglsweep.plan.goal import Goal
from sglsweep.verdict import Phase

Text = Annotated[str, Strict(), Field(min_length=1)]
Count = Annotated[int, Strict(), Field(ge=1)]
Switch = Annotated[bool, Strict()]


def _matching(pattern: str, instead: str) -> PlainValidator:
    """Accept text that matches in whole."""

    def check(value: object) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        raise wrong("is not accepted here", instead)

    return PlainValidator(check)


EnvName = Annotated[
    str,
    _matching(r"[A-Za-z_][A-Za-z0-9_]*", "Write a name of letters, digits and underscores."),
]
SloName = Annotated[
    str, _matching(r"(ttft|tpot|itl|e2e)_p\d{2,3}", "Write it like ttft_p99 or tpot_p50.")
]
RunName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*",
        "Write letters, digits, dots, dashes and underscores; it names a folder.",
    ),
]
Weights = Annotated[str, _matching("real|dummy", "Write real or dummy.")]
Tool = Annotated[
    str,
    _matching(
        "own|bench_serving|guidellm|aiperf", "Write own, bench_serving, guidellm or aiperf."
    ),
]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong("is not a number", "Write a number.")
    if value <= 0:
        raise wrong("is not above 0", "Write a number above 0.")
    return float(value)


def _duration(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise wrong("has no unit", f"Write {value}s for seconds or {value}m for minutes.")
    found = seconds(value) if isinstance(value, str) else None
    if found is None:
        raise wrong("is no duration", "Write it like 90s, 40m, 2h or 1h30m.")
    return found


def _share(value: object) -> float:
    found = share(value)
    if found is None:
        raise wrong("is no share", "Write it like 25% or 0.25.")
    return found


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Number = Annotated[float, PlainValidator(_number)]
Duration = Annotated[float, PlainValidator(_duration)]
Share = Annotated[float, PlainValidator(_share)]


class Keys:
    """A mapping of the file: unknown keys are mistakes, with the nearest known one."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        known = _names(cls)
        for key in value:
            if key in known:
                continue
            near = nearest(key, known, count=1)
            instead = f"Write '{near[0]}'." if near else f"It may hold {', '.join(known)}."
            raise unknown_key(key, instead)
        return value


def _names(cls: type) -> tuple[str, ...]:
    """Return the keys that a mapping may hold, as the file spells them."""
    hints = get_type_hints(cls, include_extras=True)
    names = []
    for item in fields(cls):
        alias = next(
            (
                a.alias
                for a in get_args(hints[item.name])[1:]
                if isinstance(a, FieldInfo) and a.alias
            ),
            item.name,
        )
        names.append(alias)
    return tuple(names)


def _one_of(value: object, *kinds: type[StrEnum]) -> StrEnum:
    members = {str(member): member for kind in kinds for member in kind}
    known = list(members)
    if isinstance(value, str) and value in members:
        return members[value]
    near = nearest(str(value), known, count=1)
    hint = f"Write '{near[0]}'; " if near else "Write one of "
    listing = ", ".join(known)
    raise wrong("is unknown", f"{hint}{'it may be ' if near else ''}{listing}.")


GoalName = Annotated[Goal, PlainValidator(lambda v: _one_of(v, Goal))]


class Work(StrEnum):
    """What has a limit beside the phases: it goes on in any of them."""

    JIT = "jit"
    DOWNLOAD = "download"


LimitName = Annotated[Phase | Work, PlainValidator(lambda v: _one_of(v, Phase, Work))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry(Keys):
    """The model as the file names it."""

    id: Text | None = None
    path: Text | None = None
    revision: Text | None = None
    offline: Switch = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Need(Keys):
    """What a server must hold to be a success.

    Attributes:
        context: tokens of one request.
        concurrent: requests at once.
    """

    context: Count | None = None
    concurrent: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEntry(Keys):
    """One installed SGLang as the file names it."""

    python: Text | None = None
    venv: Text | None = None
    base: Text | None = None
    pip: tuple[Text, ...] = ()
    image: Text | None = None
    engine: Text | None = None
    rehearsal: Text | None = None


FlagMap = dict[str, Annotated[Any, PlainValidator(launch_value)]]
AxisMap = dict[str, Annotated[Any, PlainValidator(axis_values)]]
WhenMap = dict[str, Annotated[Any, PlainValidator(only_value)]]
EnvMap = dict[EnvName, Annotated[Any, PlainValidator(env_value)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEntry(Keys):
    """What every attempt passes."""

    script: Annotated[Text | None, Field(alias="from")] = None
    flags: FlagMap = field(default_factory=dict)
    env: EnvMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludeEntry(Keys):
    """Cells that must not be launched, and why."""

    when: Annotated[WhenMap, Field(min_length=1)]
    because: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisEntry(Keys):
    """A claim, and what it foretells of cells."""

    id: Text
    says: Text
    predicts: Annotated[WhenMap, Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Keys):
    """What the whole run may spend.

    Attributes:
        hours: None = no limit.
        attempts: None = no limit.
        keep: share that `first-serving` may not spend; None = a quarter, where a later goal can
            use it although nothing serves.
    """

    hours: Number | None = None
    attempts: Count | None = None
    keep: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Keys):
    """A short load: requests in all, and at once."""

    concurrency: Count = 8
    requests: Count = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(Keys):
    """A question whose right answer holds a certain text."""

    prompt: Text
    contains: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Keys):
    """What a server is asked before it counts as serving.

    Attributes:
        weights: "real", or "dummy" to load none.
        load: None: chosen by the proof.
        soak: seconds to go on asking; None = no soak.
        expect: asked through the chat template.
        requests: a file with requests of your own, one JSON object a line.
        confirm_nan: launch a cell that answers garbage once more with SGLang's own NaN check.
    """

    weights: Weights = "real"
    load: Load | None = None
    soak: Duration | None = None
    expect: tuple[Expect, ...] = ()
    requests: Text | None = None
    confirm_nan: Annotated[Switch, Field(alias="confirm-nan")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityQuestion(Keys):
    """A question and words of which the right answer has one."""

    prompt: Text
    contains: Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle(Keys):
    """A fact to be found again in so many tokens of context."""

    context: Annotated[int, Strict(), Field(ge=256)]


def _reference(value: object) -> object:
    if isinstance(value, (str, dict)) and value:
        return value
    raise wrong(
        "names no reference", "Write {FLAG: value} of a cell, or the path of an attempt.json."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality(Keys):
    """What tells whether a serving cell is the model that was asked for.

    Attributes:
        questions: empty: a dozen of common knowledge.
        tools: ask for tool calls too.
        tokens: most tokens of an answer, thoughts included.
        reference: a cell of this sweep, or an attempt.json with the answers to compare with.
    """

    questions: tuple[QualityQuestion, ...] = ()
    needle: Needle | None = None
    tools: Switch = False
    tokens: Count = 512
    reference: Annotated[Text | WhenMap | None, BeforeValidator(_reference)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Keys):
    """The traffic that `fastest` measures.

    Attributes:
        input: tokens of a prompt.
        output: tokens of an answer.
        ladder: requests at once, rung by rung.
        slo: name of a percentile (`ttft_p99`) -> seconds.
        tool: what asks; the own ladder where that tool is not there.
        program: path of guidellm or aiperf on the host.
    """

    input: Count = 1024
    output: Count = 512
    ladder: tuple[Count, ...] = ()
    slo: dict[SloName, Duration] = field(default_factory=dict)
    tool: Tool = "bench_serving"
    program: Text | None = None


def _model(value: object) -> object:
    if isinstance(value, (str, dict)):
        return {"id": value} if isinstance(value, str) else value
    raise wrong("names no model", "Write its id or path as text, or {id: ..., revision: ...}.")


def _links(value: object) -> object:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        raise wrong("is one list", f"Write [[{', '.join(value)}]]: a list of links.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEntry(Keys):
    """SWEEP.yaml as it stands in the file."""

    name: RunName | None = None
    model: Annotated[ModelEntry, BeforeValidator(_model)] = field(default_factory=ModelEntry)
    host: Text = "local"
    port: Annotated[int, Strict(), Field(ge=1, le=65535)] | None = None
    need: Need = field(default_factory=Need)
    builds: dict[Text, BuildEntry] = field(default_factory=dict)
    launch: LaunchEntry = field(default_factory=LaunchEntry)
    matrix: AxisMap = field(default_factory=dict)
    link: Annotated[
        tuple[Annotated[tuple[Text, ...], Field(min_length=2)], ...], BeforeValidator(_links)
    ] = ()
    exclude: tuple[ExcludeEntry, ...] = ()
    include: tuple[Annotated[FlagMap, Field(min_length=1)], ...] = ()
    hypotheses: tuple[HypothesisEntry, ...] = ()
    goal: Annotated[tuple[GoalName, ...], BeforeValidator(_as_list), Field(min_length=1)] = (
        Goal.FIRST_SERVING,
    )
    budget: Budget = field(default_factory=Budget)
    limits: dict[LimitName, Duration] = field(default_factory=dict)
    probe: Probe = field(default_factory=Probe)
    workload: Workload | None = None
    quality: Quality | None = None
    prior: Annotated[tuple[Text, ...], BeforeValidator(_as_list)] = ()
    resolve: Switch = True
    remedies: Switch = False
