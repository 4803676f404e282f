"""What the builds' own parsers would refuse, found before anything is launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.config.mistakes import Mistake
from sglsweep.expand.rules import Rule
from sglsweep.expand.scope import EFFECTIVE, is_flag
from sglsweep.flags import same_launch
from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sglsweep.expand.scope import Scope
    from sglsweep.flags import FlagTable, FlagValue, Problem
    from sglsweep.matrix import Axis, Cell, Value


@dataclass(frozen=True, slots=True)
class _Refused:
    """Builds that refuse one setting, each with its problem; `by_all` if no build takes it."""

    problems: Mapping[str, Problem]
    by_all: bool


def _ask(scope: Scope, builds: Iterable[str], name: str, value: FlagValue) -> _Refused:
    problems: dict[str, Problem] = {}
    asked = list(builds)
    for build in asked:
        table = scope.table(build)
        problem = table.problem(name, value) if table else None
        if problem is not None:
            problems[build] = problem
    return _Refused(problems, bool(asked) and len(problems) == len(asked))


def unknown_to_all(scope: Scope) -> Iterator[Mistake]:
    """Flags and values of the file that no build of the matrix takes."""
    where = scope.sweep.where
    for position, axis in scope.flag_axes():
        name = scope.sweep.axes[position].name
        for code, value in enumerate(axis.values):
            refused = _ask(scope, scope.builds, name, value)
            if refused.by_all:
                at = _place(where, f"matrix.{name}[{code}]", f"matrix.{name}")
                yield _mistake(refused, at)
    for name, passed in _passed_by_all(scope):
        refused = _ask(scope, scope.builds, name, passed)
        if refused.by_all:
            at = _place(where, f"launch.flags.{name}", "launch.from", "launch")
            yield _mistake(refused, at)
    yield from _unknown_conditions(scope)


def _place(where: Mapping[str, str], *places: str) -> str:
    return next((where[place] for place in places if place in where), "")


def _mistake(refused: _Refused, where: str) -> Mistake:
    problem = next(iter(refused.problems.values()))
    return Mistake(where=where, what=problem.what, instead=problem.instead)


def _passed_by_all(scope: Scope) -> Iterator[tuple[str, FlagValue]]:
    """Launch flags that no axis overrides."""
    for name, value in scope.sweep.launch.flags.items():
        if scope.axis(name) is None:
            yield name, value


def _unknown_conditions(scope: Scope) -> Iterator[Mistake]:
    """Values of `when` and `predicts` that no build takes, where they are requested ones."""
    sweep = scope.sweep
    conditions = [(f"exclude[{i}].when", e.when) for i, e in enumerate(sweep.excludes)]
    conditions += [(f"hypotheses[{i}].predicts", h.when) for i, h in enumerate(sweep.hypotheses)]
    for at, when in conditions:
        for key, wanted in when.items():
            if key.startswith(EFFECTIVE) or not is_flag(key):
                continue
            for code, value in enumerate(wanted):
                refused = _ask(scope, scope.builds, key, value)
                if refused.by_all and scope.is_known(key):
                    place = _place(sweep.where, f"{at}.{key}[{code}]", f"{at}.{key}")
                    yield _mistake(refused, place)


def build_rules(scope: Scope) -> Iterator[Rule]:
    """Rules for what some builds refuse and others take, and for values that are equal there."""
    if not scope.tables:
        return
    build_axis = scope.axis("build")
    for code, build in enumerate(scope.builds):
        here = {build_axis: frozenset({code})} if build_axis is not None else {}
        yield from _refused_by(scope, build, here)
        yield from _equal_in(scope, build, here)


def _refused_by(scope: Scope, build: str, here: Mapping[int, frozenset[int]]) -> Iterator[Rule]:
    table, where = scope.table(build), scope.sweep.where
    if table is None:
        return
    for name, value in _passed_by_all(scope):
        problem = table.problem(name, value)
        if problem is not None:
            at = _place(where, f"launch.flags.{name}", "launch.from", "launch")
            yield Rule(codes=here, because=_in_build(build, problem.what), where=at)
    for position, axis in scope.flag_axes():
        for code, value in enumerate(axis.values):
            problem = table.problem(axis.name, value)
            if problem is not None:
                yield Rule(
                    codes={**here, position: frozenset({code})},
                    because=_in_build(build, problem.what),
                    where=_place(where, f"matrix.{axis.name}[{code}]", f"matrix.{axis.name}"),
                )


def _equal_in(scope: Scope, build: str, here: Mapping[int, frozenset[int]]) -> Iterator[Rule]:
    """Rules for values of an axis that launch the same as an earlier one."""
    table = scope.table(build)
    if table is None:
        return
    for position, axis in scope.flag_axes():
        for code, first in _repeats(scope, axis, build):
            yield Rule(
                codes={**here, position: frozenset({code})},
                because=f"{axis.name}={spell(axis.values[code])} is the same launch as "
                f"{spell(first)}",
                where=_place(
                    scope.sweep.where, f"matrix.{axis.name}[{code}]", f"matrix.{axis.name}"
                ),
            )


def _repeats(scope: Scope, axis: Axis, build: str) -> Iterator[tuple[int, Value]]:
    seen: dict[tuple[str, ...], Value] = {}
    for code, value in enumerate(axis.values):
        words = same_launch(axis.name, value, scope.table(build))
        if words in seen:
            yield code, seen[words]
        seen.setdefault(words, value)


def _in_build(build: str, what: str) -> str:
    return f"build '{build}': {what}"


def refused_setting(name: str, value: Value, table: FlagTable) -> tuple[str, str] | None:
    """Say why a build would refuse one setting, and what to write; None if it takes it."""
    problem = table.problem(name, value) if is_flag(name) else None
    return (problem.what, problem.instead) if problem else None


def refused_include(scope: Scope, cell: Cell, build: str) -> tuple[str, Problem, bool] | None:
    """Return the first setting of an included cell that its build refuses.

    The last item is True where no build of the sweep would take it.
    """
    builds = list(dict.fromkeys((*scope.builds, build)))
    for name, value in cell.values.items():
        if not is_flag(name):
            continue
        refused = _ask(scope, builds, name, value)
        if build in refused.problems:
            return name, refused.problems[build], refused.by_all
    return None
