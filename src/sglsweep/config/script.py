"""`launch.from`: flags, environment and mounts read from a script that already works."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sglsweep.config.document import Document, looks_secret
from sglsweep.config.mistakes import Mistake, Note, refuse
from sglsweep.config.schema import SweepEntry
from sglsweep.config.secrets import missing
from sglsweep.errors import ConfigError
from sglsweep.flags import FlagValue, ParsedCommand, parse_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a launch script brings; empty where the sweep names none."""

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    python: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[Note, ...] = ()


def read_script(document: Document, entry: SweepEntry, folder: Path) -> Script:
    """Read the script that `launch.from` names, relative to the sweep's file.

    Raises:
        ConfigError: it cannot be read, holds no launch, holds a secret, or uses a variable in a
            flag that it does not set.
    """
    if entry.launch.script is None:
        return Script()
    path = folder / Path(entry.launch.script).expanduser()
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(
            f"{document.where(('launch', 'from'))}: {entry.launch.script}: {reason.lower()}",
            next_step="Write the path of a launch script, relative to this file.",
        ) from error
    parsed = parse_command(text, where=str(path))
    return _script(parsed, path, entry)


def _script(parsed: ParsedCommand, path: Path, entry: SweepEntry) -> Script:
    where = f"{path}:{parsed.line}"
    env = {name: text for name, text in parsed.env.items() if name not in entry.launch.env}
    unset = {
        n: v for n, v in parsed.unset.items() if n.removeprefix("env.") not in entry.launch.env
    }
    refuse(_mistakes(unset, env, where, entry))
    secrets = {name: os.environ[name] for name in env if _is_handed_on(name, unset)}
    lost = {n.removeprefix("env.") for n in unset if n.startswith("env.")} - set(secrets)
    return Script(
        flags=parsed.flags,
        env={name: text for name, text in env.items() if name not in lost},
        model=parsed.model,
        python=parsed.python if parsed.image is None else None,
        secrets=secrets,
        notes=tuple(_notes(parsed, lost, path)),
    )


def _is_handed_on(name: str, unset: Mapping[str, tuple[str, ...]]) -> bool:
    """True for `TOKEN=$TOKEN`: the caller's own secret, handed on."""
    return unset.get(f"env.{name}") == (name,) and looks_secret(name, "x")


def _mistakes(
    unset: Mapping[str, tuple[str, ...]], env: Mapping[str, str], where: str, entry: SweepEntry
) -> Iterator[Mistake]:
    for name, variables in unset.items():
        instead = _place_of(name, entry)
        if instead is not None:
            what = f"--{name} uses {variables[0]}, which the script does not set"
            yield Mistake(where=where, what=what, instead=instead)
    for name, text in env.items():
        if _is_handed_on(name, unset):
            if not os.environ.get(name):
                yield missing(name, where, os.environ)
        elif f"env.{name}" not in unset and looks_secret(name, text):
            yield Mistake(
                where=where,
                what=f"{name} holds a secret in plain text",
                instead=f"Export it in the environment and write {name}=${name} in the script.",
            )


def _place_of(name: str, entry: SweepEntry) -> str | None:
    """Say where the sweep's file may give a flag's value; None where it does, or need not."""
    if name.startswith("env.") or name in entry.launch.flags:
        return None
    if name not in {"model", "model-path"}:
        return f"Write `{name}` with its value below `launch.flags`."
    is_given = entry.model.id or entry.model.path
    return None if is_given else "Write `model:` with its value into the sweep's file."


def _notes(parsed: ParsedCommand, lost: set[str], path: Path) -> Iterator[Note]:
    for note in parsed.notes:
        yield Note(f"{path}:{note.line}", note.what)
    for name in sorted(lost):
        used = ", ".join(parsed.unset[f"env.{name}"])
        yield Note(
            f"{path}:{parsed.line}", f"{name} is not taken over: the script does not set {used}"
        )
    for kind, value in (("image", parsed.image), ("mounts", ", ".join(parsed.mounts))):
        if value:
            yield Note(f"{path}:{parsed.line}", f"{kind} {value} is not taken over")
