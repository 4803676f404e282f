"""Looks at a host before a sweep does: reached, free, and with all that a launch needs?"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sglsweep import launch
from sglsweep.errors import ConfigError, HostError
from sglsweep.flags import canonical
from sglsweep.prepare import keeper_python, open_host, probe_facts, probe_flags, workdir_of
from sglsweep.probe.builds import judge_build, judge_model
from sglsweep.probe.checks import Check, Level, Wants, ok, problem, warning
from sglsweep.probe.gpus import judge_fit
from sglsweep.probe.machine import judge_machine, judge_port
from sglsweep.slots import slots_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import PurePosixPath

    from sglsweep.config.hosts import HostConfig
    from sglsweep.config.sweep import Sweep
    from sglsweep.hosts.base import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWanted:
    """A model that is to be launched; `target` is its id or path on the host."""

    name: str
    target: str
    revision: str | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A host, and what is to be launched on it.

    Attributes:
        pythons: build -> its interpreter; empty where nothing is known of builds.
        has_standins: some build is a rehearsal, which needs neither GPU nor model.
        port: None = the host's.
        ranks: cards that the smallest launch takes; None = not known.
        hub: the launch's Hugging Face cache; None = the login's.
    """

    config: HostConfig
    pythons: Mapping[str, str] = field(default_factory=dict)
    models: tuple[ModelWanted, ...] = ()
    has_standins: bool = False
    port: int | None = None
    ranks: int | None = None
    hub: str | None = None


@dataclass(frozen=True, slots=True)
class _Room:
    """A host that can be asked."""

    host: Host
    python: str
    workdir: PurePosixPath


def examine(patient: Patient) -> Iterator[Check]:
    """Yield the checks as they are made; the first ones decide whether there are more."""
    host = open_host(patient.config)
    try:
        yield from _examined(patient, host)
    finally:
        host.close()


def ranks_of(sweep: Sweep) -> int:
    """Return how many cards of one machine the smallest launch of a sweep takes."""
    found = {"tp-size": 1, "pp-size": 1, "nnodes": 1}
    for name, value in sweep.launch.flags.items():
        if canonical(name) in found and isinstance(value, int):
            found[canonical(name)] = value
    for axis in sweep.axes:
        numbers = [value for value in axis.values if isinstance(value, int)]
        if canonical(axis.name) in found and numbers:
            found[canonical(axis.name)] = min(numbers)
    return max(found["tp-size"] * found["pp-size"] // max(found["nnodes"], 1), 1)


def is_usable(checks: list[Check]) -> bool:
    """Tell whether a sweep can run there."""
    return all(check.level is not Level.PROBLEM for check in checks)


def _examined(patient: Patient, host: Host) -> Iterator[Check]:
    began = time.monotonic()
    try:
        home = host.home()
        how = "this machine" if patient.config.ssh is None else "SSH, host key known"
        yield ok("link", f"{how}, {time.monotonic() - began:.1f} s, home {home}")
        python = keeper_python(host, patient.config)
    except (HostError, ConfigError) as error:
        # Nothing else can be asked: this one refusal is the whole answer.
        name = "python" if "no Python" in error.message else "link"
        yield problem(name, error.message, error.next_step)
        return
    room = _Room(host, python, workdir_of(host, patient.config))
    facts = _facts(room, patient)
    if not facts:
        step = f"Try it there: {python} --version"
        yield problem("python", f"{python} could not say what the machine is", step)
        return
    yield ok("python", f"{python} runs the keeper")
    builds = list(_builds(room, patient, facts))
    wants = Wants(
        gpus=patient.config.gpus,
        needs_gpu=_needs_gpu(patient, facts),
        ranks=patient.ranks,
        workdir=str(room.workdir),
    )
    yield from judge_machine(facts, wants)
    yield from _slots(room, patient, facts)
    yield from builds
    yield from _models(room, patient, facts, wants)
    yield _leftovers(room)


def _facts(room: _Room, patient: Patient) -> dict[str, Any]:
    port = patient.port or patient.config.port
    words = [*_hub(patient), "--path", str(room.workdir), "--port", str(port)]
    for python in list(patient.pythons.values())[:1]:
        words += ["--python", python]
    return probe_facts(room.host, room.python, words)


def _slots(room: _Room, patient: Patient, facts: dict[str, Any]) -> Iterator[Check]:
    """Say which slot has which cards, and whether the ports after the first are free too."""
    slots = slots_of(patient.config, facts)
    if slots.count == 1:
        return
    port = patient.port or patient.config.port
    if slots.is_tight and (slots.cards or patient.pythons):
        step = "Cells without a cap on memory (max-total-tokens) are launched alone there."
        yield warning("slots", slots.told(port), step)
    else:
        yield ok("slots", slots.told(port))
    for number in range(1, slots.count):
        for check in judge_port(
            probe_facts(room.host, room.python, ["--port", str(port + number)])
        ):
            # A port that is taken costs its slot alone.
            yield replace(check, level=Level.WARNING) if check.level is Level.PROBLEM else check


def _hub(patient: Patient) -> list[str]:
    return ["--hub", patient.hub] if patient.hub else []


def _builds(room: _Room, patient: Patient, facts: dict[str, Any]) -> Iterator[Check]:
    """Ask each build for its flags; what its interpreter holds is put into the facts."""
    known: dict[str, Any] = {}
    for name, python in patient.pythons.items():
        try:
            table = probe_flags(room.host, python, build=name)
        except HostError as error:
            yield problem(f"build {name}", error.message, error.next_step)
            continue
        said = probe_facts(room.host, room.python, ["--python", python])
        known[name] = said.get("python") or {}
        yield from judge_build(
            name, known[name], {**facts, "tools": said.get("tools")}, len(table.flags)
        )
    facts["builds"] = known
    if not patient.pythons and not patient.has_standins:
        step = "Name its interpreter with --python, or give the SWEEP.yaml instead of the host."
        yield warning("builds", "no SGLang was looked for", step)


def _needs_gpu(patient: Patient, facts: Mapping[str, Any]) -> bool | None:
    """Tell whether a build is made for GPUs, one that cannot be asked too; None: no build."""
    if not patient.pythons:
        return False if patient.has_standins else None
    builds = facts["builds"]
    return any(name not in builds or builds[name].get("torch_cuda") for name in patient.pythons)


def _models(
    room: _Room, patient: Patient, facts: Mapping[str, Any], wants: Wants
) -> Iterator[Check]:
    """Yield the checks of each model; a bad one beside a good one costs attempts, not the host."""
    found: list[list[Check]] = []
    for model in patient.models:
        said = _looked_at(room, patient, model)
        fit = judge_fit(model.name, said.get("model"), facts, wants)
        found.append([*_model(model, said), *fit])
    has_good = any(is_usable(checks) for checks in found)
    for check in (check for checks in found for check in checks):
        is_spoilt = has_good and check.level is Level.PROBLEM
        yield replace(check, level=Level.WARNING) if is_spoilt else check


def _looked_at(room: _Room, patient: Patient, model: ModelWanted) -> dict[str, Any]:
    words = [*_hub(patient), "--model", model.target]
    words += ["--revision", model.revision] if model.revision else []
    return probe_facts(room.host, room.python, words)


def _model(model: ModelWanted, said: Mapping[str, Any]) -> Iterator[Check]:
    error = str((said.get("errors") or {}).get("model") or "")
    yield judge_model(model.name, said.get("model"), is_offline=model.offline, error=error)


def _leftovers(room: _Room) -> Check:
    """Say what of earlier attempts runs there."""
    name = room.host.name
    found = launch.find(room.host, room.python, room.workdir / "runs")
    running = [a["marker"] for a in found.get("attempts", ()) if a["keeper_alive"]]
    lost = [
        a["marker"] for a in found.get("attempts", ()) if a["processes"] and not a["keeper_alive"]
    ]
    if lost:
        said = f"attempts run on without a keeper: {', '.join(lost)}"
        return warning("leftovers", said, f"End them: `sglsweep clean {name}`.")
    if running:
        said = f"attempts run there now: {', '.join(running)}"
        return warning("leftovers", said, f"Wait for them; `sglsweep clean {name}` tells more.")
    return ok("leftovers", "nothing of earlier attempts runs there")
