"""SWEEP.yaml as frozen types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sglsweep.config.builds import Build, read_builds
from sglsweep.config.checks import kept_for_nothing, mislinked, misnamed, overspent
from sglsweep.config.document import Document, Loc, load_document
from sglsweep.config.mistakes import Note, refuse
from sglsweep.config.models import Model, read_models
from sglsweep.config.quality import Reference, read_reference
from sglsweep.config.requests import read_requests
from sglsweep.config.schema import Budget, Need, Probe, Quality, SweepEntry, Work, Workload
from sglsweep.config.script import Script, read_script
from sglsweep.config.secrets import read_secrets
from sglsweep.config.unsupported import not_yet
from sglsweep.config.validate import dotted, validate
from sglsweep.config.values import AutoFraction, Unwritten
from sglsweep.errors import ConfigError
from sglsweep.flags import FlagValue, Launch, canonical
from sglsweep.keeper_files import HttpRequest
from sglsweep.matrix import Axis, Cell, Value
from sglsweep.plan.goal import Goal
from sglsweep.verdict import Phase

__all__ = [
    "AutoFraction",
    "Budget",
    "Build",
    "Exclude",
    "Goal",
    "Hypothesis",
    "Include",
    "Model",
    "Need",
    "Note",
    "Probe",
    "Sweep",
    "Workload",
    "load_sweep",
]

ANCHORS = "x-"
"""Begins keys at the top that only hold anchors for aliases further down."""

_SECTIONS = frozenset(
    (
        *("need", "builds", "launch", "matrix", "link", "exclude", "include", "hypotheses"),
        *("budget", "limits", "probe", "workload", "quality", "prior"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclude:
    """Cells that must not be launched: all keys hold, any of the values of each.

    Attributes:
        when: axis, flag or `effective.FLAG` -> values.
        where: FILE:LINE.
    """

    when: Mapping[str, tuple[Value, ...]]
    because: str
    where: str


@dataclass(frozen=True, slots=True)
class Include:
    """A cell that is added and tried first; an axis it does not name is not passed."""

    cell: Cell
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A claim to test.

    Attributes:
        when: axis, flag or `effective.FLAG` -> values of the cells it speaks of.
        outcome: `verdict`, `cause` or `phase` -> what it foretells of them, any of the values.
    """

    id: str
    says: str
    when: Mapping[str, tuple[Value, ...]]
    outcome: Mapping[str, tuple[str, ...]]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What one SWEEP.yaml asks for.

    Attributes:
        source: the file, as it was given.
        model: what cells without a `model` axis serve.
        models: name as the file writes it -> model; the values of a `model` axis among them.
        build: what cells without a `build` axis use: the first of `builds`.
        axes: in the order of the file; `{auto: true}` is one value, its start.
        auto: present where `mem-fraction-static` is to be solved.
        links: names of axes that go together, by position.
        limits: phase, `jit` or `download` -> seconds.
        requests: the user's own, asked as a step of the proof.
        quality_reference: what the answers to `quality` are compared with.
        prior: folders of earlier runs, or files of exported findings.
        remedies: what the catalogue knows against a cause may be launched beside the matrix.
        resolve: SGLang is asked what it makes of every cell before the first launch.
        secrets: name of each `${NAME}` -> its value; the texts keep `${NAME}`.
        where: `matrix.AXIS`, `matrix.AXIS[1]`, `launch.flags.FLAG`, ... -> FILE:LINE.
        unsupported: what the file asks for and this version does not do.
    """

    name: str
    source: Path
    host: str
    port: int | None
    model: Model
    models: Mapping[str, Model]
    build: Build
    builds: Mapping[str, Build]
    launch: Launch
    axes: tuple[Axis, ...]
    auto: AutoFraction | None
    links: tuple[tuple[str, ...], ...]
    excludes: tuple[Exclude, ...]
    includes: tuple[Include, ...]
    hypotheses: tuple[Hypothesis, ...]
    goal: tuple[Goal, ...]
    budget: Budget
    limits: Mapping[Phase | Work, float]
    probe: Probe
    workload: Workload | None
    prior: tuple[Path, ...]
    need: Need
    secrets: Mapping[str, str] = field(repr=False)
    where: Mapping[str, str] = field(repr=False)
    unsupported: tuple[Note, ...] = ()
    resolve: bool = True
    remedies: bool = False
    requests: tuple[HttpRequest, ...] = ()
    quality: Quality | None = None
    quality_reference: Reference | None = None

    def build_of(self, cell: Cell) -> Build:
        """Return the build that a cell uses."""
        name = cell.get("build")
        return self.builds[str(name)] if name is not None else self.build

    def model_of(self, cell: Cell) -> Model:
        """Return the model that a cell serves."""
        name = cell.get("model")
        return self.models[str(name)] if name is not None else self.model


def load_sweep(path: Path) -> Sweep:
    """Read and check SWEEP.yaml; flags are checked later, against the build's own table.

    Raises:
        ConfigError: with FILE:LINE, the offending text and what to write instead.
    """
    document = load_document(path)
    if not isinstance(document.tree, dict):
        raise ConfigError(
            f"{path}:1: the file is no mapping", next_step="Write `model: ...` and so on."
        )
    entry = validate(document, _marked(document), SweepEntry)
    refuse(misnamed(document, entry))
    refuse(mislinked(document, entry))
    refuse(overspent(document, entry))
    return _sweep(document, entry)


def _marked(document: Document) -> object:
    """Return the tree with `flag:` told from `flag: null` wherever values of flags stand.

    A key of the sweep with nothing below it (all commented out, say) is as if it were not there,
    and so is one that only holds anchors.
    """

    def mark(value: object, loc: Loc) -> object:
        if loc in document.empty and _is_flag_value(loc):
            return Unwritten()
        if isinstance(value, dict):
            items = ((key, item, (*loc, key)) for key, item in value.items())
            return {k: mark(v, at) for k, v, at in items if not _is_bare(document, at)}
        if isinstance(value, list):
            return [mark(item, (*loc, index)) for index, item in enumerate(value)]
        return value

    return mark(document.tree, ())


def _is_bare(document: Document, loc: Loc) -> bool:
    if len(loc) == 1 and str(loc[0]).startswith(ANCHORS):
        return True
    is_section = len(loc) == 1 or loc in {("launch", "flags"), ("launch", "env")}
    return loc in document.empty and is_section and loc[0] in _SECTIONS


def _is_flag_value(loc: Loc) -> bool:
    if loc[-1:] and isinstance(loc[-1], int):
        loc = loc[:-1]
    match loc:
        case ("launch", "flags" | "env", _) | ("matrix", _) | ("include", int(), _):
            return True
        case ("exclude", int(), "when", _) | ("hypotheses", int(), "predicts", _):
            return True
        case _:
            return False


def _sweep(document: Document, entry: SweepEntry) -> Sweep:
    folder = document.path.parent
    script = read_script(document, entry, folder)
    axes, auto = _axes(entry)
    model, models = read_models(document, entry, axes, script)
    builds = read_builds(document, entry, axes, script)
    secrets = {**read_secrets(document), **script.secrets}
    return Sweep(
        name=entry.name or document.path.stem,
        source=document.path,
        host=entry.host,
        port=entry.port,
        model=model,
        models=models,
        build=next(iter(builds.values())),
        builds=builds,
        launch=_launch(entry, script),
        axes=axes,
        auto=auto,
        links=entry.link,
        excludes=_excludes(document, entry),
        includes=_includes(document, entry),
        hypotheses=_hypotheses(document, entry),
        goal=tuple(dict.fromkeys(entry.goal)),
        budget=entry.budget,
        limits=entry.limits,
        probe=entry.probe,
        workload=entry.workload,
        prior=tuple(folder / Path(prior).expanduser() for prior in entry.prior),
        need=entry.need,
        resolve=entry.resolve,
        remedies=entry.remedies,
        requests=_requests(document, entry),
        quality=entry.quality,
        quality_reference=read_reference(document, entry),
        secrets=secrets,
        where={dotted(loc): document.where(loc) for loc in document.lines},
        unsupported=(*not_yet(document), *kept_for_nothing(document, entry), *script.notes),
    )


def _requests(document: Document, entry: SweepEntry) -> tuple[HttpRequest, ...]:
    written = entry.probe.requests
    if written is None:
        return ()
    path = document.path.parent / Path(written).expanduser()
    return read_requests(path, where=document.where(("probe", "requests")))


def _axes(entry: SweepEntry) -> tuple[tuple[Axis, ...], AutoFraction | None]:
    auto = next((v for v in entry.matrix.values() if isinstance(v, AutoFraction)), None)
    axes = tuple(
        Axis(name, (values.start,) if isinstance(values, AutoFraction) else values)
        for name, values in entry.matrix.items()
    )
    return axes, auto


def _launch(entry: SweepEntry, script: Script) -> Launch:
    """Lay what the file says over what the script says, by the flag that a name means."""
    own = {canonical(name) for name in entry.launch.flags}
    kept = {n: v for n, v in script.flags.items() if canonical(n) not in own}
    return Launch(flags={**kept, **entry.launch.flags}, env={**script.env, **entry.launch.env})


def _excludes(document: Document, entry: SweepEntry) -> tuple[Exclude, ...]:
    return tuple(
        Exclude(when=rule.when, because=rule.because, where=document.where(("exclude", index)))
        for index, rule in enumerate(entry.exclude)
    )


def _includes(document: Document, entry: SweepEntry) -> tuple[Include, ...]:
    return tuple(
        Include(
            Cell((name, _scalar(value)) for name, value in cell.items()),
            document.where(("include", index)),
        )
        for index, cell in enumerate(entry.include)
    )


def _scalar(value: FlagValue) -> Value:
    """A cell holds scalars; a list goes into it as JSON text, see `flags.listed`."""
    return json.dumps(list(value)) if isinstance(value, tuple) else value


def _hypotheses(document: Document, entry: SweepEntry) -> tuple[Hypothesis, ...]:
    outcomes = {"verdict", "cause", "phase"}
    return tuple(
        Hypothesis(
            id=claim.id,
            says=claim.says,
            when={k: v for k, v in claim.predicts.items() if k not in outcomes},
            outcome={
                k: tuple(str(item) for item in v)
                for k, v in claim.predicts.items()
                if k in outcomes
            },
            where=document.where(("hypotheses", index)),
        )
        for index, claim in enumerate(entry.hypotheses)
    )
