"""What a name in a sweep means: an axis, something every attempt passes, or nothing yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.flags import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglsweep.config.sweep import Sweep
    from sglsweep.flags import FlagTable, FlagValue
    from sglsweep.matrix import Axis, Value

EFFECTIVE = "effective."


@dataclass(frozen=True, slots=True)
class Scope:
    """A sweep beside the flag tables of its builds."""

    sweep: Sweep
    tables: Mapping[str, FlagTable]
    _axis_of: dict[str, int | None] = field(default_factory=dict)

    @property
    def builds(self) -> tuple[str, ...]:
        """Names of the builds that the matrix uses."""
        for axis in self.sweep.axes:
            if axis.name == "build":
                return tuple(str(value) for value in axis.values)
        return (self.sweep.build.name,)

    def table(self, build: str) -> FlagTable | None:
        """Return a build's flags, None where they are not known."""
        return self.tables.get(build)

    def axis(self, name: str) -> int | None:
        """Return the position of the axis that `name` means, in any spelling of the flag."""
        if name not in self._axis_of:
            found = (i for i, axis in enumerate(self.sweep.axes) if self.is_same(axis.name, name))
            self._axis_of[name] = next(found, None)
        return self._axis_of[name]

    def is_same(self, one: str, other: str) -> bool:
        """True if two names mean the same flag, in one of the builds at least."""
        if canonical(one) == canonical(other):
            return True
        if not is_flag(one) or not is_flag(other):
            return False
        return any(
            (flag := table.find(one)) is not None and flag is table.find(other)
            for table in self.tables.values()
        )

    def constant(self, name: str) -> FlagValue:
        """Return what every cell holds for a name that is no axis; None = not passed."""
        if name == "build":
            return self.sweep.build.name
        if name == "model":
            return self.sweep.model.name
        if name.startswith("env."):
            return self.sweep.launch.env.get(name.removeprefix("env."))
        flags = self.sweep.launch.flags
        return next((value for own, value in flags.items() if self.is_same(own, name)), None)

    def is_known(self, name: str) -> bool:
        """False only where every build's table is at hand and none has the flag."""
        if not is_flag(name) or self.axis(name) is not None:
            return True
        tables = [self.table(build) for build in self.builds]
        return any(table is None or table.find(name) is not None for table in tables)

    def flag_axes(self) -> Iterator[tuple[int, Axis]]:
        """Axes that are flags, with their positions."""
        return ((i, axis) for i, axis in enumerate(self.sweep.axes) if is_flag(axis.name))


def is_flag(name: str) -> bool:
    """True for the name of a flag; False for build, model and `env.NAME`."""
    return name not in {"build", "model"} and not name.startswith("env.")


def agrees(value: FlagValue, wanted: tuple[Value, ...], *, values: tuple[Value, ...] = ()) -> bool:
    """True if a value is one of those wanted, as a command line would spell it.

    `false` and `null` are told apart only where the axis holds both: most flags have no `--no-x`.
    """
    told_apart = False in [v for v in values if isinstance(v, bool)] and None in values
    return any(_word(value, told_apart) == _word(w, told_apart) for w in wanted)


def _word(value: FlagValue, told_apart: bool) -> str:  # noqa: FBT001 - private, called twice
    if value is False and not told_apart:
        value = None
    if value is None or isinstance(value, bool):
        return f"<{value}>"
    return " ".join(str(word) for word in value) if isinstance(value, tuple) else str(value)
