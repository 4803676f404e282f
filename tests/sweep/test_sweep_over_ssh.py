from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

import pytest

from small_sweeps import VERDICTS, Folder, small_sweep, wait_until_gone
from sshd import Gate, Sshd, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def over_ssh(path: Path, sshd: Sshd, *, port: int, slots: int = 1) -> Folder:
    """Write a small sweep whose host is the test's own server, reached at `port`."""
    hosts = sshd.hosts_yaml(path, port=port).rstrip().removesuffix("}") + f", slots: {slots}}}\n"
    return small_sweep(path, host="gpu-01", hosts=hosts)


def test_the_same_sweep_over_ssh_comes_to_the_same_verdicts(tmp_path: Path, sshd: Sshd) -> None:
    folder = over_ssh(tmp_path, sshd, port=sshd.port)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert folder.verdicts() == VERDICTS
    wait_until_gone(folder)


def test_attempts_side_by_side_share_one_link(tmp_path: Path, sshd: Sshd) -> None:
    folder = over_ssh(tmp_path, sshd, port=sshd.port, slots=4)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert folder.verdicts() == VERDICTS
    assert {r["attempt"]["slot"] for r in folder.records().values()} == {0, 1, 2, 3}
    wait_until_gone(folder)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_link_that_is_cut_and_comes_back_changes_no_verdict(
    tmp_path: Path, sshd: Sshd, slots: int
) -> None:
    gate = Gate(sshd.port)
    try:
        folder = over_ssh(tmp_path, sshd, port=gate.port, slots=slots)
        process = folder.begin()
        folder.wait_for("attempt 1 started", process=process)
        # In the middle of whatever it does, again and again while it sweeps.
        while process.poll() is None:
            gate.cut()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3.0)
        assert process.returncode == 0, folder.said
    finally:
        gate.close()
    assert folder.verdicts() == VERDICTS
    wait_until_gone(folder)


def test_an_unknown_host_key_is_refused_with_the_command_that_adds_it(
    tmp_path: Path, sshd: Sshd
) -> None:
    folder = over_ssh(tmp_path, sshd, port=sshd.port)
    (tmp_path / "home" / ".ssh" / "known_hosts").unlink()
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 3
    assert "ssh-keyscan" in done.stderr
    assert not folder.run.exists()
