"""Seconds the proof takes on real servers, beside the curl that people trust instead, in one run.

    python bench/proof.py [PYTHON]

PYTHON has SGLang (default: .sglang-cpu/bin/python). Two tiny models on the CPU: a healthy one, and
one with a NaN in one weight, which answers every request with HTTP 200. For each, while the same
server runs: `curl /health`, `curl /generate` for 8 tokens, then the whole proof. The last column
says what each of them makes of the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from models import make_gpt2
from sglsweep import catalogue
from sglsweep.attempt import Attempt, Outcome
from sglsweep.catalogue import limits
from sglsweep.clock import SystemClock, stamp
from sglsweep.drive import run_attempt
from sglsweep.events import Event, StepAsked
from sglsweep.hosts.local import LocalHost
from sglsweep.journal import Journal, RunIdentity
from sglsweep.matrix import Cell
from sglsweep.probe.target import ProbeSettings
from sglsweep.site import Site
from sshd import free_port

ROOT = Path(__file__).parent.parent
FLAGS = (
    "--device cpu --max-total-tokens 8192 --chunked-prefill-size 512 --max-running-requests 8 "
    "--sleep-on-idle --host 127.0.0.1"
)
GENERATE = {"text": "The capital of France is", "sampling_params": {"max_new_tokens": 8}}


@dataclass
class Curls:
    """Curls a server once it has said its name to the proof, before it is asked for tokens."""

    port: int
    seconds: dict[str, float] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, float]] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Take an event of the attempt."""
        if not isinstance(event, StepAsked):
            return
        self.steps.append((event.step.name, event.step.elapsed_s))
        if event.step.name == "server-info":
            self._curl("/health")
            self._curl("/generate", json.dumps(GENERATE))

    def _curl(self, path: str, body: str | None = None) -> None:
        url = f"http://127.0.0.1:{self.port}{path}"
        words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url]
        words += ["-H", "Content-Type: application/json", "-d", body] if body else []
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.seconds[path] = time.monotonic() - began
        self.says[path] = f"HTTP {done.stdout}"


def measure(python: Path, folder: Path, mode: str) -> tuple[Curls, Outcome]:
    """Launch a model, curl it, prove it, end it."""
    model, port = make_gpt2(python, folder / mode, mode), free_port()
    curls = Curls(port)
    config = json.loads((model / "config.json").read_text())
    identity = RunIdentity(name="proof", model=mode)
    with Journal.create_or_resume(folder / f"run-{mode}", identity) as journal:
        site = Site(
            host=LocalHost(),
            keeper_python=sys.executable,
            journal=journal,
            catalogue=catalogue.load(),
            limits=limits.load({}),
            clock=SystemClock(),
            listener=curls,
            secrets={},
            cwd=None,
            probe=ProbeSettings(),
        )
        attempt = Attempt(
            number=1,
            cell=Cell({"model": mode}),
            build="cpu",
            model=mode,
            python=str(python),
            argv=(
                *f"-m sglang.launch_server --port {port} {FLAGS} --model-path".split(),
                str(model),
            ),
            env={"OMP_NUM_THREADS": "2"},
            launch_key=mode,
            host="local",
            port=port,
            why="measured",
            started_at=stamp(time.time()),
            keeper_dir=str(folder / "onhost" / mode),
        )
        return curls, run_attempt(site, attempt, {"models": {mode: {"config": config}}})


def main() -> None:
    """Measure and print the table."""
    python = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".sglang-cpu" / "bin" / "python"
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'model':8}{'asked by':22}{'seconds':>8}  says")
    with tempfile.TemporaryDirectory(prefix="proof-") as name:
        for mode in ("ok", "nan"):
            curls, outcome = measure(python, Path(name), mode)
            for path, seconds in curls.seconds.items():
                print(f"{mode:8}{'curl ' + path:22}{seconds:8.2f}  {curls.says[path]}")
            proof_s = (outcome.timings.proof_s or 0.0) - sum(curls.seconds.values())
            said = f"{outcome.verdict} ({outcome.diagnosis.cause})"
            print(f"{mode:8}{'the proof':22}{proof_s:8.2f}  {said}")
            longest = sorted(curls.steps, key=lambda s: -s[1])[:4]
            shown = ", ".join(f"{name} {seconds:.1f}" for name, seconds in longest)
            print(f"{'':30}longest steps: {shown}")


if __name__ == "__main__":
    main()
