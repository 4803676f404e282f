"""`clean` ends what nobody watches any more, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from attempts import Attempts, Started, end, is_alive, wait_until
from sglsweep.clean import Cleaning, Ground, Wish, clean, leftovers
from sglsweep.hosts.local import LocalHost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[Attempts]:
    made = Attempts(tmp_path / "work" / "runs")
    yield made
    made.end_all()


def cleaned(tmp_path: Path, wish: Wish) -> Cleaning:
    """Clean this machine, but of a test's own attempts alone: others run at the same time."""
    assert wish.only
    host = LocalHost()
    user = host.run(["id", "-un"]).text.strip()
    ground = Ground(host, sys.executable, PurePosixPath(tmp_path / "work"), user)
    return clean(ground, wish)


def served(attempts: Attempts, marker: str = "") -> Started:
    """Return an attempt that stands."""
    started = attempts.start(marker=marker or f"test-{uuid.uuid4()}")
    started.wait_for("fired up")
    return started


def orphaned(attempts: Attempts, marker: str = "") -> Started:
    """Return an attempt whose keeper was killed: its server goes on without anybody."""
    started = served(attempts, marker)
    keeper = started.state.keeper_pid
    end(keeper)
    wait_until(lambda: not is_alive(keeper))
    return started


def about(said: Cleaning, started: Started) -> tuple[list[str], list[str]]:
    """Return the markers of a test's attempt that were ended and spared."""
    ended = [one.what.marker for one in said.ended if one.what.marker == started.marker]
    spared = [one.what.marker for one in said.spared if one.what.marker == started.marker]
    return ended, spared


def test_a_server_without_a_keeper_is_ended_and_one_with_a_keeper_is_not(
    tmp_path: Path, attempts: Attempts
) -> None:
    mine = f"test-{uuid.uuid4()}"
    watched = served(attempts, f"{mine}-1")
    orphan = orphaned(attempts, f"{mine}-2")
    server = orphan.launched.check().server_pid
    assert about(cleaned(tmp_path, Wish(is_dry=True, only=mine)), orphan)[0]
    assert is_alive(server), "a dry run ends nothing"
    said = cleaned(tmp_path, Wish(only=mine))
    assert about(said, orphan) == ([orphan.marker], [])
    assert about(said, watched) == ([], [watched.marker])
    assert not is_alive(server)
    assert not said.survivors
    reason = next(one for one in said.spared if one.what.marker == watched.marker)
    assert "ends by itself in" in reason.because
    assert "--running" in reason.next_step
    assert not watched.state.has_ended


def test_a_running_attempt_is_ended_when_that_is_asked(tmp_path: Path, attempts: Attempts) -> None:
    started = served(attempts)
    said = cleaned(tmp_path, Wish(running=True, only=started.marker))
    assert about(said, started) == ([started.marker], [])
    assert started.wait_for_end().end_reason == "stopped"


def test_a_server_whose_folder_is_gone_is_found_by_its_marker(
    tmp_path: Path, attempts: Attempts
) -> None:
    orphan = orphaned(attempts)
    server = orphan.launched.check().server_pid
    shutil.rmtree(orphan.folder)
    said = cleaned(tmp_path, Wish(only=orphan.marker))
    assert about(said, orphan) == ([orphan.marker], [])
    assert not is_alive(server)


def test_an_attempt_of_another_workdir_is_spared_while_its_keeper_lives(tmp_path: Path) -> None:
    elsewhere = Attempts(tmp_path / "elsewhere")
    try:
        started = served(elsewhere)
        said = cleaned(tmp_path, Wish(only=started.marker))
        assert about(said, started) == ([], [started.marker])
        assert not started.state.has_ended
    finally:
        elsewhere.end_all()


def test_another_user_s_process_is_never_ended() -> None:
    process = {"pid": 7, "title": "x", "marker": "m", "directory": None, "user": "else"}
    found = list(leftovers({"processes": [process]}, "me"))
    assert [one.user for one in found] == ["else"]


def test_old_folders_go_only_when_asked_and_only_if_nothing_lives_there(
    tmp_path: Path, attempts: Attempts
) -> None:
    mine = f"test-{uuid.uuid4()}"
    old, young, running = (served(attempts, f"{mine}-{n}") for n in (1, 2, 3))
    for started in (old, young):
        started.launched.stop(is_ready=False)
    for started in (old, running):
        for name in ("state.json", "log", "spec.json"):
            os.utime(started.folder / name, (1.0, 1.0))
    assert cleaned(tmp_path, Wish(only=mine)).removed == ()
    other = cleaned(tmp_path, Wish(is_dry=True, only=young.marker, older_than_s=86400.0))
    assert other.removed == ()
    dry = cleaned(tmp_path, Wish(is_dry=True, only=mine, older_than_s=86400.0))
    assert [(r.directory, r.is_gone) for r in dry.removed] == [(str(old.folder), False)]
    said = cleaned(tmp_path, Wish(only=mine, older_than_s=86400.0))
    assert [(r.directory, r.is_gone) for r in said.removed] == [(str(old.folder), True)]
    assert young.folder.exists()
    assert running.folder.exists()


def test_the_command_prints_one_document(tmp_path: Path, attempts: Attempts) -> None:
    orphan = orphaned(attempts)
    (tmp_path / "hosts.yaml").write_text(f"local: {{workdir: {tmp_path}/work}}\n")
    done = subprocess.run(
        [sys.executable, "-m", "sglsweep", "clean", "local", "--json", "--dry-run"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["schema"], said["dry_run"], said["host"]) == (1, True, "local")
    mine = [one for one in said["ended"] if one["marker"] == orphan.marker]
    assert mine[0]["directory"] == str(orphan.folder)
    assert mine[0]["processes"]
