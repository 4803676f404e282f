"""`sglsweep bisect`, over a stand-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from cli_more.made import make_run, outcome
from sglsweep import bisection, catalogue
from sglsweep.bisection import Search, case_of, run_bisection
from sglsweep.cli.wiring import identity_of
from sglsweep.clock import SystemClock
from sglsweep.config.sweep import load_sweep
from sglsweep.errors import HostError
from sglsweep.expand import expand
from sglsweep.journal import Journal
from sglsweep.matrix import Cell, Value
from sglsweep.plan.bisect import Culprit, next_step
from sglsweep.prepare import prepare
from sglsweep.sweep import Settings, Sweeping
from sglsweep.verdict import Phase, Verdict
from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Outcome
    from sglsweep.events import Event

Values = Mapping[str, Value]

GRAPHS: Values = {"attention-backend": "triton", "disable-cuda-graph": False}
SERVES: Values = {"attention-backend": "triton", "disable-cuda-graph": True}


def begin(path: Path, *outcomes: Outcome) -> Folder:
    """Return a sweep whose run holds these attempts."""
    folder = small_sweep(path)
    make_run(path, *outcomes, sweep=path / "sweep.yaml")
    return folder


def oom(number: int, more: Values | None = None) -> Outcome:
    return outcome(
        number,
        Verdict.OOM,
        phase=Phase.GRAPH_CAPTURE,
        cause="oom-graph-capture",
        cell=Cell({**GRAPHS, **(more or {})}),
        argv=("one",),
    )


def serves(number: int) -> Outcome:
    return outcome(number, cell=Cell(SERVES), argv=("two",))


def run_facts(folder: Folder) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder.run / "run.json").read_text())
    return facts


def test_two_attempts_that_differ_in_one_flag_name_it_without_a_launch(tmp_path: Path) -> None:
    folder = begin(tmp_path, oom(1), serves(2))
    done = folder.call("bisect", str(folder.run), "1", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["values"] == {"disable-cuda-graph": False}
    assert answer["launched"] == []
    assert (answer["is_proven"], answer["serving"], answer["failing"]) == (True, 2, 1)
    (stored,) = run_facts(folder)["bisections"]
    assert stored["values"] == {"disable-cuda-graph": False}


def test_what_is_not_known_is_launched_until_the_flag_is_named(tmp_path: Path) -> None:
    folder = begin(tmp_path, oom(1, {"max-running-requests": 8}), serves(2))
    shown = folder.call("bisect", str(folder.run), "1", "--dry-run")
    assert shown.returncode == 1, shown.stderr
    assert "next launch: " in shown.stdout
    assert len(folder.records()) == 2
    done = folder.call("bisect", str(folder.run), "1")
    assert done.returncode == 0, done.stderr
    assert "disable-cuda-graph=false makes the difference: 2 serves, 3 fails" in done.stdout
    launched = [r["attempt"] for n, r in folder.records().items() if n > 2]
    assert [a["cell"].get("max-running-requests") for a in launched] == [None]
    assert launched[0]["why"].startswith("bisect: attempt 2, which serves, with")
    assert "bisect: attempt 2" in (folder.run / "FINDINGS.md").read_text()
    assert folder.processes() == []


def test_without_a_serving_attempt_nothing_is_named_and_nothing_is_launched(
    tmp_path: Path,
) -> None:
    folder = begin(tmp_path, oom(1))
    done = folder.call("bisect", str(folder.run), "1")
    assert done.returncode == 1
    assert "no serving attempt to compare with" in done.stdout
    wrong = folder.call("bisect", str(folder.run), "1", "1")
    assert wrong.returncode == 2
    assert "attempt 1 does not serve (oom)" in wrong.stderr
    assert len(folder.records()) == 1


def test_a_third_value_that_fails_alike_clears_no_flag(tmp_path: Path) -> None:
    """A flag that is not passed can resolve to the very value that fails."""
    begin(tmp_path, oom(1), serves(2), oom(3, {"disable-cuda-graph": None}))
    sweep = load_sweep(tmp_path / "sweep.yaml")
    search = Search(sweep=sweep, expanded=expand(sweep), bad=1, tables={})
    case = case_of(search, Journal.read(tmp_path / "run").history())
    assert case is not None
    step = next_step(case)
    assert isinstance(step, Culprit)
    assert step.values == {"disable-cuda-graph": False}


def test_launches_that_others_on_the_host_end_are_not_repeated_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(tmp_path, oom(1, {"max-running-requests": 8}), serves(2))
    monkeypatch.setenv("HOME", folder.env["HOME"])
    ground = prepare(tmp_path / "sweep.yaml")
    begun: list[int] = []

    def launch(sweeping: Sweeping, cell: Cell, **_: object) -> Outcome:
        number = sweeping.journal.take_number()
        begun.append(number)
        assert len(begun) < 10
        held = outcome(number, Verdict.OOM, cause="oom-gpu-held", cell=cell)
        sweeping.journal.open(held.attempt, {})
        sweeping.journal.close(held)
        return held

    monkeypatch.setattr(bisection, "launch_cell", launch)
    with Journal.create_or_resume(folder.run, identity_of(ground.sweep)) as journal:
        sweeping = Sweeping(
            ground=ground,
            journal=journal,
            catalogue=catalogue.load(),
            clock=SystemClock(),
            listener=Unheard(),
            settings=Settings(),
        )
        search = Search(sweep=ground.sweep, expanded=ground.expanded, bad=1, tables={})
        with pytest.raises(HostError, match=r"3 attempts in a row.*oom-gpu-held"):
            run_bisection(sweeping, search)
    assert begun == [3, 4, 5]


class Unheard:
    """Listens to nothing."""

    def tell(self, event: Event) -> None:
        del event
