"""A cell as the command that launches it, and as text to paste into a shell."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.flags.table import FlagTable, FlagValue, canonical, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.matrix import Cell, Value

NOT_FLAGS = frozenset({"build", "model"})
"""Axes that choose something else than a flag; `env.NAME` is the third kind."""

_SECRET = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What every attempt passes unless its cell says otherwise.

    Attributes:
        flags: name without dashes -> value; None = not passed.
        env: None removes a variable that a script sets.
    """

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which SGLang serves which model where.

    Attributes:
        build: its name, part of what makes two launches the same.
        model: a path or a Hugging Face id.
        bind: address to listen on, unless the flag `host` is set.
    """

    build: str
    model: str
    port: int
    revision: str | None = None
    offline: bool = False
    bind: str = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One launch: what follows the build's Python, and what is added to the environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    launch_key: str


def launch_argv(
    launch: Launch, cell: Cell, target: Target, table: FlagTable | None = None
) -> Command:
    """Spell a cell as this build's launcher wants it.

    The order is that of the sweep's file: model, `launch`, the axes it does not hold already,
    then host and port.
    """
    groups = [["--model-path", target.model]]
    settings = _settings(launch.flags, cell, table)
    if target.revision and "revision" not in settings:
        groups.append(["--revision", target.revision])
    bind = settings.pop("host", ("host", target.bind))[1]
    groups += [g for name, value in settings.values() if (g := _spelled(name, value, table))]
    env = _environment(launch.env, cell, is_offline=target.offline)
    key = _launch_key(groups, env, target.build)
    groups += [["--host", str(bind or target.bind)], ["--port", str(target.port)]]
    argv = ("-m", "sglang.launch_server", *(word for group in groups for word in group))
    return Command(argv=argv, env=env, launch_key=key)


def render_command(python: str, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Write a launch as a shell command to paste; `${NAME}` stays for the shell to fill in."""
    words = [f"{name}={_quoted(value)}" for name, value in env.items()]
    head = [*words, _quoted(python)]
    lines: list[str] = []
    for word in argv:
        if word.startswith("--") or not (lines or head):
            lines.append(_quoted(word))
        elif lines:
            lines[-1] += f" {_quoted(word)}"
        else:
            head.append(_quoted(word))
    return " \\\n  ".join([" ".join(head), *lines])


def same_launch(name: str, value: FlagValue, table: FlagTable | None) -> tuple[str, ...]:
    """Return the words that one setting adds to a launch; equal words are an equal launch."""
    return tuple(_spelled(name, value, table))


def _settings(
    flags: Mapping[str, FlagValue], cell: Cell, table: FlagTable | None
) -> dict[str, tuple[str, FlagValue]]:
    """Merge launch flags and axes by the flag they mean: what the cell names wins."""
    name_of = table.canonical if table else canonical
    merged: dict[str, tuple[str, FlagValue]] = {
        name_of(name): (name, value) for name, value in flags.items()
    }
    for name, value in cell.values.items():
        if name not in NOT_FLAGS and not name.startswith("env."):
            merged[name_of(name)] = (name, value)
    return merged


def _spelled(name: str, value: FlagValue, table: FlagTable | None) -> list[str]:
    """Spell one flag; an empty list where it is not passed."""
    flag = table.find(name) if table else None
    spelled = flag.name if flag else name
    if value is None:
        return []
    if value is False:
        return [f"--{flag.negative}"] if flag and flag.negative else []
    if value is True:
        return [f"--{spelled}"]
    words = listed(value) if isinstance(value, tuple) or (flag and flag.many) else None
    if words is not None:
        return [f"--{spelled}", *(str(word) for word in words)]
    if table and flag and not isinstance(value, tuple):
        value = table.translate(flag, value)
    # argparse takes a word that starts with a dash for the next flag.
    text = str(value)
    return [f"--{spelled}={text}"] if text.startswith("-") else [f"--{spelled}", text]


def _environment(env: Mapping[str, str | None], cell: Cell, *, is_offline: bool) -> dict[str, str]:
    merged: dict[str, str | None] = {}
    if is_offline:
        merged |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    merged |= env
    for name, value in cell.values.items():
        if name.startswith("env."):
            merged[name.removeprefix("env.")] = env_text(value)
    return {name: text for name, text in merged.items() if text is not None}


def env_text(value: Value) -> str | None:
    """Write a value as an environment variable's text; None = not set."""
    return None if value is None else str(value)


def _launch_key(groups: Sequence[Sequence[str]], env: Mapping[str, str], build: str) -> str:
    # Sorted by flag, not by word: `--a 1 --b 2` must differ from `--a 2 --b 1`.
    spelled = json.dumps([sorted(groups), sorted(env.items()), build])
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


def _quoted(word: str) -> str:
    """Quote for a shell, leaving `${NAME}` open to it."""
    if not _SECRET.search(word):
        return shlex.quote(word)
    pieces: list[str] = []
    end = 0
    for found in _SECRET.finditer(word):
        pieces += [re.sub(r'([\\"$`])', r"\\\1", word[end : found.start()]), found.group()]
        end = found.end()
    pieces.append(re.sub(r'([\\"$`])', r"\\\1", word[end:]))
    return '"' + "".join(pieces) + '"'
