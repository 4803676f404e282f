"""A sweep on a real terminal, and one that is looked at from another."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from typing import TYPE_CHECKING

from attempts import wait_until
from sglsweep.journal import Journal
from small_sweeps import VERDICTS, Folder, hear_ctrl_c, small_sweep, wait_until_gone

if TYPE_CHECKING:
    from pathlib import Path

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A command on a terminal of its own; everything it writes is kept."""

    def __init__(self, folder: Folder, words: tuple[str, ...], **env: str) -> None:
        self._master, slave = pty.openpty()
        self.resize(24, 80)
        self.process = subprocess.Popen(
            folder.command(*words),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it sets a handler, no more
            env={**folder.env, "TERM": "xterm-256color", **env},
        )
        os.close(slave)
        self.said = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self) -> int:
        status = self.process.wait(120)
        self._reader.join(20)
        os.close(self._master)
        return status

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self._master, 1 << 16):
                self.said += piece


def test_a_terminal_gets_its_screen_back_and_the_verdicts_in_its_history(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    terminal = Terminal(folder, folder.sweep_words())
    wait_until(lambda: b"attempt 2 running" in terminal.said, 60)
    terminal.resize(10, 30)
    assert terminal.wait() == 0
    assert folder.verdicts() == VERDICTS
    assert (terminal.said.count(ENTER), terminal.said.count(LEAVE)) == (1, 1)
    painted, _, printed = terminal.said.partition(LEAVE)
    assert b"if it fails: " in painted
    for verdict in (b"oom", b"nan-in-probs", b"serving"):
        assert verdict in printed
    assert b"Traceback" not in terminal.said


def test_ctrl_c_leaves_the_screen_and_a_closed_record(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    terminal = Terminal(folder, folder.sweep_words(), NO_COLOR="1")
    wait_until(lambda: b"attempt 1 running" in terminal.said, 60)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.wait() == 130
    painted, _, printed = terminal.said.partition(LEAVE)
    assert b"\x1b[3" not in painted, "NO_COLOR asks for none"
    assert b"interrupted; the same command goes on" in printed
    assert folder.records()[1]["state"] == "closed"
    wait_until_gone(folder)


def heard(folder: Folder, said: str) -> list[int]:
    """Return whose verdicts an onlooker told: of all whose beginning it told."""
    found = []
    for outcome in Journal.read(folder.run).history():
        number = outcome.attempt.number
        if f"attempt {number} started" in said:
            assert f"attempt {number} {outcome.verdict}" in said
            found.append(number)
    return found


def test_several_attempts_are_painted_side_by_side(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path, hosts="local: {slots: 3}\n")
    terminal = Terminal(folder, folder.sweep_words())
    wait_until(lambda: b"3 attempts side by side" in terminal.said, 60)
    terminal.resize(8, 40)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.wait() == 130
    assert all(record["state"] == "closed" for record in folder.records().values())
    assert b"Traceback" not in terminal.said
    wait_until_gone(folder)


def test_an_onlooker_of_several_hears_each_by_its_number(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path, hosts="local: {slots: 3}\n")
    sweep = folder.begin()
    folder.wait_for("attempt 3 started", process=sweep)
    looked = folder.call("watch", str(folder.run))
    assert sweep.wait(60) == 0
    assert re.search(r"^ +\d \| ", looked.stderr, re.MULTILINE)
    assert heard(folder, looked.stderr)


def test_an_onlooker_hears_the_same_verdicts_in_plain_lines(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    sweep = folder.begin()
    folder.wait_for("attempt 1 started", process=sweep)
    looked = folder.call("watch", str(folder.run))
    assert sweep.wait(60) == 0
    assert looked.returncode == 0
    assert "\x1b" not in looked.stdout + looked.stderr
    assert heard(folder, looked.stderr)
    assert looked.stdout.startswith("finished: ")
    again = folder.call("watch", str(folder.run))
    assert (again.stdout, again.stderr) == (looked.stdout, "")
