"""Finds what earlier attempts left running on a host and ends it; touches nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sglsweep import launch
from sglsweep.errors import HostError
from sglsweep.keeper_files import StopReport, parse_object
from sglsweep.watch import span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.hosts.base import Host

_FOLDERS_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something of ours that lives on a host.

    Attributes:
        directory: the attempt's folder; None where it is gone.
        processes: pid and title of what lives.
        keeper: a living keeper watches it, and ends it when its time is over.
        user: whose it is, where that is not the user who asks.
    """

    marker: str
    directory: str | None
    processes: tuple[Mapping[str, Any], ...]
    port: int | None = None
    keeper: bool = False
    user: str | None = None

    @property
    def name(self) -> str:
        """Run and number, as the marker has them."""
        return f"attempt {self.marker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What was ended, or would be; `left` would not die."""

    what: Leftover
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spared:
    """What was left alone, why, and what to do about it."""

    what: Leftover
    because: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Removed:
    """A folder of an attempt that ended long ago."""

    directory: str
    age_s: float
    bytes: int
    is_gone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What a cleaning came to; with `is_dry` what it would come to."""

    host: str
    workdir: str
    is_dry: bool
    attempts: int
    ended: tuple[Ended, ...] = ()
    spared: tuple[Spared, ...] = ()
    removed: tuple[Removed, ...] = ()

    @property
    def survivors(self) -> tuple[Ended, ...]:
        """What would not die."""
        return tuple(one for one in self.ended if one.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What may be done.

    Attributes:
        is_dry: look only.
        running: end attempts too whose keeper lives.
        only: beginning of the markers that are meant; "" = all.
        older_than_s: remove folders of attempts that ended so long ago; None = none.
    """

    is_dry: bool = False
    running: bool = False
    only: str = ""
    older_than_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """A host to clean; `python` runs the keeper there, `user` is who we are there."""

    host: Host
    python: str
    workdir: PurePosixPath
    user: str | None = field(default=None)


def clean(ground: Ground, wish: Wish) -> Cleaning:
    """End what nobody watches any more, and say what was left alone and why."""
    root = ground.workdir / "runs"
    found = launch.find(ground.host, ground.python, root)
    living = list(leftovers(found, ground.user))
    ended: list[Ended] = []
    spared: list[Spared] = []
    for leftover in living:
        if not leftover.marker.startswith(wish.only):
            continue
        reason = _why_not(ground, leftover, wish)
        if reason is not None:
            spared.append(reason)
        elif wish.is_dry:
            ended.append(Ended(what=leftover))
        else:
            ended.append(Ended(what=leftover, left=_end(ground, leftover)))
    kept = [what.directory for what in living if what.directory]
    return Cleaning(
        host=ground.host.name,
        workdir=str(ground.workdir),
        is_dry=wish.is_dry,
        attempts=len(found.get("attempts", ())),
        ended=tuple(ended),
        spared=tuple(spared),
        removed=tuple(_old_folders(ground, root, wish, kept)),
    )


def leftovers(found: Mapping[str, Any], user: str | None) -> Iterator[Leftover]:
    """Yield what lives, from what `keeper.py find` printed: by folder, then by marker alone."""
    for attempt in found.get("attempts", ()):
        if attempt["keeper_alive"] or attempt["processes"]:
            yield Leftover(
                marker=attempt["marker"],
                directory=attempt["directory"],
                processes=tuple(attempt["processes"]),
                port=attempt["port"],
                keeper=bool(attempt["keeper_alive"]),
            )
    strays: dict[str, list[Mapping[str, Any]]] = {}
    for process in found.get("processes", ()):
        if process["directory"] is None:
            strays.setdefault(process["marker"], []).append(process)
    for marker, processes in strays.items():
        keepers = [p["keeper_directory"] for p in processes if p.get("keeper_directory")]
        owners = {str(p["user"]) for p in processes if p.get("user")} - {user}
        yield Leftover(
            marker=marker,
            directory=keepers[0] if keepers else None,
            processes=tuple(processes),
            keeper=bool(keepers),
            user=min(owners) if owners and user is not None else None,
        )


def _why_not(ground: Ground, leftover: Leftover, wish: Wish) -> Spared | None:
    if leftover.user is not None:
        because = f"it belongs to user {leftover.user}"
        return Spared(leftover, because, f"Let {leftover.user} run `sglsweep clean`.")
    if not leftover.keeper or wish.running:
        return None
    remaining = _remaining(ground, leftover)
    ends = f"; it ends by itself in {remaining} at the latest" if remaining else ""
    return Spared(
        leftover,
        f"its keeper is alive, so a sweep may be at work{ends}",
        "Resume its sweep to take it over, or add --running to end it now.",
    )


def _remaining(ground: Ground, leftover: Leftover) -> str:
    """Return the time until the keeper ends it; "" where that cannot be read."""
    folder = PurePosixPath(leftover.directory or "/")
    try:
        spec = json.loads(ground.host.read(folder / "spec.json"))
        state = json.loads(ground.host.read(folder / "state.json"))
        spent = float(state["beat_at"]) - float(state["started_at"])
        return span(max(float(spec["deadline_s"]) - spent, 0.0))
    except (HostError, ValueError, KeyError, TypeError):
        return ""


def _end(ground: Ground, leftover: Leftover) -> tuple[str, ...]:
    """End it and return what would not die."""
    report = _stopped(ground, leftover)
    return tuple(f"pid {process.pid} ({process.title})" for process in report.left)


def _stopped(ground: Ground, leftover: Leftover) -> StopReport:
    if leftover.directory is not None:
        directory = PurePosixPath(leftover.directory)
        launched = launch.adopt(ground.host, ground.python, directory)
        if launched is not None:
            return launched.stop(is_ready=False)
    return launch.reap(ground.host, ground.python, ground.workdir, leftover.marker)


def _old_folders(
    ground: Ground, root: PurePosixPath, wish: Wish, kept: Sequence[str]
) -> Iterator[Removed]:
    if wish.older_than_s is None:
        return
    words = [str(root), "--older-than", str(wish.older_than_s), "--only", wish.only]
    words += [word for directory in kept for word in ("--keep", directory)]
    words += [] if wish.is_dry else ["--remove"]
    program = (resources.files("sglsweep.onhost") / "folders.py").read_bytes()
    answer = ground.host.run([ground.python, "-", *words], stdin=program, timeout_s=_FOLDERS_S)
    said = parse_object(answer.stdout, f"{ground.host.name}: folders.py")
    for one in said["folders"]:
        yield Removed(one["directory"], float(one["age_s"]), int(one["bytes"]), one["removed"])
