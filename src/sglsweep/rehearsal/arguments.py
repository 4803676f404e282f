"""SGLang's own flags, read the way SGLang's parser reads them, and the cell they stand for."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import yaml

from sglsweep.matrix import Cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.attempt import Scalar
    from sglsweep.matrix import Axis, Value

Arguments = dict[str, "Scalar | list[Scalar]"]
"""Flags as passed: the name SGLang stores a flag under -> its value."""

# Where SGLang's flag is not its field's name with dashes.
_ALIASES = {
    "model": "model_path",
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "fp8_gemm_backend": "fp8_gemm_runner_backend",
    "fp4_gemm_backend": "fp4_gemm_runner_backend",
}
_NEGATED = re.compile(r"^no[-_]")


class UsageError(Exception):
    """What argparse says before it exits with status 2."""


@cache
def defaults(version: str) -> Mapping[str, object]:
    """Return SGLang's fields with their defaults, in the order its log prints them."""
    text = (resources.files(__package__) / "server_args" / f"{version}.json").read_text("utf-8")
    found: dict[str, object] = json.loads(text)
    return found


@cache
def choices(version: str) -> Mapping[str, Sequence[str]]:
    """Return the allowed values of the flags whose values SGLang checks."""
    text = (resources.files(__package__) / "server_args" / "choices.yaml").read_text("utf-8")
    found: dict[str, Sequence[str]] = yaml.safe_load(text)[version]
    return found


def field_of(flag: str) -> str:
    """Return the name under which SGLang stores a flag (without dashes in front)."""
    name = flag.replace("-", "_")
    return _ALIASES.get(name, name)


def parse(words: Sequence[str], version: str, axes: Iterable[Axis]) -> Arguments:
    """Read SGLang's flags; what the world has an axis for is always known.

    Raises:
        UsageError: an unknown or ambiguous flag, or a value SGLang does not offer.
    """
    axis_values = {field_of(axis.name): axis.values for axis in axes}
    arguments: Arguments = {}
    for flag, values in _groups(words):
        name = _known_field(flag, version, axis_values)
        if name == "":
            arguments[field_of(_NEGATED.sub("", flag))] = False
            continue
        _check_choice(flag, values, choices(version).get(name, ()), axis_values.get(name, ()))
        arguments[name] = _value(values)
    if "model_path" not in arguments:
        raise UsageError("the following arguments are required: --model-path/--model")
    return arguments


def requested_cell(
    arguments: Arguments, axes: Iterable[Axis], environment: Mapping[str, str]
) -> Cell:
    """Return the cell of a world that a command line stands for.

    A flag that is not passed is null, where the axis lists null; else `unset`, else false.
    """
    return Cell((axis.name, _on_axis(axis, arguments, environment)) for axis in axes)


def _groups(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            groups.append((flag, [value] if equals else []))
        elif not groups:
            raise UsageError(f"unrecognized arguments: {word}")
        else:
            groups[-1][1].append(word)
    return groups


def _known_field(flag: str, version: str, axes: Mapping[str, object]) -> str:
    """Return the field of a flag; "" for the `--no-x` form of a known one."""
    known = {*defaults(version), *axes}
    name = field_of(flag)
    if name in known:
        return name
    if field_of(_NEGATED.sub("", flag)) in known and _NEGATED.match(flag):
        return ""
    near = sorted(k for k in known if k.startswith(name))
    if len(near) == 1:
        return near[0]
    if near:
        could = ", ".join("--" + k.replace("_", "-") for k in near)
        raise UsageError(f"ambiguous option: --{flag} could match {could}")
    raise UsageError(f"unrecognized arguments: --{flag}")


def _check_choice(
    flag: str, values: Sequence[str], allowed: Sequence[str], on_axis: Sequence[Value]
) -> None:
    for value in values:
        if allowed and value not in allowed and value not in map(str, on_axis):
            listed = ", ".join(repr(word) for word in allowed)
            raise UsageError(
                f"argument --{flag}: invalid choice: {value!r} (choose from {listed})"
            )


def _value(values: Sequence[str]) -> Scalar | list[Scalar]:
    if not values:
        return True
    typed = [_typed(value) for value in values]
    return typed[0] if len(typed) == 1 else typed


def _typed(word: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _on_axis(axis: Axis, arguments: Arguments, environment: Mapping[str, str]) -> Value:
    if axis.name.startswith("env."):
        found: object = environment.get(axis.name.removeprefix("env."))
    else:
        found = arguments.get(field_of(axis.name))
    if found is None or found is False:
        return _absent(axis, found)
    listed = {_spelled(value): value for value in axis.values}
    value = listed.get(_spelled(found), found)
    return value if isinstance(value, bool | int | float | str) else str(value)


def _absent(axis: Axis, found: object) -> Value:
    for value in (found, None, "unset", False):
        if value in axis.values and (value is None or isinstance(value, bool | str)):
            return value
    return None


def _spelled(value: object) -> str:
    """Write a value as it stands on a command line."""
    return "true" if value is True else str(value)
