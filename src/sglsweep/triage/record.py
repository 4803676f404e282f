# ruff: noqa: E501 - a regular expression a line, each with its example
"""One raw line of a log as pieces of text, each with the time and rank it carries.

Logs come wrapped: by docker, compose, Kubernetes, journald, MPI, Ray, srun, JSON shippers and
terminal boxes. Progress bars put several states between carriage returns on one line and have
the next record glued to them. A piece is what one process wrote at one moment, unwrapped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sglsweep.triage.prefix import Prefixes

MAX_PIECE = 65536
"""Characters of one piece that are looked at; a 50 MB line is not read to its end by regexes."""

MAX_PREFIX = 120
"""No prefix is longer; what is longer is a text of its own, with the next record glued to it."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_RANK_NAMES = "DP|PP|ATTN_CP|ATTN_TP|ATTN_DP|MOE_DP|MOE_EP|MOE_TP|DCP|CP|TP|EP"
_RANKS = rf"(?:(?:{_RANK_NAMES})-?\d+)(?: (?:{_RANK_NAMES})-?\d+)*"

_WRAPPERS = re.compile(
    r"""
      (?:[│┃║╎]\ ?)+                                                         # terminal boxes
    | \((?:[^()\s]+(?:\([^)\n]{0,80}\))?\ )?pid=\d+(?:,\ ip=[\d.:a-f]+)?\)\ ?  # Ray
    | [A-Za-z0-9][\w.-]{0,80}\ *\|\ (?!\ )|[A-Za-z0-9][\w.-]{0,80}\ +\|\ ?     # docker compose
    | \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\ (?:(?:stdout|stderr)\ [FP]\ ?)?
    | \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]\   # Jenkins, CI
    | [A-Z][a-z]{2}\ [ \d]\d\ \d\d:\d\d:\d\d\ (?:[\w.-]+\ )?[\w./@-]+(?:\[\d+\])?:\ ?   # journald
    | [\w.-]+\ [\w./@-]+\[\d+\]:\ ?                                           # short-iso journald
    | \[\d+,\d+\]<\w+>:?(?:\ (?=\S))?                                                   # MPI
    | \[pod/[^\]\s]{1,200}\]\ ?
    | \[[a-z][\w.-]*-\d+\]\ (?=\[)                                            # [worker-0] [2026-...
    | \ {0,2}\d{1,4}:\                                                         # srun --label
    | \[default\d+\]:(?:\ (?=\S))?
    """,
    re.VERBOSE,
)
_TORCH_RANK = re.compile(r"\[rank(\d+)\]:\s?")
_STAMP = r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d"
_HEADER = re.compile(
    rf"\[(?P<stamp>{_STAMP})(?:[.,]\d+)?(?P<ranks>(?: (?:{_RANK_NAMES})-?\d+)*)"
    r"(?: encode_server| encode_dp_worker\[\d+\]| \w+(?:\[\d+\])?)?\] ?"
)
_BARE_RANKS = re.compile(rf"\[ ?(?P<ranks>{_RANKS})\] ?")
_OLD_GPU = re.compile(r"\[gpu(?:_id)?=(?P<gpu>\d+)\] ?")
_DICT_CONFIG = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)? (?:- )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b"
    rf"(?: -)? (?:\d+ )?(?:\[ ?(?P<ranks>{_RANKS})?[^\]\n]{{0,80}}\] ?)?"
)
_ISO_LEVEL = re.compile(r" ?(?:DEBUG|INFO|WARN|WARNING|ERROR) [\w.]+: ")
_LEVEL = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?:: +| \S{1,80}\.py:\d+: |:[\w.]+:)")
_GLUED = re.compile(
    r"(?<=.)(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z][\w-]*)*\] )", re.DOTALL
)
_HEAD = "Traceback (most recent call last)"
_SAYS_SOMETHING = re.compile(r"xception|rror|ail|\[rank\d|^\s*$")
"""What stands in front of a traceback and is no prefix: a message, or an indentation."""
_JSON_KEYS = ("log", "message", "msg", "MESSAGE", "line", "text", "content")


@dataclass(frozen=True, slots=True)
class Piece:
    """What one process wrote at one moment.

    Attributes:
        line: 1-based number of the raw line it stands in.
        shown: the text between carriage returns, without colour codes: what evidence quotes.
        text: `shown` without wrappers, header and level: what patterns are searched in.
        stamp: `YYYY-MM-DD HH:MM:SS`, or a shorter form as printed; None if it has none.
        rank: as printed, all parts; None if it names none.
        torch_rank: the number of a `[rank5]:` prefix.
        is_headed: it begins a record of SGLang's own (time stamp or rank in brackets).
        wrapper: what was stripped from the front; pieces of one process share it.
    """

    line: int
    shown: str
    text: str
    stamp: str | None = None
    rank: str | None = None
    torch_rank: int | None = None
    is_headed: bool = False
    wrapper: str = ""


def pieces(line: int, raw: bytes, prefixes: Prefixes | None = None) -> list[Piece]:
    """Split one raw line, without its newline, into its pieces; empty ones are left out.

    `prefixes` is what this log taught so far; it learns from this line.
    """
    known = prefixes or Prefixes()
    decoded = raw.decode("utf-8", "replace")
    if "\x1b" in decoded:
        decoded = _ANSI.sub("", decoded)
    decoded = decoded.replace("\x00", "")
    found: list[Piece] = []
    for segment in decoded.split("\r"):
        if segment.strip():
            found.extend(_of_segment(line, segment, known))
    return found


def plain(raw: bytes) -> str:
    """Decode a raw line for a reader: without colour codes and carriage returns."""
    return _ANSI.sub("", raw.decode("utf-8", "replace")).rstrip("\r\n")


def _of_segment(line: int, segment: str, prefixes: Prefixes) -> list[Piece]:
    wrapper, rest = _unwrap(segment, prefixes)
    if rest.startswith("{"):
        inner = _json_text(rest)
        if inner is not None:
            parts = [
                p
                for part in inner.replace("\r", "\n").split("\n")
                for p in [_ANSI.sub("", part)]
                if p.strip()
            ]
            return [piece for part in parts for piece in _of_inner(line, part, wrapper, prefixes)]
    if "[20" in rest[1:MAX_PREFIX] or _HEAD in rest[1:MAX_PREFIX]:
        wrapper, rest = _unknown_prefix(wrapper, rest, prefixes)
    return _of_text(line, segment[:MAX_PIECE], rest[:MAX_PIECE], wrapper)


def _of_inner(line: int, part: str, outer: str, prefixes: Prefixes) -> list[Piece]:
    """Split a line that a shipper carried; it may be wrapped once more."""
    wrapper, rest = _unwrap(part, prefixes)
    return _of_text(line, part, rest, outer + wrapper)


def _unknown_prefix(wrapper: str, rest: str, prefixes: Prefixes) -> tuple[str, str]:
    """Move what stands in front of a header or a traceback over to the wrapper, and learn it."""
    glued = _GLUED.search(rest, 1)
    at = glued.start() if glued else rest.find(_HEAD)
    prefix = rest[:at]
    if at <= 0 or _is_worth_a_piece(prefix):
        return wrapper, rest
    if not glued and (_SAYS_SOMETHING.search(prefix) or _header(prefix)):
        return wrapper, rest
    prefixes.learn(prefix, is_certain=not glued)
    return wrapper + prefix, rest[at:]


def _unwrap(segment: str, prefixes: Prefixes) -> tuple[str, str]:
    """Return (what was stripped, the rest).

    A wrapper's time is not kept: its clock is often another one (UTC, the collector's).
    """
    at = 0
    while True:
        match = _WRAPPERS.match(segment, at)
        end = match.end() if match else prefixes.end(segment, at)
        if end <= at:
            break
        at = end
    return segment[:at], segment[at:]


def _json_text(rest: str) -> str | None:
    try:
        record = json.loads(rest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    for key in _JSON_KEYS:
        value = record.get(key)
        if isinstance(value, str):
            return value
    return None


def _of_text(line: int, shown: str, rest: str, wrapper: str) -> list[Piece]:
    parts = _GLUED.split(rest) if "[20" in rest else [rest]
    return [_piece(line, shown, part, wrapper) for part in parts if part.strip()]


def _is_worth_a_piece(text: str) -> bool:
    """True unless it is an unknown prefix in front of a record's header."""
    is_bar = "%|" in text or "it/s" in text or "Completed |" in text
    return is_bar or len(text) > MAX_PREFIX


def _piece(line: int, shown: str, text: str, wrapper: str) -> Piece:
    torch_rank = None
    if match := _TORCH_RANK.match(text):
        torch_rank = int(match[1])
        text = text[match.end() :]
        if not text.strip():
            text = shown
    header = _header(text)
    if header is None:
        return Piece(line, shown.rstrip(), text.rstrip(), torch_rank=torch_rank, wrapper=wrapper)
    own_stamp, rank, end = header
    body = text[end:]
    if level := _LEVEL.match(body):
        body = body[level.end() :]
    return Piece(
        line,
        shown.rstrip(),
        body.rstrip(),
        own_stamp,
        rank,
        torch_rank,
        is_headed=True,
        wrapper=wrapper,
    )


def _header(text: str) -> tuple[str | None, str | None, int] | None:
    """Return (time stamp, ranks, where the text begins) of a record's first line."""
    if match := _HEADER.match(text):
        return match["stamp"], match["ranks"].strip() or None, match.end()
    if match := _BARE_RANKS.match(text):
        return None, match["ranks"], match.end()
    if match := _DICT_CONFIG.match(text):
        return match["stamp"], match["ranks"], match.end()
    if match := _OLD_GPU.match(text):
        return None, f"TP{match['gpu']}", match.end()
    match = _ISO_LEVEL.match(text) or _LEVEL.match(text)
    return (None, None, match.end()) if match else None
