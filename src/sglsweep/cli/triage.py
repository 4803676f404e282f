"""`sglsweep triage`: the diagnosis of any log, from anyone, without a host."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sglsweep.catalogue import Catalogue
    from sglsweep.triage.ending import Ending
    from sglsweep.triage.reading import Reading

STDIN = "-"
LOG_NAMES = {".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".jsonl", ""}
"""What is taken for a log in a folder; a file that is named is read whatever it is called."""
BLOCK = 1 << 22


def triage(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Log files, folders of logs, or - for stdin."),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line, one for each log.")
    ] = False,
    exit_status: Annotated[
        int | None,
        typer.Option(metavar="N", help="The server's exit status: -9 or 137 for SIGKILL."),
    ] = None,
    silence_s: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0, help="Seconds without output while the server still lived."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which lines lost against the cause, and why.")
    ] = False,
) -> None:
    """Say what any SGLang log came to: verdict, cause, evidence, what to do next.

    Example: sglsweep triage server.log --exit-status -9
    """
    from sglsweep import catalogue
    from sglsweep.triage.ending import Ending

    ending = Ending(exit_status=exit_status, silence_s=silence_s)
    known = catalogue.load()
    for number, name in enumerate(_named(logs)):
        with _opened(name) as stream:
            if as_json:
                print_json(name, _read(stream, known), known, ending)
            else:
                _print_text(
                    name, stream, known, ending, is_explained=explain, is_first=number == 0
                )


def print_json(name: str, reading: Reading, known: Catalogue, ending: Ending) -> None:
    """Write one log's diagnosis as one line."""
    from sglsweep.triage.diagnose import conclude
    from sglsweep.triage.diagnosis_json import to_json

    document = to_json(conclude(reading, known, ending=ending), name)
    sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")


def _print_text(
    name: str,
    stream: IO[bytes],
    known: Catalogue,
    ending: Ending,
    *,
    is_explained: bool,
    is_first: bool,
) -> None:
    from sglsweep.triage.diagnose import explain
    from sglsweep.triage.told import lines_around, told

    diagnosis, choice = explain(_read(stream, known), known, ending=ending)
    stream.seek(0)
    context = lines_around(stream, diagnosis.line) if diagnosis.line else {}
    text = told(name, diagnosis, choice, context=context, is_explained=is_explained)
    sys.stdout.write(("" if is_first else "\n") + text)


def _read(stream: IO[bytes], known: Catalogue) -> Reading:
    """Read a log block by block, so that its size does not matter to memory."""
    from sglsweep.triage.reading import Reading

    reading = Reading(known)
    while block := stream.read(BLOCK):
        reading.feed(block)
    return reading


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Open a log; standard input goes through a file, since its lines are looked at twice."""
    try:
        if name == STDIN:
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
                copy.seek(0)
                yield copy
        else:
            with Path(name).open("rb") as stream:
                yield stream
    except OSError as error:
        raise ConfigError(
            f"{name}: cannot read: {error.strerror}", next_step="Give a log that you may read."
        ) from error


def _named(logs: Iterable[str]) -> Iterator[str]:
    """Yield the files meant: folders are searched for logs, in the order of their names."""
    for name in logs:
        path = Path(name)
        if name == STDIN or path.is_file() or path.is_fifo():
            yield name
        elif path.is_dir():
            yield from _in_folder(path)
        else:
            raise ConfigError(
                f"{name}: no such file or folder", next_step="Name a log file, a folder, or -."
            )


def _in_folder(folder: Path) -> Iterator[str]:
    found = [str(p) for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix in LOG_NAMES]
    if not found:
        raise ConfigError(
            f"{folder}: holds no log",
            next_step="Logs are files named *.log, *.txt, *.out or *.err; name others one by one.",
        )
    yield from found
