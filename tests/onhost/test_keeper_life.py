"""Life signs, the listener, and a disk that takes no more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from attempts import Attempts, end, is_alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attempts import Started


def test_cpu_time_of_the_tree_grows_with_its_work(attempts: Attempts) -> None:
    attempt = attempts.start("busy=0.6", "say=done", "wait")
    attempt.wait_for("done")

    wait_until(lambda: attempt.state.life.cpu_s >= 0.6)


def test_work_of_ended_processes_stays_counted(attempts: Attempts) -> None:
    script = (
        "import subprocess, sys, time; "
        "subprocess.run([sys.executable, '-c', "
        "'import time; t = time.time() + 2.5\\nwhile time.time() < t: pass']); "
        "print('child ended', flush=True); time.sleep(60)"
    )
    attempt = attempts.start(argv=(sys.executable, "-c", script))
    attempt.wait_for("child ended")
    spent = attempt.state.life.cpu_s
    assert spent > 0.2
    beat = attempt.state.beat_at

    wait_until(lambda: attempt.state.beat_at > beat + 1.5)

    assert attempt.state.life.cpu_s >= spent


def test_reading_is_a_life_sign(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(bytes(3_000_000))
    script = f"open({str(tmp_path / 'weights')!r}, 'rb').read(); import time; time.sleep(60)"
    attempt = attempts.start(argv=(sys.executable, "-c", script))

    wait_until(lambda: attempt.state.life.read_chars >= 3_000_000)
    assert attempt.state.life.page_cache_bytes > 0


def test_compilers_in_the_tree_are_named(attempts: Attempts, tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    shutil.copy("/bin/sleep", nvcc)
    attempt = attempts.start(f"run={nvcc}")

    wait_until(lambda: attempt.state.life.compilers == ("nvcc",))


def test_kills_by_the_kernel_are_counted_from_the_start(attempts: Attempts) -> None:
    attempt = attempts.start("wait")

    assert attempt.state.oom_kills_host == 0


def test_the_listener_is_the_one_that_loopback_reaches(attempts: Attempts) -> None:
    attempt = attempts.start("rank", "calm")

    wait_until(lambda: attempt.state.listener is not None)

    listener = attempt.state.listener
    assert listener is not None
    assert (listener.is_ours, listener.address) == (True, "127.0.0.1")


def test_a_listening_child_is_ours_as_well_as_its_parent(attempts: Attempts) -> None:
    spec = attempts.spec()
    script = f"import subprocess; subprocess.run({list(spec.argv)!r})"
    attempt = attempts.start(port=spec.port, argv=(sys.executable, "-c", script))

    wait_until(lambda: attempt.state.listener is not None)

    listener = attempt.state.listener
    assert listener is not None
    assert listener.is_ours
    assert listener.pid != attempt.state.server_pid


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def on_full_disk(small_disk: Path) -> Iterator[Started]:
    attempts = Attempts(small_disk)
    attempt = attempts.start("calm")
    attempt.wait_for("ready to roll")
    wait_until(lambda: attempt.state.listener is not None)
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass
    yield attempt
    attempts.end_all()


def test_a_full_disk_does_not_silence_the_keeper(on_full_disk: Started) -> None:
    beat = on_full_disk.state.beat_at

    wait_until(lambda: on_full_disk.state.beat_at > beat + 1.5)

    assert "No space left" in str(on_full_disk.state.trouble)


def test_an_attempt_on_a_full_disk_leaves_its_exit_status(on_full_disk: Started) -> None:
    end(on_full_disk.state.server_pid)

    assert on_full_disk.wait_for_end().exit_status == -9


def test_an_attempt_on_a_full_disk_can_be_stopped(on_full_disk: Started) -> None:
    state = on_full_disk.state

    on_full_disk.launched.stop(is_ready=True)

    assert not is_alive(state.server_pid)
    assert on_full_disk.wait_for_end().exit_status == 0
