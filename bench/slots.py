"""How long a sweep of twelve cells takes with one, two and four slots.

A rehearsal: servers sleep most of their time, as real ones wait for disks and GPUs, so this
measures what the tool adds, on as many cores as there are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORLD = """
axes:
  attention-backend: [flashinfer, triton]
  disable-cuda-graph: [false, true]
  kv-cache-dtype: [auto, bf16, fp8_e4m3]
rules:
  - when: {attention-backend: triton, disable-cuda-graph: false}
    verdict: oom
    cause: oom-graph-capture
    phase: graph-capture
    blames: [disable-cuda-graph]
  - when: {attention-backend: flashinfer, kv-cache-dtype: bf16}
    verdict: nan-in-probs
    cause: nan-probability-tensor
    phase: decode
    blames: [attention-backend]
rehearsal: {ranks: 2, time-scale: SCALE}
"""
SWEEP = """
name: slots
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
matrix:
  attention-backend: [flashinfer, triton]
  disable-cuda-graph: [false, true]
  kv-cache-dtype: [auto, bf16, fp8_e4m3]
goal: map
"""


def main() -> None:
    """Print a line for each number of slots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--time-scale", type=float, default=0.1)
    parser.add_argument("--port", type=int, default=31900)
    options = parser.parse_args()
    for count in options.slots:
        with tempfile.TemporaryDirectory(prefix="sglsweep-slots-") as folder:
            seconds, attempts = swept(Path(folder), count, options)
        print(f"{count} slots: {seconds:6.1f} s for {attempts} attempts")


def swept(folder: Path, count: int, options: argparse.Namespace) -> tuple[float, int]:
    """Return the wall clock of one sweep, and how many attempts it took."""
    (folder / "world.yaml").write_text(WORLD.replace("SCALE", str(options.time_scale)))
    (folder / "sweep.yaml").write_text(SWEEP.replace("PORT", str(options.port)))
    words = ["sweep", str(folder / "sweep.yaml"), "--strategy", "grid", "--slots", str(count)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sglsweep", *words, "--json"],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.monotonic() - began, len(json.loads(done.stdout)["attempts"])


if __name__ == "__main__":
    main()
