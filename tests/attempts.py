"""Attempts with stand-in servers, started by a real keeper, and ended whatever a test does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sglsweep import launch
from sglsweep.hosts.local import LocalHost
from sshd import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglsweep.hosts.base import Host
    from sglsweep.keeper_files import HttpAnswer, HttpRequest, KeeperState

STANDIN = Path(__file__).parent / "onhost" / "standin.py"
KEEPER = Path(launch.__file__).parent / "onhost" / "keeper.py"


def wait_until(holds: Callable[[], bool], within_s: float = 40.0) -> None:
    """Return once something is true.

    Raises:
        AssertionError: it did not come true in time.
    """
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "what was waited for did not come"
        threading.Event().wait(0.02)


def is_alive(pid: int | None) -> bool:
    """Tell whether a process lives and is no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is none."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text()
        return int(text.rpartition(")")[2].split()[19])
    return None


def end(pid: int | None) -> None:
    """Kill one process of ours, if it still is there."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def marked_by(marker: str) -> list[int]:
    """Return the processes whose environment carries a marker."""
    wanted = f"SGLSWEEP_MARKER={marker}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


class Started:
    """One attempt of a test, with shortcuts to what a test asks."""

    def __init__(self, launched: launch.Launched, port: int, marker: str) -> None:
        self.launched = launched
        self.port = port
        self.marker = marker
        self.folder = Path(launched.directory)

    @property
    def state(self) -> KeeperState:
        return self.launched.state()

    @property
    def log(self) -> str:
        return self.launched.read_log(0).decode("utf-8", "replace")

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until a text stands in the log so many times."""
        wait_until(lambda: self.log.count(text) >= count)

    def wait_for_end(self, within_s: float = 30.0) -> KeeperState:
        wait_until(lambda: self.state.has_ended, within_s)
        return self.state

    def pids_of(self, name: str) -> list[int]:
        """Return the pids that the stand-in said of itself: `NAME is PID`."""
        marker = f"{name} is "
        return [int(line[len(marker) :]) for line in self.log.splitlines() if marker in line]

    def ask(
        self, *requests: HttpRequest, concurrency: int = 8, timeout_s: float = 20
    ) -> HttpAnswer:
        """Ask and wait for the answer."""
        number = self.launched.ask_http(requests, concurrency=concurrency, timeout_s=timeout_s)
        found: list[HttpAnswer] = []

        def is_there() -> bool:
            answer = self.launched.answer(number)
            if answer is not None:
                found.append(answer)
            return answer is not None

        wait_until(is_there, timeout_s + 20)
        return found[0]

    def keeper(self, command: str) -> dict[str, Any]:
        """Run a command of keeper.py on this attempt and return what it printed."""
        words = [sys.executable, "-I", str(KEEPER), command, str(self.folder)]
        said = subprocess.run(words, capture_output=True, check=False, timeout=60)
        assert said.stdout, said.stderr.decode()
        printed: dict[str, Any] = json.loads(said.stdout)
        return {**printed, "exit": said.returncode}


class Attempts:
    """Starts attempts under one folder and leaves no process behind."""

    def __init__(self, folder: Path, host: Host | None = None) -> None:
        self.folder = folder
        self.host = host or LocalHost()
        self._started: list[tuple[Path, str]] = []

    def spec(self, *habits: str, port: int | None = None, **changes: object) -> launch.LaunchSpec:
        """Return a spec for the stand-in with these habits."""
        port = port or free_port()
        fields: dict[str, Any] = {
            "argv": (sys.executable, str(STANDIN), str(port), *habits),
            "marker": f"test-{uuid.uuid4()}",
            "port": port,
            "deadline_s": 120.0,
            "graces": {"parent_grace_s": 1.0, "group_grace_s": 1.0, "orphan_grace_s": 1.0},
        }
        return launch.LaunchSpec(**{**fields, **changes})

    def start(
        self,
        *habits: str,
        python: str = sys.executable,
        name: str = "",
        port: int | None = None,
        **changes: object,
    ) -> Started:
        """Start an attempt."""
        spec = self.spec(*habits, port=port, **changes)
        folder = self.folder / (name or f"attempt-{len(self._started)}")
        self._started.append((folder, spec.marker))
        launched = launch.start(self.host, python, PurePosixPath(folder), spec)
        return Started(launched, spec.port, spec.marker)

    def end_all(self) -> None:
        """End what a test left, by folder and by marker."""
        for folder, marker in self._started:
            state = self._state(folder)
            if not state.get("ended_at"):
                end(state.get("keeper_pid"))
                for process in state.get("processes", ()):
                    if start_of(process["pid"]) == process["start"]:
                        end(process["pid"])
            for pid in marked_by(marker):
                end(pid)

    @staticmethod
    def _state(folder: Path) -> Mapping[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            found: Mapping[str, Any] = json.loads((folder / "state.json").read_text())
            return found
        return {}
