"""FINDINGS.md and findings.json into the run's folder."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from sglsweep.errors import StorageError
from sglsweep.report.findings import merge, render
from sglsweep.report.record import findings_json
from sglsweep.report.view import StoredRun, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.report.view import RunView


def write(stored: StoredRun) -> RunView:
    """Write the report of a run; text that the user put outside the markers stays.

    Raises:
        StorageError: the disk refused; the old files are as they were.
    """
    run = view_of(stored)
    path = stored.folder / "FINDINGS.md"
    replace_file(path, _encoded(merge(_existing(path), render(run))))
    document = json.dumps(findings_json(run), indent=1)
    replace_file(stored.folder / "findings.json", f"{document}\n".encode("ascii"))
    return run


def _existing(path: Path) -> str | None:
    # Bytes that are no UTF-8, and a carriage return of another editor, come back as they were.
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"{path}: cannot read: {error.strerror or error}",
            next_step="Move it out of the way: what it holds of yours must not be lost.",
        ) from error


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def replace_file(path: Path, content: bytes) -> None:
    """Write the whole file or leave the old one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        is_folder_missing = isinstance(error, FileNotFoundError)
        raise StorageError(
            f"{path}: cannot write: {error.strerror or error}",
            next_step=f"Make the folder {path.parent} first."
            if is_folder_missing
            else "Free some space or fix the permissions, then run `sglsweep report` again.",
        ) from error
