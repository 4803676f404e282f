"""Case files of the matrix: a SWEEP.yaml, a line of dashes, and what it must come to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flagtables import flag_table
from sglsweep.config.sweep import load_sweep
from sglsweep.errors import ConfigError
from sglsweep.expand import Expanded, expand
from sglsweep.flags import Target, launch_argv

if TYPE_CHECKING:
    from sglsweep.config.sweep import Sweep
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Cell

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Case:
    """One case, with its sweep written where lines count as in the file."""

    path: Path
    expect: dict[str, Any]
    tables: dict[str, FlagTable]


def read_case(case: Path, folder: Path) -> Case:
    """Write the case's sweep into a folder of its own and read what is expected of it."""
    sweep, _, expect = case.read_text("utf-8").partition("\n---\n")
    path = folder / "SWEEP.yaml"
    path.write_text(sweep + "\n")
    wanted: dict[str, Any] = yaml.safe_load(expect)
    builds: dict[str, str] = wanted.pop("tables", {})
    return Case(path, wanted, {name: flag_table(version) for name, version in builds.items()})


def outcome(case: Case) -> dict[str, Any]:
    """Return what the case comes to, limited to the keys that it expects."""
    try:
        sweep = load_sweep(case.path)
        expanded = expand(sweep, case.tables)
    except ConfigError as error:
        message = error.message.replace(f"{case.path}:", "FILE:")
        return {"error": message.split("\n"), "next": error.next_step}
    found = _facts(case, sweep, expanded)
    return {key: found[key] for key in case.expect}


def _facts(case: Case, sweep: Sweep, expanded: Expanded) -> dict[str, Any]:
    def where(text: str) -> str:
        return text.replace(f"{case.path}:", "FILE:")

    return {
        "count": len(expanded.cells),
        "cells": [dict(cell.values) for cell in expanded.cells],
        "includes": [dict(cell.values) for cell in expanded.includes],
        "excluded": dict(expanded.excluded_counts),
        "excluded_where": sorted({where(item.where) for item in expanded.excluded}),
        "notes": [f"{where(note.where)}: {note.text}" for note in expanded.notes],
        "launches": [_launch(case, sweep, cell) for cell in expanded.cells],
        "include_launches": [_launch(case, sweep, cell) for cell in expanded.includes],
        "auto": [expanded.auto.start, expanded.auto.max] if expanded.auto else None,
        "distinct_launches": len({_key(case, sweep, cell) for cell in expanded.cells}),
    }


def _launch(case: Case, sweep: Sweep, cell: Cell) -> str:
    """Spell a launch as one line: environment, then flags without host and port."""
    build = sweep.build_of(cell).name
    target = Target(build=build, model=sweep.model_of(cell).target, port=1)
    command = launch_argv(sweep.launch, cell, target, case.tables.get(build))
    env = [f"{name}={value}" for name, value in command.env.items()]
    return " ".join([*env, *command.argv[2:-4]])


def _key(case: Case, sweep: Sweep, cell: Cell) -> str:
    build = sweep.build_of(cell).name
    target = Target(build=build, model=sweep.model_of(cell).target, port=1)
    return launch_argv(sweep.launch, cell, target, case.tables.get(build)).launch_key
