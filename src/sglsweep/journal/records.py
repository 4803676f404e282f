"""One attempt.json as it is read: what it may hold, and what is said where it holds else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sglsweep.attempt import Attempt, Outcome
from sglsweep.errors import ConfigError
from sglsweep.journal import disk
from sglsweep.journal.codec import Malformed, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

T = TypeVar("T")
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Record:
    """One attempt.json as it was read; `mark` changes whenever the file is written."""

    mark: tuple[int, int, int]
    state: str
    known: Outcome | Attempt


def mark_of(path: Path) -> tuple[int, int, int] | None:
    """Return what changes whenever the file is written, by rename as it always is."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def read_record(path: Path, mark: tuple[int, int, int]) -> Record:
    """Read one attempt: what was decided while it is open, what it came to afterwards."""
    document = read_document(path)
    state = str(document["state"])
    if state == "open":
        return Record(mark, state, _decoded(Attempt, path, document.get("attempt")))
    return Record(mark, state, _decoded(Outcome, path, document))


def read_document(path: Path) -> dict[str, object]:
    """Read one attempt.json as JSON.

    Raises:
        ConfigError: half-written, foreign, of a newer version, or in a state nobody knows.
    """
    document = disk.read_json(path, what="the attempt's record", next_step=_set_aside(path))
    check_schema(path, document)
    if document.get("state") not in {"open", "stopping", "closed"}:
        raise ConfigError(
            f"{path}: the attempt's state is {document.get('state')!r}, not one that is known",
            next_step=_set_aside(path),
        )
    return document


def check_schema(path: Path, document: Mapping[str, object]) -> None:
    """Refuse a document that another program or a newer version wrote."""
    schema = document.get("schema")
    if schema == SCHEMA:
        return
    if isinstance(schema, int) and schema > SCHEMA:
        raise ConfigError(
            f"{path}: written by a newer sglsweep (schema {schema}, this one reads {SCHEMA})",
            next_step="Upgrade sglsweep, or start a new run with --out.",
        )
    raise ConfigError(
        f"{path}: not written by sglsweep (schema is {schema!r}, not {SCHEMA})",
        next_step=_set_aside(path),
    )


def _set_aside(path: Path) -> str:
    return (
        f"Move {path.parent.name}/ out of its folder; the rest of the run can be read without it."
    )


def _decoded(wanted: type[T], path: Path, document: object) -> T:
    try:
        return from_json(wanted, document)
    except Malformed as error:
        raise ConfigError(
            f"{path}: the attempt's record is damaged: {error}", next_step=_set_aside(path)
        ) from error
