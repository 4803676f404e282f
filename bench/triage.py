# ruff: noqa: E501 - the lines of a log are as long as they are
"""How fast triage is: one pass over a long log, against grep; a small log, from a cold start.

    .venv/bin/python bench/triage.py [--mb 200] [--json]

The long log is a whole launch (all milestones, eight ranks), then decode, prefill and access lines
as a busy server prints them, then a crash. `grep -c -F` looks for 100 literals of the catalogue in
the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sglsweep import catalogue

LITERALS = 100
RATIO = 3.0
"""How many times grep's time a long log may take."""
MEMORY_MIB = 250
SMALL_S = 0.3
TOOL = Path(sys.executable).with_name("sglsweep")

HEAD = """[2026-02-10 10:00:00] server_args=ServerArgs(model_path='/models/glm-5', tp_size=8, mem_fraction_static=0.88)
[2026-02-10 10:00:20 TP{rank}] Init torch distributed begin.
[2026-02-10 10:00:24 TP{rank}] Load weight begin. avail mem=94.10 GB
[2026-02-10 10:01:24 TP{rank}] Load weight end. type=GlmMoeDsaForCausalLM, dtype=torch.bfloat16, avail mem=40.00 GB, mem usage=54.10 GB.
[2026-02-10 10:01:25 TP{rank}] KV Cache is allocated. #tokens: 400000, KV size: 20.00 GB
[2026-02-10 10:01:26 TP{rank}] Capture cuda graph begin. This can take up to several minutes. avail mem=12.00 GB
[2026-02-10 10:01:34 TP{rank}] Capture cuda graph end. Time elapsed: 7.71 s. mem usage=1.62 GB. avail mem=6.60 GB.
"""
READY = "[2026-02-10 10:01:40] The server is fired up and ready to roll!\n"
BUSY = """[2026-02-10 10:{minute:02}:{second:02} TP0] Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.21, #running-req: 9, #queue-req: 0,
[2026-02-10 10:{minute:02}:{second:02} TP0] Decode batch, #running-req: 10, #token: 61344, token usage: 0.15, cuda graph: True, gen throughput (token/s): 412.11, #queue-req: 0,
[2026-02-10 10:{minute:02}:{second:02} TP0] Decode batch, #running-req: 11, #token: 62100, token usage: 0.16, cuda graph: True, gen throughput (token/s): 409.73, #queue-req: 0,
[2026-02-10 10:{minute:02}:{second:02}] INFO:     127.0.0.1:5{second:04} - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""
CRASH = """[2026-02-10 11:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process
    scheduler.event_loop_overlap()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 94.97 GiB of which 1.20 GiB is free.

[2026-02-10 11:00:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement beside what it must not pass."""

    what: str
    seconds: float
    peak_mib: float
    limit: str
    holds: bool


def main() -> None:
    """Measure, print a table, fail where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options.mb)
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures]))
    else:
        print_table(figures)
    if not all(figure.holds for figure in figures):
        sys.exit(1)


def measure(folder: Path, megabytes: int) -> list[Figure]:
    """Time grep and triage on the same long log, and triage on a small one."""
    long, small, patterns = folder / "long.log", folder / "small.log", folder / "literals"
    write_log(long, megabytes * 1_000_000)
    write_log(small, 20_000)
    patterns.write_text("\n".join(literals()) + "\n", encoding="utf-8")
    grep_s, grep_mib = best_of(3, ["grep", "-c", "-F", "-f", str(patterns), str(long)])
    long_s, long_mib = best_of(2, [str(TOOL), "triage", "--json", str(long)])
    small_s, small_mib = best_of(5, [str(TOOL), "triage", "--json", str(small)])
    ratio = long_s / grep_s
    return [
        Figure(
            what=f"grep -c -F, {LITERALS} literals, {megabytes} MB",
            seconds=grep_s,
            peak_mib=grep_mib,
            limit="",
            holds=True,
        ),
        Figure(
            what=f"triage --json, {megabytes} MB",
            seconds=long_s,
            peak_mib=long_mib,
            limit=f"{ratio:.1f} x grep (at most {RATIO:g}), {MEMORY_MIB} MiB",
            holds=ratio <= RATIO and long_mib <= MEMORY_MIB,
        ),
        Figure(
            what="triage --json, 20 kB",
            seconds=small_s,
            peak_mib=small_mib,
            limit=f"{SMALL_S} s",
            holds=small_s <= SMALL_S,
        ),
    ]


def write_log(path: Path, size: int) -> None:
    """Write a launch, much traffic and a crash: at least `size` bytes."""
    head = HEAD.splitlines(keepends=True)
    busy = [BUSY.format(minute=n % 60, second=n * 7 % 60) for n in range(997)]
    with path.open("w", encoding="ascii") as log:
        for line in head:
            ranks = range(8) if "{rank}" in line else range(1)
            log.writelines(line.replace("{rank}", str(rank)) for rank in ranks)
        log.write(READY)
        number = 0
        while log.tell() < size:
            log.write(busy[number % len(busy)])
            number += 1
        log.write(CRASH)


def literals() -> list[str]:
    """Return literals of the catalogue, spread over it."""
    known = [text for s in catalogue.load().signatures.values() for text in s.literals]
    distinct = list(dict.fromkeys(known))
    step = max(len(distinct) // LITERALS, 1)
    return distinct[::step][:LITERALS]


def best_of(times: int, command: list[str]) -> tuple[float, float]:
    """Return (seconds of the fastest run, peak MiB of the largest one)."""
    runs = [one_run(command) for _ in range(times)]
    return min(seconds for seconds, _ in runs), max(mib for _, mib in runs)


def one_run(command: list[str]) -> tuple[float, float]:
    """Run a command and return (seconds, peak MiB)."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def print_table(figures: list[Figure]) -> None:
    """Print what was measured."""
    print(f"{'what':44} {'seconds':>8} {'peak MiB':>9}  limit")
    for figure in figures:
        mark = "" if figure.holds else "  TOO MUCH"
        print(
            f"{figure.what:44} {figure.seconds:8.2f} {figure.peak_mib:9.0f}  {figure.limit}{mark}"
        )


if __name__ == "__main__":
    main()
