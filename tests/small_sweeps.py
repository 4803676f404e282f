"""Small sweeps over a stand-in, run through the tool's own command line."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sshd import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

WORLD = """
axes: {attention-backend: [flashinfer, triton], disable-cuda-graph: [false, true]}
rules:
  - when: {attention-backend: triton, disable-cuda-graph: false}
    verdict: oom
    cause: oom-graph-capture
    phase: graph-capture
    blames: [disable-cuda-graph]
  - when: {attention-backend: flashinfer}
    verdict: nan-in-probs
    cause: nan-probability-tensor
    phase: decode
    blames: [attention-backend]
rehearsal: {ranks: 2, time-scale: 0.02}
"""
SWEEP = """
name: small
model: made/up
host: HOST
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
matrix:
  attention-backend: [flashinfer, triton]
  disable-cuda-graph: [false, true]
goal: map
"""
VERDICTS = {
    ("flashinfer", False): "nan-in-probs",
    ("flashinfer", True): "nan-in-probs",
    ("triton", False): "oom",
    ("triton", True): "serving",
}
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a small sweep in it, and what became of it."""

    path: Path
    port: int
    env: Mapping[str, str]

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.path / "run"

    def command(self, *words: str) -> list[str]:
        """Return a command line of the tool."""
        return [sys.executable, "-m", "sglsweep", *words]

    def sweep_words(self) -> tuple[str, ...]:
        """Return the words that sweep it."""
        return ("sweep", str(self.path / "sweep.yaml"), "--out", str(self.run))

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the tool to its end."""
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env=self.env,
            check=False,
        )

    def begin(self) -> subprocess.Popen[str]:
        """Start a sweep and come back at once."""
        with (self.path / "stderr").open("w") as said:
            return subprocess.Popen(
                self.command(*self.sweep_words()),
                stdout=subprocess.DEVNULL,
                stderr=said,
                text=True,
                env=self.env,
                preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it sets a handler, no more
            )

    def records(self) -> dict[int, Json]:
        """Return number -> attempt.json."""
        found = sorted(self.run.glob("attempts/*/attempt.json"))
        return {int(p.parent.name): json.loads(p.read_text()) for p in found}

    def verdicts(self) -> dict[tuple[Any, ...], str]:
        """Return the cell's values -> verdict of each finished attempt; a repeated cell fails."""
        found: dict[tuple[Any, ...], str] = {}
        for record in self.records().values():
            assert record["state"] == "closed", record
            verdict = record["diagnosis"]["verdict"]
            if verdict in {"interrupted", "host-lost"}:
                continue
            cell = record["attempt"]["cell"]
            key = (cell["attention-backend"], cell["disable-cuda-graph"])
            assert key not in found, f"{key} was launched twice"
            found[key] = verdict
        return found

    def run_id(self) -> str:
        """Return the id that the run's processes carry in their marker."""
        return str(json.loads((self.run / "run.json").read_text())["id"])

    def processes(self) -> list[int]:
        """Return what lives on this machine with a marker of this run."""
        marker = f"SGLSWEEP_MARKER={self.run_id()}".encode()
        return [pid for pid in _pids() if marker in _environment(pid)]

    @property
    def said(self) -> str:
        """What a sweep that was begun wrote to standard error so far."""
        return (self.path / "stderr").read_text()

    def wait_for(self, text: str, *, process: subprocess.Popen[str]) -> None:
        """Wait until a sweep that was begun has said a text."""
        until = time.monotonic() + _PATIENCE_S
        while text not in self.said:
            assert process.poll() is None, f"it ended without saying {text!r}:\n{self.said}"
            assert time.monotonic() < until, f"it does not say {text!r}:\n{self.said}"
            threading.Event().wait(0.02)


Json = dict[str, Any]


def hear_ctrl_c() -> None:
    """Undo what a shell does to a command in the background: it lets it ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def small_sweep(path: Path, *, host: str = "local", hosts: str = "") -> Folder:
    """Write a small sweep into a folder."""
    port = _free_ports() if hosts else free_port()
    (path / "world.yaml").write_text(WORLD)
    (path / "sweep.yaml").write_text(SWEEP.replace("HOST", host).replace("PORT", str(port)))
    if hosts:
        (path / "hosts.yaml").write_text(hosts)
    home = path / "home"
    home.mkdir(exist_ok=True)
    return Folder(path, port, {**os.environ, "HOME": str(home), "SGLSWEEP_TEST": str(path)})


def _free_ports() -> int:
    """Return a port that is free with the next seven, one for each slot.

    It lies below the range that clients are given ports from: a neighbour of a port from there
    may go to anybody between two looks.
    """
    while True:
        first = random.randrange(15_000, 32_000)  # noqa: S311 - no secret
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + 8):
                one = held.enter_context(socket.socket())
                one.bind(("127.0.0.1", port))
            return first


def wait_until_gone(folder: Folder, within_s: float = 30.0) -> None:
    """Wait until nothing of a run lives.

    Raises:
        AssertionError: something does.
    """
    until = time.monotonic() + within_s
    while folder.processes():
        assert time.monotonic() < until, f"left behind: {folder.processes()}"
        threading.Event().wait(0.1)


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    """Send a signal and wait for the end."""
    process.send_signal(number)
    return process.wait(_PATIENCE_S)


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return b"" if state == "Z" else Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
