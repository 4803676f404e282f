"""World files: YAML in, a checked World out, errors with file and line."""

from __future__ import annotations

import math
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from sglsweep.errors import ConfigError
from sglsweep.matrix import Axis, Value, spell
from sglsweep.rehearsal.world import Rewrite, Rule, World
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from enum import StrEnum
    from pathlib import Path

T = TypeVar("T")
E = TypeVar("E", bound="StrEnum")

# `rehearsal`, `at`, `shows` and `mischief` speak to the rehearsal server alone (settings.py).
_KEYS = ("axes", "resolve", "rules", "flake", "rehearsal")
_RULE_KEYS = ("when", "verdict", "cause", "phase", "blames", "at", "shows", "mischief")
_YES_NO = frozenset({"yes", "no", "on", "off", "y", "n"})
_LARGEST = 2_000_000


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses what would be a silent surprise."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise _refuse(key_node, f"{key!r} stands twice", "Keep one of them.")
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    if node.value.lower() in _YES_NO:
        raise _refuse(
            node,
            f"YAML reads a bare {node.value} as a truth value",
            f"Write '{node.value}' in quotes, or true or false.",
        )
    return bool(loader.construct_yaml_bool(node))


def _refuse(node: yaml.Node, what: str, next_step: str) -> ConfigError:
    mark = node.start_mark
    return ConfigError(f"{mark.name}:{mark.line + 1}: {what}", next_step=next_step)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)


def load_world(path: Path) -> World:
    """Read and check a world file.

    Raises:
        ConfigError: the file cannot be read, or says something a world cannot be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({error})", next_step="Name a world file."
        ) from error
    return parse_world(text, name=path.stem, where=str(path))


def parse_world(text: str, *, name: str, where: str) -> World:
    """Read a world from YAML text; `where` stands in front of what is refused.

    Raises:
        ConfigError: the text says something a world cannot be.
    """
    loader = _Loader(text)
    loader.name = where
    try:
        document = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(
            f"{where}:{line}: not YAML: {error.problem}", next_step="Correct the line."
        ) from error
    finally:
        loader.dispose()
    return _world(document, name, where)


def _world(document: object, name: str, where: str) -> World:
    top = _section(document, where, _KEYS)
    axes = _axes(top.get("axes"), f"{where}: axes")
    known = {axis.name: axis for axis in axes}
    resolve = _each(top.get("resolve"), f"{where}: resolve", partial(_rewrite, known))
    return World(
        name=name,
        axes=axes,
        resolve=tuple(resolve),
        rules=tuple(
            _each(top.get("rules"), f"{where}: rules", partial(_rule, _widened(known, resolve)))
        ),
        flake=_probability(top.get("flake", 0.0), f"{where}: flake"),
    )


def _axes(found: object, where: str) -> tuple[Axis, ...]:
    if not isinstance(found, dict) or not found:
        raise ConfigError(
            f"{where}: {found!r} is not a mapping of axes to lists of values",
            next_step="Write `axes: {flag: [value, value]}`.",
        )
    for name, values in found.items():
        if not isinstance(name, str) or not isinstance(values, list) or not values:
            raise ConfigError(
                f"{where}: axis {name!r} has no list of values",
                next_step="Write `flag: [value, value]`, with the flag as a word.",
            )
        _check_values(values, f"{where}: {name}")
    if math.prod(len(values) for values in found.values()) > _LARGEST:
        raise ConfigError(
            f"{where}: more than {_LARGEST} cells", next_step="List fewer axes or values."
        )
    return tuple(Axis(name, tuple(values)) for name, values in found.items())


def _spelled(value: object, where: str) -> str:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ConfigError(
            f"{where}: {value!r} is not a single value",
            next_step="Write a word, a number, true, false or null.",
        )
    return spell(value)


def _check_values(values: Sequence[object], where: str) -> None:
    words = [_spelled(value, where) for value in values]
    for word in words:
        if words.count(word) > 1:
            raise ConfigError(f"{where}: {word} stands twice", next_step="Keep one of them.")


def _each(found: object, where: str, read: Callable[[object, str], T]) -> list[T]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise ConfigError(f"{where}: {found!r} is not a list", next_step="Write `- {...}` lines.")
    return [read(item, f"{where}[{number}]") for number, item in enumerate(found)]


def _rewrite(axes: Mapping[str, Axis], item: object, where: str) -> Rewrite:
    section = _section(item, where, ("when", "set"))
    values = _values(section.get("set"), axes, f"{where}: set", listed_only=False)
    return Rewrite(_values(section.get("when"), axes, f"{where}: when"), values)


def _rule(axes: Mapping[str, Axis], item: object, where: str) -> Rule:
    section = _section(item, where, _RULE_KEYS)
    blames = section.get("blames") or []
    if not isinstance(blames, list) or not all(b in axes for b in blames):
        raise ConfigError(
            f"{where}: blames {blames!r} names what is no axis",
            next_step=f"List axes: {', '.join(axes)}.",
        )
    verdict = _word(Verdict, section.get("verdict"), f"{where}: verdict")
    if verdict is Verdict.SERVING:
        raise ConfigError(
            f"{where}: a rule says how cells fail, not that they serve",
            next_step="Delete the rule: what no rule holds for serves.",
        )
    cause = section.get("cause")
    if not isinstance(cause, str) or not cause:
        raise ConfigError(f"{where}: no cause", next_step="Write `cause: some-word`.")
    return Rule(
        when=_values(section.get("when"), axes, f"{where}: when"),
        verdict=verdict,
        cause=cause,
        phase=_word(Phase, section.get("phase"), f"{where}: phase"),
        blames=tuple(blames),
    )


def _values(
    found: object, axes: Mapping[str, Axis], where: str, *, listed_only: bool = True
) -> dict[str, Value]:
    if not isinstance(found, dict) or not found:
        raise ConfigError(
            f"{where}: {found!r} is not a mapping of axes to values",
            next_step="Write `{flag: value}`.",
        )
    for name, value in found.items():
        if name not in axes:
            raise ConfigError(
                f"{where}: {name!r} is no axis{_nearest(str(name), axes)}",
                next_step=f"Use one of: {', '.join(axes)}.",
            )
        listed = [spell(v) for v in axes[name].values]
        if listed_only and _spelled(value, where) not in listed:
            raise ConfigError(
                f"{where}: {_spelled(value, where)} is no value of {name}",
                next_step=f"Use one of: {', '.join(listed)}.",
            )
    return dict(found)


def _widened(axes: Mapping[str, Axis], rewrites: Sequence[Rewrite]) -> dict[str, Axis]:
    """Return the axes with the values that rewrites can bring in: rules may name those too."""
    wide = dict(axes)
    for rewrite in rewrites:
        for name, value in rewrite.values.items():
            if spell(value) not in [spell(v) for v in wide[name].values]:
                wide[name] = Axis(name, (*wide[name].values, value))
    return wide


def _section(found: object, where: str, allowed: Sequence[str]) -> dict[str, object]:
    if not isinstance(found, dict):
        raise ConfigError(
            f"{where}: {found!r} is not a mapping",
            next_step=f"Write `key: value` lines with the keys {', '.join(allowed)}.",
        )
    for key in found:
        if key not in allowed:
            raise ConfigError(
                f"{where}: unknown key {key!r}{_nearest(str(key), allowed)}",
                next_step=f"Use {', '.join(allowed)}.",
            )
    return found


def _word(kind: type[E], found: object, where: str) -> E:
    words = [str(member) for member in kind]
    if found not in words:
        raise ConfigError(
            f"{where}: {found!r} is none{_nearest(str(found), words)}",
            next_step=f"Use one of: {', '.join(words)}.",
        )
    return kind(found)


def _probability(found: object, where: str) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise ConfigError(
            f"{where}: {found!r} is not a chance", next_step="Write a number from 0 to 1."
        )
    return float(found)


def _nearest(word: str, words: Sequence[str] | Mapping[str, object]) -> str:
    near = get_close_matches(word, list(words), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
