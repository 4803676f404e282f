"""`probe: {requests: FILE}`: the user's own requests, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.errors import ConfigError
from sglsweep.keeper_files import HttpRequest

MOST = 10_000
_KEYS = ("body", "method", "name", "path")
_METHODS = ("DELETE", "GET", "POST", "PUT")
_USUAL_PATH = "/generate"
_EXAMPLE = (
    'Write one a line, as {"body": {"text": "Hello", "sampling_params": {"max_new_tokens": 8}}}.'
)


def read_requests(path: Path, *, where: str) -> tuple[HttpRequest, ...]:
    """Read a file of requests, in the order they are to be asked.

    A line without `path` goes to /generate; one without `body` is a GET.

    Args:
        path: one JSON object a line; empty lines and lines that begin with # are passed over.
        where: the place that names the file, for the error of one that is not there.

    Raises:
        ConfigError: the file cannot be read, is empty, or has lines that are no request.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(
            f"{where}: {path}: {reason.lower()}",
            next_step="Write the path of a file with one request a line, relative to this file.",
        ) from error
    lines = [
        (f"{path}:{number}", line)
        # Not splitlines(): prompts may hold what Unicode calls a line's end.
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not 0 < len(lines) <= MOST:
        raise ConfigError(f"{path}: holds {len(lines):,} requests", next_step=_EXAMPLE)
    return _requests(lines)


def _requests(lines: list[tuple[str, str]]) -> tuple[HttpRequest, ...]:
    found: list[HttpRequest] = []
    mistakes: list[Mistake] = []
    for at, (where, line) in enumerate(lines, start=1):
        entry = _entry(line)
        if entry is None:
            mistakes.append(Mistake(where=where, what="no JSON object", instead=_EXAMPLE))
            continue
        wrong = list(_wrong(entry, where))
        mistakes += wrong
        if not wrong:
            found.append(_request(entry, at))
    refuse(mistakes)
    return tuple(found)


def _entry(line: str) -> dict[str, object] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _wrong(entry: dict[str, object], where: str) -> Iterator[Mistake]:
    for name in sorted(entry.keys() - set(_KEYS)):
        yield Mistake(
            where=where,
            what=f"unknown key '{name}'",
            instead=f"The keys are {', '.join(_KEYS)}; what the server is to get goes into body.",
        )
    path, method = entry.get("path", _USUAL_PATH), entry.get("method", "POST")
    if not isinstance(path, str) or not path.startswith("/"):
        yield Mistake(
            where=where, what=f"path {path!r} begins with no /", instead='Write "/generate".'
        )
    elif not all("!" <= letter <= "~" for letter in path):
        yield Mistake(
            where=where,
            what=f"path {path!r} has letters that no URL has",
            instead="Write them as %XX, a blank as %20.",
        )
    if method not in _METHODS:
        yield Mistake(
            where=where, what=f"method {method!r}", instead=f"One of {', '.join(_METHODS)}."
        )


def _request(entry: dict[str, object], number: int) -> HttpRequest:
    body = entry.get("body")
    return HttpRequest(
        id=f"{number} {entry['name']}" if "name" in entry else str(number),
        path=str(entry.get("path", _USUAL_PATH)),
        method=str(entry.get("method", "GET" if body is None else "POST")),
        body=body,
        stream=isinstance(body, dict) and body.get("stream") is True,
    )
