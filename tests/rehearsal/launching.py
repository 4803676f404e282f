"""Launch stand-ins and ask them things, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORLDS = Path(__file__).parents[2] / "configs" / "worlds"
LEAD = WORLDS / "glm5-sm120.yaml"
READY = "The server is fired up and ready to roll!"
_PATIENCE_S = 30.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Standin:
    """A launched stand-in: its process, its log file, its port."""

    process: subprocess.Popen[bytes]
    log_file: Path
    port: int

    @property
    def log(self) -> str:
        """The log so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def await_line(self, text: str) -> str:
        """Return the log once it holds `text` or the process has ended."""
        end = time.monotonic() + _PATIENCE_S
        while text not in self.log and self.process.poll() is None:
            assert time.monotonic() < end, f"no {text!r} in\n{self.log[-2000:]}"
            time.sleep(0.01)
        return self.log

    def await_end(self) -> int:
        """Return the exit status, negative for a signal."""
        return self.process.wait(_PATIENCE_S)

    def ask(self, path: str, body: Json | None = None) -> tuple[int, Json]:
        """GET or POST; the status is 0 where the connection broke."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 - loopback
                text = answer.read()
                return answer.status, json.loads(text) if text else {}
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            return error.code, json.loads(text) if text else {}
        except OSError:
            return 0, {}

    def generate(self, ids: Sequence[int], *, temperature: float, tokens: int = 8) -> Json:
        """Ask for a generation; {} where the server broke under it."""
        sampling = {"temperature": temperature, "max_new_tokens": tokens}
        status, answer = self.ask(
            "/generate", {"input_ids": list(ids), "sampling_params": sampling}
        )
        return answer if status == 200 else {}

    def family(self) -> dict[str, int]:
        """Titles of the living processes of its session -> pid."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text(errors="replace").rpartition(") ")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    words = (folder / "cmdline").read_bytes().strip(b"\0").split(b"\0")
                    found[b" ".join(words).decode(errors="replace")] = int(folder.name)
        return found


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def launched(
    folder: Path,
    *words: str,
    world: Path = LEAD,
    ranks: int = 2,
    env: dict[str, str] | None = None,
) -> Iterator[Standin]:
    """Start a stand-in in its own session; whatever is left of it is killed at the end."""
    port = free_port()
    log_file = folder / "log"
    own = ["--world", str(world), "--time-scale", "0.004", "--ranks", str(ranks)]
    model = ["--model-path", "made/up", "--tp", str(ranks), "--port", str(port)]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sglsweep.rehearsal", *own, *model, *words],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
    standin = Standin(process, log_file, port)
    try:
        yield standin
    finally:
        for pid in standin.family().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(_PATIENCE_S)


def world_file(folder: Path, text: str) -> Path:
    """Write a world for one test."""
    path = folder / "world.yaml"
    path.write_text(text, encoding="utf-8")
    return path
