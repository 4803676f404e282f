"""What two launches differ in: everything that reaches the server, not only the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.flags import canonical, render_command
from sglsweep.report.document import Code, Line
from sglsweep.report.machine import stable
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Value

BARE = ""
"""The text of a flag that is passed without a value."""
_HOST = "host's "
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
        return self.name.startswith(_HOST)


def setting_text(name: str, value: str | None) -> str:
    """Write one setting as it stands on a command line: `--tp 8`, `NAME=1`, `build tf52`."""
    if name in {"build", "model"} or name.startswith(_HOST):
        return f"{name} {value}"
    if name.startswith("env."):
        return f"{name.removeprefix('env.')}={value}"
    if value is None:
        return f"no --{name}"
    return f"--{name}" if value == BARE else f"--{name} {value}"


def settings(attempt: Attempt) -> dict[str, str]:
    """Return all that makes the launch what it is: flags, `env.NAME`, build and model."""
    found = {
        name: text
        for name, text in flags_of(attempt.argv).items()
        if name not in _PLACE and canonical(name) != _MODEL
    }
    found |= {f"env.{name}": text for name, text in attempt.env.items()}
    found["build"] = attempt.build
    found["model"] = attempt.model
    return found


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
    flags = tuple(
        Change(name, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )
    return (*flags, *host_changes(before, after))


def host_changes(before: Outcome, after: Outcome) -> tuple[Change, ...]:
    """Say what of the machine is not as it was; only what both attempts knew is compared."""
    old, new = stable(before.facts), stable(after.facts)
    if before.attempt.host != after.attempt.host:
        return (Change(f"{_HOST}name", before.attempt.host, after.attempt.host),)
    return tuple(
        Change(f"{_HOST}{name}", old[name], new[name])
        for name in sorted(old)
        if name in new and old[name] != new[name]
    )


def nearest_earlier(
    outcome: Outcome, earlier: Sequence[Outcome]
) -> tuple[Outcome, tuple[Change, ...]] | None:
    """Return the earlier attempt that differs least; of equals a serving one, then the latest."""
    ranked = [(changes(other, outcome), other) for other in earlier]
    if not ranked:
        return None
    best, other = min(
        ranked,
        key=lambda pair: (
            len(pair[0]),
            pair[1].verdict is not Verdict.SERVING,
            -pair[1].attempt.number,
        ),
    )
    return other, best


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
