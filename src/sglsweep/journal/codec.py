"""The dataclasses of an attempt as JSON and back, types kept (True, 1 and 1.0 stay apart)."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast

from sglsweep.matrix import Cell

T = TypeVar("T")
_CELL_VALUES = Mapping[str, bool | int | float | str | None]
_SHOWN_CHARACTERS = 60


class Malformed(ValueError):  # noqa: N818 - says what the document is
    """A JSON document that is not what the type asks for: where, and what stands there."""


def to_json(value: object) -> object:
    """Turn a dataclass tree into what `json.dumps` takes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Cell):
        return dict(value.values)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(wanted: type[T], document: object, where: str = "") -> T:
    """Build a `wanted` from JSON; keys that it does not know are ignored.

    Raises:
        Malformed: a value of the wrong kind, an unknown verdict, a key that is missing.
    """
    return cast("T", _decode(wanted, document, where))


def _decode(wanted: Any, document: object, where: str) -> object:  # noqa: ANN401 - a type form
    if wanted is object:
        return document
    if wanted is Cell:
        return Cell(cast("dict[str, Any]", _decode(_CELL_VALUES, document, where)))
    origin = typing.get_origin(wanted)
    if origin is not None:
        return _decode_generic(origin, typing.get_args(wanted), document, where)
    if dataclasses.is_dataclass(wanted):
        return _decode_dataclass(cast("type", wanted), document, where)
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return _decode_enum(wanted, document, where)
    if _is_a(wanted, document):
        return document
    raise Malformed(f"{where or 'document'}: {_cut(document)} is not {_name(wanted)}")


def _decode_generic(
    origin: object, arguments: tuple[Any, ...], document: object, where: str
) -> object:
    if origin is types.UnionType or origin is typing.Union:
        return _decode_union(arguments, document, where)
    if origin is tuple:
        if not isinstance(document, list):
            raise Malformed(f"{where}: {_cut(document)} is not a list")
        return tuple(
            _decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(document)
        )
    if not isinstance(document, dict):
        raise Malformed(f"{where}: {_cut(document)} is not an object")
    key_type, value_type = arguments
    return {
        _decode(key_type, key, where): _decode(value_type, item, f"{where}.{key}")
        for key, item in document.items()
    }


def _decode_union(arguments: tuple[Any, ...], document: object, where: str) -> object:
    if any(_is_a(a, document) for a in arguments if isinstance(a, type)):
        return document
    structured = [a for a in arguments if a is not type(None) and not _is_plain(a)]
    if len(structured) == 1:
        return _decode(structured[0], document, where)
    names = ", ".join(_name(a) for a in arguments)
    raise Malformed(f"{where}: {_cut(document)} is none of {names}")


def _decode_dataclass(wanted: type, document: object, where: str) -> object:
    if not isinstance(document, dict):
        raise Malformed(f"{where or wanted.__name__}: {_cut(document)} is not an object")
    values: dict[str, object] = {}
    for name, hint, is_required in _fields(wanted):
        place = f"{where}.{name}" if where else name
        if name in document:
            values[name] = _decode(hint, document[name], place)
        elif is_required:
            raise Malformed(f"{place}: missing")
    return wanted(**values)


@cache
def _fields(wanted: type) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(wanted)
    missing = dataclasses.MISSING
    return tuple(
        (f.name, hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(wanted)
    )


def _decode_enum(wanted: type[StrEnum], document: object, where: str) -> StrEnum:
    try:
        return wanted(str(document))
    except ValueError as error:
        raise Malformed(f"{where}: {_cut(document)} is no {wanted.__name__}") from error


def _is_plain(wanted: object) -> bool:
    return wanted in {bool, int, float, str}


def _is_a(wanted: object, document: object) -> bool:
    """True if `document` is a plain value of that type; an int will do for a float."""
    if wanted is float:
        return isinstance(document, float | int) and not isinstance(document, bool)
    if wanted is int:
        return isinstance(document, int) and not isinstance(document, bool)
    if wanted is type(None):
        return document is None
    return wanted in {bool, str} and isinstance(document, cast("type", wanted))


def _name(wanted: object) -> str:
    return "null" if wanted is type(None) else getattr(wanted, "__name__", str(wanted))


def _cut(document: object) -> str:
    text = repr(document)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
