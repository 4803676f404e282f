"""`sglsweep init`: a commented SWEEP.yaml to begin with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sglsweep.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from sglsweep.flags import ParsedCommand


def init(
    file: Path = typer.Argument(Path("SWEEP.yaml"), metavar="[SWEEP.yaml]"),
    from_command: str | None = typer.Option(
        None, "--from-command", metavar="COMMAND", help="A launch command that works today."
    ),
    from_script: Path | None = typer.Option(
        None, "--from-script", metavar="FILE", help="A shell script that holds one."
    ),
    from_log: Path | None = typer.Option(
        None, "--from-log", metavar="FILE", help="The log of a server; its server_args are read."
    ),
) -> None:
    """Write a commented SWEEP.yaml: from nothing, or from what works today.

    Example: sglsweep init --from-command "python3 -m sglang.launch_server --model-path M --tp 8"
    """
    from sglsweep.config.template import template

    sources = [s for s in (from_command, from_script, from_log) if s is not None]
    if len(sources) > 1:
        raise ConfigError(
            "more than one --from option is given", next_step="Give one of them, or none."
        )
    parsed = _parsed(from_command, from_script, from_log)
    _write(file, template(_name(file), parsed))
    typer.echo(f"wrote {file}")
    sys.stderr.write(f" next: sglsweep plan {file}\n")


def _parsed(command: str | None, script: Path | None, log: Path | None) -> ParsedCommand | None:
    from sglsweep.flags import parse_command, parse_log

    if command is not None:
        return parse_command(command, where="--from-command")
    if script is not None:
        return parse_command(_text(script), where=str(script))
    if log is not None:
        return parse_log(_text(log), where=str(log))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{path}: {reason}", next_step="Give the path of a file.") from error


def _name(file: Path) -> str:
    """Return a name for the sweep: its file's, or its folder's where that says nothing."""
    stem = file.absolute().parent.name if file.stem.lower() == "sweep" else file.stem
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem)
    return plain.lstrip("._-") or "sweep"


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError as error:
        raise ConfigError(
            f"{file}: exists already, and is left as it is",
            next_step="Give another name: `sglsweep init OTHER.yaml`.",
        ) from error
    except OSError as error:
        raise StorageError(
            f"{file}: {(error.strerror or str(error)).lower()}",
            next_step="Give a path that can be written to.",
        ) from error
