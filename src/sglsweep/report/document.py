"""What a report is made of before it is Markdown or HTML: blocks of lines of inline parts.

Text from logs and from users enters here as plain strings; the renderers alone know how to
keep it from being taken for markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Code:
    """Words a machine reads or wrote: flags, commands, log lines."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """What must not be overlooked."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A web address under a title."""

    text: str
    url: str


Inline = str | Code | Strong | Link
Line = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; level 1 is the document's."""

    level: int
    line: Line


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line of prose."""

    line: Line


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list without order."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines to copy or to read as they are."""

    text: str
    language: str = "text"


Block = Heading | Paragraph | Bullets | Table | Listing


def clean(text: str) -> str:
    """Return text without colour codes, control characters and halves of characters."""
    text = _CONTROL.sub(" ", _ANSI.sub("", text))
    return _SURROGATE.sub("?", text)


def one_line(text: str, *, limit: int = 240) -> str:
    """Return cleaned text on one line, its middle cut out where it is too long."""
    flat = " ".join(clean(text).split())
    if len(flat) <= limit:
        return flat
    tail = limit // 4
    return f"{flat[: limit - tail - 3].rstrip()} … {flat[-tail:].lstrip()}"


def prose(text: str, *, limit: int = 500) -> Line:
    """Return a sentence of ours as a line; what stands between two backticks is code."""
    pieces = one_line(text, limit=limit).split("`")
    if len(pieces) % 2 == 0:
        return ("`".join(pieces),)
    return tuple(
        Code(piece) if index % 2 else piece for index, piece in enumerate(pieces) if piece
    )


def joined(parts: list[Line], separator: str = ", ") -> Line:
    """Put lines behind one another."""
    flat: list[Inline] = []
    for index, part in enumerate(parts):
        if index:
            flat.append(separator)
        flat.extend(part)
    return tuple(flat)


def plain(line: Line) -> str:
    """Return a line as text without any markup."""
    return "".join(part if isinstance(part, str) else part.text for part in line)
