"""Blocks as GitHub-flavoured Markdown that no log line can break."""

from __future__ import annotations

import re
from typing import assert_never

from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Inline,
    Line,
    Link,
    Listing,
    Paragraph,
    Strong,
    Table,
    clean,
)

_MARKUP = re.compile(
    r"""[\\`*|]                 # always markup
      | <(?=[A-Za-z/!?])        # a tag
      | \[(?=[^\]]*\]\()        # a link
      | (?<!\w)_ | _(?!\w)      # emphasis; inside a word it is none
      | ~~ | &(?=\#?\w+;)
    """,
    re.VERBOSE,
)
_LINE_START = re.compile(r"^(\s*)([#>+-]|\d+[.)])(?=\s)")
_BAR = re.compile(r"(\\*)\|")
_MARKER = "<!-- sglsweep:"


def to_markdown(blocks: list[Block]) -> str:
    """Return the document, one empty line between blocks, a newline at the end."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {_line(block.line)}"
        case Paragraph():
            return _guarded(_line(block.line))
        case Bullets():
            return "\n".join(f"- {_guarded(_line(item))}" for item in block.items)
        case Table():
            return _table(block)
        case Listing():
            return _listing(block)
        case _:
            assert_never(block)


def _table(table: Table) -> str:
    rows = [tuple((title,) for title in table.head), *table.rows]
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(table.head))
    return "\n".join(lines)


def _cell(line: Line) -> str:
    # In a table a bar ends the cell even inside a code span, unless an odd number of backslashes
    # precedes it: cmark-gfm cuts the row before it looks for code.
    return _BAR.sub(lambda f: f[1] + ("\\|" if len(f[1]) % 2 == 0 else "|"), _line(line)) or " "


def _listing(listing: Listing) -> str:
    text = "\n".join(clean(line) for line in listing.text.split("\n"))
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{listing.language}\n{_disarmed(text)}\n{fence}"


def _line(line: Line) -> str:
    return "".join(_inline(part) for part in line)


def _inline(part: Inline) -> str:
    match part:
        case str():
            return _text(part)
        case Code():
            return _code(part.text)
        case Strong():
            return f"**{_text(part.text)}**"
        case Link():
            url = re.sub(r"[<>\s]", "", clean(part.url))
            return f"[{_text(part.text)}](<{url}>)"
        case _:
            assert_never(part)


def _text(text: str) -> str:
    flat = clean(text).replace("\n", " ")
    return _MARKUP.sub(lambda found: "\\" + found.group(), flat)


def _code(text: str) -> str:
    flat = _disarmed(" ".join(clean(text).split("\n"))).strip()
    if not flat:
        return "(empty)"
    fence = "`" * (_longest_run(flat) + 1)
    padding = " " if flat[0] == "`" or flat[-1] == "`" else ""
    return f"{fence}{padding}{flat}{padding}{fence}"


def _guarded(text: str) -> str:
    """Keep a line that starts like a heading, a quote or a list from becoming one."""
    return _LINE_START.sub(r"\1\\\2", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _disarmed(text: str) -> str:
    """Keep a log that quotes a report from ending the tool's part of the file."""
    return text.replace(_MARKER, "<!-- sglsweep :")
