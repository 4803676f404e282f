"""Flags, environment and mounts read from a launch command or script that works today."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.flags.shell import Statement, Word, assignment, read_statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.flags.table import FlagValue

_OWN = frozenset({"host", "port", "model", "model-path"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_LAUNCH = re.compile(r"sglang\.launch_server|sglang/launch_server\.py|\bsglang\s+serve\b")
_NUMBER_LIKE = re.compile(r"-\.?\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something in the text that was not taken over, and why."""

    line: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """What a launch command says.

    Attributes:
        flags: without dashes; host, port and model aside. `--no-x` stands as x: False.
        env: a variable that the text does not set stands as `${NAME}`.
        line: 1-based line of the launch in the text.
        unset: flag or `env.NAME` -> names of variables the text uses there but does not set.
        image: the container image, where it runs in one.
        mounts: `host:container[:ro]`, as `-v` spells them.
    """

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    model: str | None = None
    line: int = 1
    unset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    host: str | None = None
    port: int | None = None
    image: str | None = None
    mounts: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def parse_command(text: str, *, where: str = "the command") -> ParsedCommand:
    """Read the first SGLang launch in a command or shell script.

    Args:
        text: a command line or a whole script.
        where: what to call the text in an error, a file's name for a script.

    Raises:
        ConfigError: no launch stands in it.
    """
    launches = list(launches_in(text))
    if not launches:
        raise ConfigError(
            f"{where}: no SGLang launch in it",
            next_step="Give one with `python3 -m sglang.launch_server ...` or `sglang serve ...`.",
        )
    first = launches[0]
    if len(launches) == 1:
        return first
    others = tuple(
        Note(line=other.line, what="another launch, left out: the first one is read")
        for other in launches[1:]
    )
    return replace(first, notes=(*first.notes, *others))


def launches_in(text: str) -> Iterator[ParsedCommand]:
    """Yield every SGLang launch of a text."""
    return _launches(read_statements(text))


def _launches(statements: Sequence[Statement]) -> Iterator[ParsedCommand]:
    for statement in statements:
        found = _find(statement.words)
        if found is not None:
            yield _parse(statement, found)
            continue
        yield from _nested(statement)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where in a statement the launch stands: words before it, the Python, words after."""

    before: tuple[Word, ...]
    python: str | None
    after: tuple[Word, ...]


def _find(words: Sequence[Word]) -> _Found | None:
    for index, word in enumerate(words):
        following = words[index + 1].text if index + 1 < len(words) else ""
        if word.text == "-m" and following == "sglang.launch_server":
            return _module(words, index, skip=2)
        if word.text.endswith("sglang/launch_server.py"):
            return _module(words, index, skip=1)
        if PurePosixPath(word.text).name == "sglang" and following == "serve":
            return _Found(tuple(words[:index]), _beside(word.text), tuple(words[index + 2 :]))
    return None


def _module(words: Sequence[Word], at: int, *, skip: int) -> _Found:
    start = at
    while start and words[start - 1].text.startswith("-"):
        start -= 1
    python = words[start - 1].text if start else None
    return _Found(tuple(words[: max(start - 1, 0)]), python, tuple(words[at + skip :]))


def _beside(program: str) -> str | None:
    """Return the Python that stands beside an installed `sglang` program."""
    path = PurePosixPath(program)
    return str(path.with_name("python")) if len(path.parts) > 1 else None


def _nested(statement: Statement) -> Iterator[ParsedCommand]:
    """Read `bash -c "... launch ..."`, with what stands before it."""
    for index, word in enumerate(statement.words):
        if " " not in word.text or not _LAUNCH.search(word.text):
            continue
        outer = _surroundings(statement.words[:index])
        exported = {name: value.text for name, value in statement.exported.items()}
        for inner in _launches(read_statements(word.text)):
            yield replace(
                inner,
                line=word.line + inner.line - 1,
                env={**exported, **outer.env, **inner.env},
                image=inner.image or outer.image,
                mounts=(*outer.mounts, *inner.mounts),
            )
        return


@dataclass(slots=True)
class _Surroundings:
    """What stands before the Python: environment, and a container's options."""

    env: dict[str, str] = field(default_factory=dict)
    unset: dict[str, tuple[str, ...]] = field(default_factory=dict)
    image: str | None = None
    mounts: list[str] = field(default_factory=list)

    def set_env(self, word: Word) -> None:
        """Take `NAME=value`, or docker's `NAME` alone: the value of whoever runs it."""
        pair = assignment(word)
        name, value = pair or (word.text, Word(f"${{{word.text}}}", word.line, (word.text,)))
        self.env[name] = value.text
        if value.unset:
            self.unset[f"env.{name}"] = value.unset


def _surroundings(words: Sequence[Word]) -> _Surroundings:
    found = _Surroundings()
    in_container = False
    index = 0
    while index < len(words):
        text = words[index].text
        following = words[index + 1] if index + 1 < len(words) else None
        in_container = in_container or PurePosixPath(text).name in _CONTAINERS
        option, _, joined = text.partition("=")
        if in_container and option in {"-e", "--env", "-v", "--volume"}:
            value = Word(joined, words[index].line, words[index].unset) if joined else following
            index += 0 if joined else 1
            if value is not None:
                _take_option(found, option, value)
        elif assignment(words[index]) and not text.startswith("-"):
            found.set_env(words[index])
        index += 1
    if in_container:
        plain = [w.text for w in words if not w.text.startswith("-")]
        while plain and PurePosixPath(plain[-1]).name in _SHELLS | {"env", "exec"}:
            plain.pop()
        found.image = plain[-1] if plain else None
    return found


def _take_option(found: _Surroundings, option: str, value: Word) -> None:
    if option in {"-e", "--env"}:
        found.set_env(value)
    else:
        found.mounts.append(value.text)


def _parse(statement: Statement, found: _Found) -> ParsedCommand:
    around = _surroundings(found.before)
    flags, unset, notes = _flags(found.after)
    env = {name: value.text for name, value in statement.exported.items()} | around.env
    for name, value in statement.exported.items():
        if value.unset and name not in around.env:
            unset[f"env.{name}"] = value.unset
    model = next((str(v) for n in ("model-path", "model") if (v := flags.get(n))), None)
    port = flags.get("port")
    return ParsedCommand(
        flags={name: value for name, value in flags.items() if name not in _OWN},
        env=env,
        python=found.python,
        model=model,
        line=statement.line,
        unset={n: u for n, u in {**unset, **around.unset}.items() if n not in {"host", "port"}},
        host=str(flags["host"]) if flags.get("host") else None,
        port=port if isinstance(port, int) and not isinstance(port, bool) else None,
        image=around.image,
        mounts=tuple(around.mounts),
        notes=tuple(notes),
    )


def _flags(
    words: Sequence[Word],
) -> tuple[dict[str, FlagValue], dict[str, tuple[str, ...]], list[Note]]:
    """Read `--flag value`, `--flag=value`, `--flag a b` and `--flag`; the last of equals wins."""
    flags: dict[str, FlagValue] = {}
    unset: dict[str, tuple[str, ...]] = {}
    notes: list[Note] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.text.startswith("--"):
            if not flags and index == 1 and not word.text.startswith("-") and not word.unset:
                flags["model-path"] = word.text  # `sglang serve MODEL ...`
            else:
                shown = word.text or " ".join(word.unset)
                notes.append(Note(line=word.line, what=f"{shown!r} is no flag, left out"))
            continue
        name, has_value, joined = word.text[2:].partition("=")
        values = [Word(joined, word.line, word.unset)] if has_value else []
        while not has_value and index < len(words) and not _starts_flag(words[index]):
            values.append(words[index])
            index += 1
        values = [v for v in values if v.text or not v.unset]
        flags.pop(name, None)
        flags[name.removeprefix("no-")] = False if name.startswith("no-") else _value(values)
        missing = tuple(n for v in values for n in v.unset)
        if missing:
            unset[name] = missing
    return flags, unset, notes


def _starts_flag(word: Word) -> bool:
    return word.text.startswith("-") and len(word.text) > 1 and not _NUMBER_LIKE.match(word.text)


def _value(words: Sequence[Word]) -> FlagValue:
    if not words:
        return True
    if len(words) == 1:
        return typed(words[0].text)
    return tuple(typed(word.text) for word in words)


def typed(text: str) -> int | float | str:
    """Return a number where it would be spelled the same again, else the text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number) and str(number) == text:
            return number
    return text
