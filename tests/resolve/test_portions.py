"""A matrix that is too large to be asked about at once is swept a portion after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep import catalogue, resolve
from sglsweep.clock import SystemClock
from sglsweep.errors import HostError
from sglsweep.events import Note
from sglsweep.journal import Journal, RunIdentity
from sglsweep.plan.ordered import ALL_TRIED
from sglsweep.prepare import prepare
from sglsweep.resolve import unasked
from sglsweep.sweep import Settings, Sweeping, ask_first, sweep_in_portions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglsweep.events import Event
    from sglsweep.prepare import Ground

WORLD = """
axes:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [fp8_e4m3, bf16]
  max-running-requests: [1, 2, 3, 4]
resolve:
  - {when: {kv-cache-dtype: bf16}, set: {kv-cache-dtype: fp8_e4m3}}
rules: []
"""
SWEEP = """
model: made/up
builds: {stand-in: {rehearsal: world.yaml}}
matrix:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [fp8_e4m3, bf16]
  max-running-requests: [1, 2, 3, 4]
include:
  - {attention-backend: triton, kv-cache-dtype: bf16, max-running-requests: 1}
"""


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A matrix of 24 cells, of which ten can be asked about at once."""
    monkeypatch.setattr(resolve, "MOST_CELLS", 10)
    (tmp_path / "world.yaml").write_text(WORLD)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return prepare(tmp_path / "sweep.yaml")


class Heard(list[str]):
    """Keeps what a sweep tells."""

    def tell(self, event: Event) -> None:
        if isinstance(event, Note):
            self.append(event.text)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def sweeping(ground: Ground, heard: Heard, tmp_path: Path) -> Iterator[Sweeping]:
    identity = RunIdentity(
        name="n", model="m", launch={}, sweep_text="", host="local", catalogue=""
    )
    with Journal.create_or_resume(tmp_path / "run", identity) as journal:
        yield Sweeping(
            ground=ask_first(ground),
            journal=journal,
            catalogue=catalogue.load(),
            clock=SystemClock(),
            listener=heard,
            settings=Settings(),
        )


def test_a_portion_is_drawn_from_the_whole_matrix_and_the_rest_is_said_to_follow(
    ground: Ground,
) -> None:
    asked = ask_first(ground)
    assert asked.settled is not None
    # The included cell is asked about as well, whatever was drawn.
    assert {
        c.get("attention-backend") for c in (*asked.expanded.includes, *asked.expanded.cells)
    } == {
        "flashinfer",
        "triton",
        "fa3",
    }
    assert asked.settled.asked == 10
    assert unasked(asked) == 14
    assert asked.expanded.notes[-1].text.startswith(
        "24 cells are too many to ask SGLang about each: 10"
    )
    again = ask_first(ground)
    assert [c.key for c in again.expanded.cells] == [c.key for c in asked.expanded.cells]


def test_the_next_portion_keeps_the_first(ground: Ground) -> None:
    first, second, whole = (ask_first(ground, portions=n) for n in (1, 2, 3))
    assert second.settled is not None
    assert first.settled is not None
    assert set(first.settled.answers) < set(second.settled.answers)
    assert (unasked(second), unasked(whole)) == (4, 0)
    # Both KV types come to one: 24 cells are 12 configurations.
    assert len({c.key for c in (*whole.expanded.includes, *whole.expanded.cells)}) == 12


def test_a_sweep_goes_on_with_the_next_portion_when_nothing_is_left(
    sweeping: Sweeping, heard: Heard
) -> None:
    left: list[int] = []

    def sweep(now: Sweeping) -> str:
        left.append(unasked(now.ground))
        return ALL_TRIED

    assert sweep_in_portions(sweeping, sweep) == ALL_TRIED
    assert left == [14, 4, 0]
    assert heard == [
        "asking SGLang about further cells of the matrix: 14 are left",
        "asking SGLang about further cells of the matrix: 4 are left",
    ]


def test_a_sweep_that_has_what_it_wants_asks_no_further(sweeping: Sweeping, heard: Heard) -> None:
    assert sweep_in_portions(sweeping, lambda _: "attempt 3 serves") == "attempt 3 serves"
    assert heard == []


def test_a_host_that_answers_no_more_is_not_asked_for_ever(
    sweeping: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise HostError("local: no answer", next_step="Look after it.")

    monkeypatch.setattr(resolve, "_answered", refuse)
    swept: list[str] = []

    def sweep(_: Sweeping) -> str:
        assert not swept, "swept again though nothing new is known"
        swept.append(ALL_TRIED)
        return ALL_TRIED

    assert sweep_in_portions(sweeping, sweep) == (
        f"{ALL_TRIED}; SGLang could not be asked about the 14 cells that are left"
    )
