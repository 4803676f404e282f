"""Joins what pydantic says to the lines of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sglsweep.config.document import Document, Loc
from sglsweep.config.mistakes import Mistake, refuse

_T = TypeVar("_T")

_SHOWN = 60
_WORDS: Mapping[str, tuple[str, str]] = {
    "string_type": ("is no text", "Write it in quotes."),
    "string_too_short": ("is empty", "Write something."),
    "int_type": ("is no whole number", "Write a whole number without quotes."),
    "bool_type": ("is neither true nor false", "Write true or false."),
    "dict_type": ("is no mapping", "Write `key: value` below it, or {{key: value}}."),
    "dataclass_type": ("is no mapping", "Write `key: value` below it, or {{key: value}}."),
    "tuple_type": ("is no list", "Write [a, b]."),
    "too_short": ("has too few items", "Write at least {min_length}, or delete it."),
    "greater_than_equal": ("is too small", "Write at least {ge}."),
    "less_than_equal": ("is too large", "Write at most {le}."),
}
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}
_KEY = "[key]"
"""What pydantic ends a location with where a key, not its value, is wrong."""


def validate(document: Document, tree: object, kind: type[_T], at: Loc = ()) -> _T:
    """Turn plain values into `kind`.

    Args:
        document: the file, for lines.
        tree: what stands at `at` in it.
        kind: a dataclass of `schema.py`.
        at: the way to it.

    Raises:
        ConfigError: with every mistake, each as FILE:LINE, the offending text, what to write.
    """
    try:
        return _adapter(kind).validate_python(tree)
    except ValidationError as error:
        refuse(_mistake(document, tree, at, item) for item in error.errors(include_url=False))
        raise


def _adapter(kind: type[_T]) -> TypeAdapter[_T]:
    # Built once: that takes ten times as long as reading a sweep with it.
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _mistake(document: Document, tree: object, at: Loc, item: Mapping[str, Any]) -> Mistake:
    context = item.get("ctx", {})
    loc: Loc = (*_existing(tree, item["loc"]), *context.get("at", ()))
    full = (*at, *loc)
    name = dotted(full) or "the file"
    what, instead = _words(item)
    if item["type"] == "missing":
        what, instead = f"{name} lacks '{item['loc'][-1]}'", "Add it."
    elif "key" in context:
        what = f"{what} in {dotted(full[:-1])}" if full[:-1] else what
    elif context.get("complete"):
        what = f"{name} {what}"
    elif item["loc"][-1:] == (_KEY,):
        what = f"{dotted(full[:-1])}: {_shown(loc[-1])} {what}"
    else:
        what = f"{name}: {_shown(_at(tree, loc))} {what}"
    return Mistake(where=document.where(full), what=what, instead=instead)


def _words(item: Mapping[str, Any]) -> tuple[str, str]:
    context = item.get("ctx", {})
    if item["type"] == "wrong":
        return context["what"], context["instead"]
    known = _WORDS.get(item["type"])
    if known is None:
        return f"is wrong: {item['msg'].lower()}", "Write another value."
    return known[0], known[1].format(**context)


_ABSENT = object()


def _below(tree: object, part: str | int) -> object:
    if isinstance(tree, dict):
        return tree.get(part, _ABSENT)
    if isinstance(tree, list) and isinstance(part, int) and part < len(tree):
        return tree[part]
    return _ABSENT


def _existing(tree: object, loc: Loc) -> Loc:
    """Keep the parts of a pydantic location that the tree holds; it also names types and keys."""
    kept: list[str | int] = []
    for part in loc:
        below = _below(tree, part)
        if below is not _ABSENT:
            tree = below
            kept.append(part)
    return tuple(kept)


def _at(tree: object, loc: Loc) -> object:
    for part in loc:
        tree = _below(tree, part)
    return tree


def dotted(loc: Loc) -> str:
    """Write a way as `matrix.kv-cache-dtype[1]`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _shown(value: object) -> str:
    try:
        text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = "nothing"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
