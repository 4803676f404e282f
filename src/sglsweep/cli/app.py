"""The command line: one function per command, one place that prints refusals."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterable

import typer
from typer.core import TyperGroup

from sglsweep import __version__
from sglsweep.errors import SglsweepError


class _Group(TyperGroup):
    """Prints a refusal as two lines, what and the way out, and exits with its code."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # click's own type
        try:
            return super().invoke(ctx)
        except SglsweepError as error:
            print_refusal(error)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(130) from interrupt


def print_refusal(error: SglsweepError) -> None:
    """Write the two lines of a refusal to standard error."""
    sys.stderr.write(f"error: {error.message}\n next: {error.next_step}\n")


app = typer.Typer(
    cls=_Group,
    name="sglsweep",
    help="Find out which SGLang launch flags work for a model on a GPU host, "
    "and why the others do not.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"sglsweep {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Accept the options that stand before a command."""


COMMANDS = {
    "sweep": "sweep",
    "plan": "plan",
    "resolve": "resolve",
    "attempt": "attempt",
    "relaunch": "attempt",
    "bisect": "bisect",
    "pull": "pull",
    "export": "export",
    "changed": "changed",
    "triage": "triage",
    "retriage": "retriage",
    "report": "report",
    "status": "report",
    "watch": "watch",
    "doctor": "doctor",
    "clean": "clean",
    "diff": "report",
    "signatures": "signatures",
    "simulate": "simulate",
    "init": "init",
}
"""Command -> module of `sglsweep.cli` that holds a function of that name."""


def program(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with the commands named; only their modules are imported."""
    known = {info.name for info in app.registered_commands}
    for name in names:
        if name not in known:
            module = importlib.import_module(f"sglsweep.cli.{COMMANDS[name]}")
            app.command(name)(getattr(module, name))
    return app


def main() -> None:
    """Entry point of the `sglsweep` program.

    A command that is named first is imported alone: `triage` must not wait for the planner.
    """
    gc.set_threshold(50_000)  # imports leave no garbage; looking for it is a fifth of a start
    asked = [word for word in sys.argv[1:2] if word in COMMANDS]
    program(asked or COMMANDS)()
