"""What goes wrong in one thread, and what becomes of the others."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scenes import outcome
from sglsweep import catalogue, side_by_side, sweep
from sglsweep.clock import SystemClock
from sglsweep.errors import ConfigError, HostError, HostUnreachable
from sglsweep.events import Note
from sglsweep.journal import Journal, RunIdentity
from sglsweep.launch import PortTaken
from sglsweep.plan.goal import Goal
from sglsweep.prepare import prepare
from sglsweep.side_by_side import sweep_side_by_side
from sglsweep.sweep import Settings, Sweeping
from sglsweep.verdict import Verdict
from small_sweeps import small_sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.events import Event
    from sglsweep.site import Site

Ending = Verdict | Exception | tuple[Verdict, str]
"""A verdict, with its cause or named like it, or what is raised."""


class Told:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Note):
            self.notes.append(event.text)


@pytest.fixture
def sweeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeping]:
    folder = small_sweep(tmp_path)
    monkeypatch.setenv("HOME", folder.env["HOME"])
    ground = prepare(tmp_path / "sweep.yaml")
    identity = RunIdentity(
        name="small", model="m", launch={}, sweep_text="", host="local", catalogue="1"
    )
    with Journal.create_or_resume(folder.run, identity) as journal:
        yield Sweeping(
            ground=ground,
            journal=journal,
            catalogue=catalogue.load(),
            clock=SystemClock(),
            listener=Told(),
            settings=Settings(strategy="grid", slots=3),
        )


def ends(
    monkeypatch: pytest.MonkeyPatch, endings: Mapping[int, Ending], wait_for: int = 3
) -> list[int]:
    """Let attempts end so, once so many run; return the numbers of those begun."""
    begun: list[int] = []
    together = threading.Barrier(wait_for)

    def run(site: Site, attempt: Attempt, facts: Mapping[str, object]) -> Outcome:
        begun.append(attempt.number)
        site.journal.open(attempt, facts)
        if attempt.number <= wait_for:
            together.wait(20.0)
        ending = endings.get(attempt.number, Verdict.SERVING)
        if isinstance(ending, PortTaken):
            site.journal.withdraw(attempt.number)
        if isinstance(ending, Exception):
            raise ending
        verdict, cause = ending if isinstance(ending, tuple) else (ending, ending.value)
        found = outcome(attempt, verdict, cause)
        site.journal.close(found)
        return found

    for module in (side_by_side, sweep):
        monkeypatch.setattr(module, "run_attempt", run)
    return begun


LINK = HostUnreachable("local: the link broke", next_step="Run it again.")


def test_a_link_lost_in_one_thread_starts_nothing_more_and_sees_the_others_through(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = ends(monkeypatch, {2: LINK})
    with pytest.raises(HostUnreachable, match="the link broke"):
        sweep_side_by_side(sweeping)
    assert sorted(begun) == [1, 2, 3]
    assert [o.attempt.number for o in sweeping.journal.history()] == [1, 3]
    assert [a.number for a in sweeping.journal.open_attempts()] == [2]
    notes = told(sweeping)
    assert any(n.startswith("attempt 2: local: the link broke; nothing more is") for n in notes)


def told(sweeping: Sweeping) -> list[str]:
    assert isinstance(sweeping.listener, Told)
    return sweeping.listener.notes


def test_a_fault_of_our_own_is_raised(sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch, {1: RuntimeError("ours")})
    with pytest.raises(RuntimeError, match="ours"):
        sweep_side_by_side(sweeping)


def test_attempts_lost_at_once_count_as_one_loss(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = dict.fromkeys((1, 2, 3), Verdict.HOST_LOST)
    begun = ends(monkeypatch, lost)
    assert "every cell" in sweep_side_by_side(sweeping)
    assert len(begun) == 7


def test_three_losses_in_a_row_end_it(sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch, dict.fromkeys(range(1, 40), Verdict.HOST_LOST), wait_for=1)
    with pytest.raises(HostError, match="lost 3 attempts in a row"):
        sweep_side_by_side(sweeping)


@pytest.mark.parametrize("slots", [1, 3])
def test_cells_that_come_to_no_end_are_not_launched_for_ever(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    late = dict.fromkeys(range(1, 40), (Verdict.INTERRUPTED, "deadline"))
    ends(monkeypatch, late, wait_for=1)
    sweeping = replace(sweeping, settings=replace(sweeping.settings, slots=slots))
    with pytest.raises(HostError, match=r"3 attempts in a row came to no answer before"):
        sweep_side_by_side(sweeping)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_card_that_somebody_else_holds_ends_it_before_the_budget_is_spent(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    held = dict.fromkeys(range(1, 40), (Verdict.OOM, "oom-gpu-held"))
    begun = ends(monkeypatch, held, wait_for=1)
    sweeping = replace(sweeping, settings=replace(sweeping.settings, slots=slots))
    with pytest.raises(HostError, match=r"3 attempts in a row.*oom-gpu-held"):
        sweep_side_by_side(sweeping)
    assert len(begun) <= 3 * slots


def test_a_port_taken_later_costs_its_slot(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = PortTaken("local", 31001, {"pid": 4121, "title": "python -m http.server"})
    begun = ends(monkeypatch, {2: taken})
    assert "every cell" in sweep_side_by_side(sweeping)
    assert len(begun) == 5
    assert {o.attempt.slot for o in sweeping.journal.history()} <= {0, 2}
    assert any("slot 1 stays empty, 2 left" in note for note in told(sweeping))


def test_what_is_not_needed_any_more_is_told_so(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = replace(sweeping.ground.sweep, goal=(Goal.FIRST_SERVING,))
    sweeping = replace(sweeping, ground=replace(sweeping.ground, sweep=sweep))
    said: dict[int, str] = {}
    is_over = threading.Event()
    together = threading.Barrier(3)

    def run(site: Site, attempt: Attempt, facts: Mapping[str, object]) -> Outcome:
        site.journal.open(attempt, facts)
        together.wait(20.0)
        verdict = Verdict.SERVING
        if attempt.number != 2:
            verdict = Verdict.INTERRUPTED
            until = 400
            while not site.enough() and until:
                is_over.wait(0.05)
                until -= 1
        said[attempt.number] = site.enough()
        found = outcome(attempt, verdict, None)
        site.journal.close(found)
        return found

    monkeypatch.setattr(side_by_side, "run_attempt", run)
    assert sweep_side_by_side(sweeping) == "attempt 2 serves"
    cut = "not needed any more: attempt 2 serves"
    assert said == {1: cut, 2: "", 3: cut}


def test_slots_whose_ports_do_not_exist_are_refused_before_anything_runs(
    sweeping: Sweeping,
) -> None:
    ground = sweeping.ground
    high = replace(ground, sweep=replace(ground.sweep, port=65_534))
    many = replace(sweeping, ground=high, settings=Settings(slots=3))
    with pytest.raises(ConfigError, match="3 slots from port 65534 on end above 65535"):
        sweep_side_by_side(many)
    assert not sweeping.journal.history()
