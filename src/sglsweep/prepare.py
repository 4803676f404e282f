"""What must be known before the first launch: the file, the host, its builds, their flags."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from sglsweep.config.hosts import LOCAL, HostConfig, load_host
from sglsweep.config.sweep import Sweep, load_sweep
from sglsweep.errors import ConfigError, HostError, HostUnreachable
from sglsweep.expand import Expanded, expand
from sglsweep.flags import FlagTable
from sglsweep.hosts.local import LocalHost
from sglsweep.hosts.ssh import SshHost, SshTarget
from sglsweep.priors import read_priors
from sglsweep.rehearsal.world_file import load_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.config.builds import Build
    from sglsweep.expand.resolved import Settled
    from sglsweep.hosts.base import Host
    from sglsweep.plan.prior import EarlierRun

_FLAGS_TIMEOUT_S = 180.0
_FACTS_TIMEOUT_S = 60.0
_SGLANG = "sglang>=0.5.4,<0.6"
"""As the extra `host` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This machine in place of the host.

    Attributes:
        python: what runs every build; None = what the sweep says, looked for on this machine.
    """

    python: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A sweep on its host, ready to launch from.

    Attributes:
        python: any Python on the host that runs the keeper and the probes.
        workdir: where attempts' folders go, absolute on the host.
        cwd: the folder that relative paths of the sweep mean on the host; None = home.
        pythons: build -> its interpreter, absolute where a probe has to run it.
        tables: build -> the flags that its SGLang takes; a rehearsal has none.
        facts: what the host and each build are; build names under "builds".
        settled: what SGLang itself makes of the cells; None = it was not asked.
        earlier: the runs named under `prior`.
    """

    sweep: Sweep
    host: Host
    config: HostConfig
    python: str
    workdir: PurePosixPath
    cwd: str | None
    pythons: Mapping[str, str]
    tables: Mapping[str, FlagTable]
    expanded: Expanded
    facts: Mapping[str, object] = field(default_factory=dict)
    settled: Settled | None = None
    earlier: tuple[EarlierRun, ...] = ()


def prepare(path: Path, *, here: Here | None = None) -> Ground:
    """Read a sweep, reach its host, ask its builds for their flags, check the cells against them.

    Args:
        path: SWEEP.yaml.
        here: ask on this machine instead of the sweep's host.

    Raises:
        ConfigError: the file, a flag or a value is wrong; nothing was launched.
        HostError: the host cannot be used.
    """
    sweep = load_sweep(path)
    refuse_unsupported(sweep)
    for build in sweep.builds.values():
        if build.rehearsal is not None:
            load_world(build.rehearsal)
    expand(sweep)
    earlier = read_priors(sweep)
    config = load_host(LOCAL if here else sweep.host, path)
    host = open_host(config)
    try:
        return replace(_prepared(sweep, config, host, here or Here()), earlier=earlier)
    except BaseException:
        host.close()
        raise


def open_host(config: HostConfig) -> Host:
    """Return the host that a name of hosts.yaml means; the link is made when it is first used."""
    if config.ssh is None:
        return LocalHost(config.name)
    ssh = config.ssh
    return SshHost(
        SshTarget(
            name=config.name,
            host=ssh.host,
            user=ssh.user,
            port=ssh.port,
            key=ssh.key,
            jump=ssh.jump,
            password_env=ssh.password_env,
        )
    )


def refuse_unsupported(sweep: Sweep) -> None:
    """Refuse builds that this version cannot launch; what it merely ignores is told as a note.

    Raises:
        ConfigError: a build needs what does not exist yet.
    """
    for note in sweep.unsupported:
        if "cannot be launched" in note.text:
            raise ConfigError(
                f"{note.where}: {note.text}",
                next_step="Give the build a `python:` or a `venv:` that exists on the host.",
            )


def keeper_python(host: Host, config: HostConfig) -> str:
    """Return a Python 3.8 or later on the host.

    Raises:
        HostError: there is none where it was looked for.
    """
    wanted = [config.python] if config.python else ["python3", "/usr/bin/python3"]
    if config.ssh is None and not config.python:
        wanted = [sys.executable]
    said = ""
    for python in wanted:
        try:
            answer = host.run([python, "-c", "import sys; print(sys.version_info >= (3, 8))"])
        except HostUnreachable:
            raise
        except HostError as error:
            said = error.message
            continue
        if answer.text.strip() == "True":
            return python
        said = answer.stderr.decode("utf-8", "replace").strip() or answer.text.strip()
    raise HostError(
        f"{host.name}: no Python 3.8 or later ({said.splitlines()[-1] if said else 'no answer'})",
        next_step="Set `python:` for this host in hosts.yaml.",
    )


def probe_flags(host: Host, python: str, *, build: str) -> FlagTable:
    """Ask a build's SGLang which flags it takes; launches nothing, takes some seconds.

    Raises:
        HostError: no SGLang there that can be imported, in its own words.
    """
    program = (resources.files("sglsweep.onhost") / "resolve.py").read_bytes()
    answer = host.run([python, "-", "flags"], stdin=program, timeout_s=_FLAGS_TIMEOUT_S)
    said = _json(answer.stdout)
    if said is not None and said.get("ok"):
        return FlagTable.from_json(said)
    error = (said or {}).get("error") or answer.stderr.decode("utf-8", "replace")
    lines = str(error).strip().splitlines() or [f"exit status {answer.exit_status}"]
    way = f"Try it there: {python} -c 'import sglang.srt.server_args'"
    if "No module named 'sglang'" in lines[-1]:
        way = f"Install it there: {python} -m pip install '{_SGLANG}' (brings torch, FlashInfer)."
    raise HostError(
        f"{host.name}: build '{build}': {python} has no SGLang that can be used: {lines[-1]}",
        next_step=way,
    )


def probe_facts(host: Host, python: str, arguments: list[str]) -> dict[str, object]:
    """Ask the machine what it is; what cannot be known is null, never an error."""
    program = (resources.files("sglsweep.onhost") / "facts.py").read_bytes()
    answer = host.run([python, "-", *arguments], stdin=program, timeout_s=_FACTS_TIMEOUT_S)
    return _json(answer.stdout) or {}


def _prepared(sweep: Sweep, config: HostConfig, host: Host, here: Here) -> Ground:
    # The first question to a machine is the one whose refusal is about the link alone.
    host.home()
    python = keeper_python(host, config)
    cwd = str(sweep.source.absolute().parent) if config.ssh is None else None
    builds = _used_builds(sweep)
    pythons = {name: here.python or _python(build, cwd, python) for name, build in builds.items()}
    tables = {
        name: probe_flags(host, pythons[name], build=name)
        for name, build in builds.items()
        if build.rehearsal is None
    }
    expanded = expand(sweep, tables)
    return Ground(
        sweep=sweep,
        host=host,
        config=config,
        python=python,
        workdir=workdir_of(host, config),
        cwd=cwd,
        pythons=pythons,
        tables=tables,
        expanded=expanded,
        facts=_facts(host, python, pythons, sweep),
    )


def _used_builds(sweep: Sweep) -> dict[str, Build]:
    """Return the builds that a cell can name, the default one among them."""
    axis = next((a for a in sweep.axes if a.name == "build"), None)
    named = {sweep.build.name, *(str(v) for v in (axis.values if axis else ()))}
    named |= {str(i.cell.get("build")) for i in sweep.includes if i.cell.get("build")}
    return {name: build for name, build in sweep.builds.items() if name in named}


def _python(build: Build, cwd: str | None, fallback: str) -> str:
    if build.rehearsal is not None:
        return sys.executable
    if build.python is None:
        return fallback
    if build.python.startswith(("~", "/")) or "/" not in build.python or cwd is None:
        return str(Path(build.python).expanduser()) if cwd is not None else build.python
    # Not resolve(): a virtual environment's interpreter is a link, and the link is the point.
    return str(Path(cwd) / build.python)


def interpreters(sweep: Sweep, config: HostConfig) -> dict[str, str]:
    """Return the interpreter of each build that a cell can name; stand-ins have none."""
    cwd = str(sweep.source.absolute().parent) if config.ssh is None else None
    fallback = config.python or (sys.executable if config.ssh is None else "python3")
    return {
        name: _python(build, cwd, fallback)
        for name, build in _used_builds(sweep).items()
        if build.rehearsal is None
    }


def workdir_of(host: Host, config: HostConfig) -> PurePosixPath:
    """Return the folder that holds everything of ours on a host, absolute."""
    return host.home() / str(config.workdir).removeprefix("~/")


def _facts(host: Host, python: str, pythons: Mapping[str, str], sweep: Sweep) -> dict[str, object]:
    machine = probe_facts(host, python, [])
    builds = {
        name: probe_facts(host, python, ["--python", interpreter]).get("python")
        for name, interpreter in pythons.items()
        if sweep.builds[name].rehearsal is None
    }
    hub = hub_of(sweep)
    cache = ["--hub", hub] if hub else []
    models = {
        name: probe_facts(host, python, ["--model", model.target, *cache]).get("model")
        for name, model in sweep.models.items()
    }
    return {
        **machine,
        "builds": builds,
        "models": models,
        "fingerprint": _fingerprint(machine, builds, models),
    }


def hub_of(sweep: Sweep) -> str | None:
    """Return the Hugging Face cache that the sweep's launches use; None = the login's."""
    env = sweep.launch.env
    home = str(env.get("HF_HOME") or "")
    hub = str(env.get("HF_HUB_CACHE") or (f"{home}/hub" if home else ""))
    return hub if hub and "${" not in hub else None


def _fingerprint(machine: Mapping[str, object], *parts: object) -> str:
    """Return four hex digits over what decides outcomes: driver, kernel, GPUs, builds, models."""
    gpus = machine.get("gpus")
    found = gpus if isinstance(gpus, list) else []
    cards = [_steady(gpu) for gpu in found if isinstance(gpu, dict)]
    decisive = [machine.get("kernel"), machine.get("driver"), cards, *parts]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:4]


def _steady(gpu: Mapping[str, object]) -> dict[str, object]:
    """Keep of a GPU what does not change from minute to minute."""
    names = ("name", "memory_total_mib", "compute_capability", "power_limit_w", "uuid")
    return {name: gpu.get(name) for name in names}


def _json(text: bytes) -> dict[str, object] | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
