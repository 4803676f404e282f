"""What two launches differ in: everything that reaches the server, not only the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sglsweep.flags import canonical, render_command
from sglsweep.report.document import Code, Line
from sglsweep.report.machine import stable
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Value

T = TypeVar("T")

BARE = ""
"""The text of a flag that is passed without a value."""
HOST = "host's "
"""Begins the name of a change of the machine, not of the launch."""
_PLACE = {"host", "port"}
_MODEL = "model-path"


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that differs; None = not passed, "" = passed without a value."""

    name: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """The change as a diff would say it."""
        if self.before is None:
            return f"+ {setting_text(self.name, self.after)}"
        if self.after is None:
            return f"- {setting_text(self.name, self.before)}"
        return f"{setting_text(self.name, self.before)} -> {self.after or 'bare'}"

    @property
    def code(self) -> Line:
        """The change as a part of a line."""
        return (Code(self.text),)

    @property
    def is_of_host(self) -> bool:
        """True where the machine changed, not the launch."""
        return self.name.startswith(HOST)


def setting_text(name: str, value: str | None) -> str:
    """Write one setting as it stands on a command line: `--tp 8`, `NAME=1`, `build tf52`."""
    if name in {"build", "model"} or name.startswith(HOST):
        return f"{name} {value}"
    if name.startswith("env."):
        return f"{name.removeprefix('env.')}={value}"
    if value is None:
        return f"no --{name}"
    return f"--{name}" if value == BARE else f"--{name} {value}"


class Remembered(Generic[T]):
    """A function of something immutable that has no hash, computed once for each object.

    A report of 200 attempts compares each with each; without this it takes half a minute.
    """

    def __init__(self, make: Callable[[Any], T], *, most: int = 4096) -> None:
        self._make = make
        self._most = most
        # The object is kept beside its value: while it is kept its id names nothing else.
        self._kept: dict[int, tuple[object, T]] = {}

    def __call__(self, thing: object) -> T:
        """Return what was made of it, or make it."""
        known = self._kept.get(id(thing))
        if known is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            known = self._kept[id(thing)] = (thing, self._make(thing))
        return known[1]


def settings(attempt: Attempt) -> Mapping[str, str]:
    """Return all that makes the launch what it is: flags, `env.NAME`, build and model."""
    return _settings(attempt)


def _read_settings(attempt: Attempt) -> Mapping[str, str]:
    found = {
        name: text
        for name, text in flags_of(attempt.argv).items()
        if name not in _PLACE and canonical(name) != _MODEL
    }
    found |= {f"env.{name}": text for name, text in attempt.own_env.items()}
    found["build"] = attempt.build
    found["model"] = attempt.model
    return found


def stable_facts(outcome: Outcome) -> Mapping[str, str]:
    """Return what the machine was at an attempt, as far as it should stay the same."""
    return _stable(outcome.facts)


_settings = Remembered(_read_settings)
_stable = Remembered(stable)


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """Return flag -> text of its values, in order; a repeated flag keeps its last value."""
    found: dict[str, str] = {}
    name: str | None = None
    for word in argv:
        if word.startswith("--"):
            name, has_value, value = word.removeprefix("--").partition("=")
            found[name] = value if has_value else BARE
        elif name is not None:
            found[name] = f"{found[name]} {word}".strip()
    return found


def changes(before: Outcome, after: Outcome) -> tuple[Change, ...]:
    """Say what the later launch has that the earlier has not, sorted by name.

    Another host, and a host on which something was changed in between, count like flags.
    """
    old, new = settings(before.attempt), settings(after.attempt)
    names = {name for name, _ in old.items() ^ new.items()}
    flags = tuple(Change(name, old.get(name), new.get(name)) for name in sorted(names))
    return (*flags, *host_changes(before, after))


def distance(before: Outcome, after: Outcome) -> int:
    """Return how many changes there are, in a tenth of the time that it takes to name them."""
    flags = settings(before.attempt).items() ^ settings(after.attempt).items()
    return len({name for name, _ in flags}) + len(host_changes(before, after))


def host_changes(before: Outcome, after: Outcome) -> tuple[Change, ...]:
    """Say what of the machine is not as it was; only what both attempts knew is compared."""
    if before.attempt.host != after.attempt.host:
        return (Change(f"{HOST}name", before.attempt.host, after.attempt.host),)
    old, new = _stable(before.facts), _stable(after.facts)
    if old == new:
        return ()
    return tuple(
        Change(f"{HOST}{name}", old[name], new[name])
        for name in sorted(old)
        if name in new and old[name] != new[name]
    )


def nearest_earlier(
    outcome: Outcome, earlier: Sequence[Outcome]
) -> tuple[Outcome, tuple[Change, ...]] | None:
    """Return the earlier attempt that differs least; of equals a serving one, then the latest."""
    if not earlier:
        return None
    other = min(
        earlier,
        key=lambda o: (
            distance(o, outcome),
            o.verdict is not Verdict.SERVING,
            -o.attempt.number,
        ),
    )
    return other, changes(other, outcome)


def command(attempt: Attempt) -> str:
    """Return the shell command that launches the attempt by hand."""
    return render_command(attempt.python, attempt.argv, attempt.env)


def value_text(value: Value) -> str:
    """Write a cell's value for a reader."""
    if value is None:
        return "not passed"
    if value is True:
        return "set"
    if value is False:
        return "off"
    return str(value)
