"""`sglsweep bisect`, over a stand-in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

GRAPHS = ("--set", "attention-backend=triton", "--set", "disable-cuda-graph=false")
SERVES = ("--set", "attention-backend=triton", "--set", "disable-cuda-graph")
NAN = ("--set", "attention-backend=flashinfer", "--set", "disable-cuda-graph=false")


def begin(path: Path, *cells: tuple[str, ...]) -> Folder:
    """Launch single cells by hand."""
    folder = small_sweep(path)
    for cell in cells:
        folder.call("attempt", str(path / "sweep.yaml"), *cell, "--out", str(folder.run))
    return folder


def run_facts(folder: Folder) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder.run / "run.json").read_text())
    return facts


def test_two_attempts_that_differ_in_one_flag_name_it_without_a_launch(tmp_path: Path) -> None:
    folder = begin(tmp_path, GRAPHS, SERVES)
    done = folder.call("bisect", str(folder.run), "1", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["values"] == {"disable-cuda-graph": False}
    assert answer["launched"] == []
    assert (answer["is_proven"], answer["serving"], answer["failing"]) == (True, 2, 1)
    (stored,) = run_facts(folder)["bisections"]
    assert stored["values"] == {"disable-cuda-graph": False}


def test_what_is_not_known_is_launched_until_the_flag_is_named(tmp_path: Path) -> None:
    folder = begin(tmp_path, NAN, SERVES)
    shown = folder.call("bisect", str(folder.run), "1", "--dry-run")
    assert shown.returncode == 1, shown.stderr
    assert "next launch: " in shown.stdout
    assert len(folder.records()) == 2
    done = folder.call("bisect", str(folder.run), "1")
    assert done.returncode == 0, done.stderr
    assert "attention-backend" in done.stdout
    assert "makes the difference" in done.stdout
    launched = [r["attempt"] for n, r in folder.records().items() if n > 2]
    assert launched
    assert all(attempt["why"].startswith("bisect: ") for attempt in launched)
    assert "attention-backend" in (folder.run / "FINDINGS.md").read_text()
    assert folder.processes() == []


def test_without_a_serving_attempt_nothing_is_named_and_nothing_is_launched(
    tmp_path: Path,
) -> None:
    folder = begin(tmp_path, GRAPHS)
    done = folder.call("bisect", str(folder.run), "1")
    assert done.returncode == 1
    assert "no serving attempt to compare with" in done.stdout
    wrong = folder.call("bisect", str(folder.run), "1", "1")
    assert wrong.returncode == 2
    assert "attempt 1 does not serve (oom)" in wrong.stderr
    assert len(folder.records()) == 1
