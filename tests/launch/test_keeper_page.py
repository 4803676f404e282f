"""docs/keeper.md is the contract: what it shows is what a keeper writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attempts import Attempts, wait_until
from sglsweep.keeper_files import Life, RunState, parse_object, parse_state

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "keeper.md").read_text()


@pytest.fixture
def local_attempts(tmp_path: Path) -> Iterator[Attempts]:
    made = Attempts(tmp_path)
    yield made
    made.end_all()


def example(heading: str) -> dict[str, Any]:
    found = re.search(rf"## {re.escape(heading)}\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    shown: dict[str, Any] = json.loads(found.group(1))
    return shown


def test_the_state_on_the_page_has_the_fields_of_a_real_one(local_attempts: Attempts) -> None:
    attempt = local_attempts.start("calm")
    wait_until(lambda: attempt.state.listener is not None)
    real = json.loads((attempt.folder / "state.json").read_text())

    shown = example("state.json")

    assert shown.keys() == real.keys()
    for part in ("life", "listener", "oom_kills"):
        assert shown[part].keys() == real[part].keys()
    assert shown["processes"][0].keys() == real["processes"][0].keys()
    assert set(shown["life"]) == set(Life.__dataclass_fields__)


def test_the_spec_on_the_page_has_the_fields_of_a_real_one(local_attempts: Attempts) -> None:
    attempt = local_attempts.start("wait")

    real = json.loads((attempt.folder / "spec.json").read_text())

    assert example("spec.json").keys() == real.keys()


def test_the_stop_report_on_the_page_names_the_fields_of_a_real_one(
    local_attempts: Attempts,
) -> None:
    attempt = local_attempts.start("exit=0")
    attempt.wait_for_end()

    real = json.loads((attempt.folder / "state.json").read_text())["stop"]

    described = PAGE[PAGE.index("`stop`: `{") :]
    assert [name for name in real if f'"{name}"' not in described] == []


def test_the_state_on_the_page_can_be_read() -> None:
    shown = json.dumps({**example("state.json"), "state": "running"}).encode()

    state = parse_state(parse_object(shown, "the page"))

    assert state.state is RunState.RUNNING
    assert state.listener is not None
    assert state.listener.is_ours
    assert state.processes[0].title == "sglang::scheduler_TP0"
