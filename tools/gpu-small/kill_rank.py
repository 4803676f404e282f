"""Kill one rank of one attempt with SIGKILL, as the kernel's OOM killer would, once it is ready.

usage: kill_rank.py RUN_FOLDER FLAG=VALUE [--rank TP1] [--limit SECONDS]

FLAG=VALUE names the attempt: it stands in its cell (served-model-name=to-be-killed, say). Only a
process that the keeper lists as the attempt's own, with the start time it lists, is killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path
from typing import Any

from attempts import Wanted, read

READY = b"ready to roll"


def find(keeper_dir: Path, rank: str) -> dict[str, Any] | None:
    """Return the scheduler of that rank, of those that the keeper watches."""
    for process in read(keeper_dir / "state.json").get("processes", []):
        title = process["title"]
        if "sglang::scheduler" in title and (not rank or title.rstrip().endswith(f"_{rank}")):
            return process
    return None


def start_of(pid: int) -> int | None:
    """Return when a process began, in ticks since boot; None if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("setting")
    parser.add_argument("--rank", default="")
    parser.add_argument("--limit", type=float, default=600.0)
    words = parser.parse_args()
    wanted = Wanted(words.run, words.setting)
    attempt = wanted.wait(words.limit)
    keeper_dir = Path(attempt["keeper_dir"])
    while wanted.is_open:
        is_ready = (keeper_dir / "log").exists() and READY in (keeper_dir / "log").read_bytes()
        process = find(keeper_dir, words.rank) if is_ready else None
        if process is not None and start_of(process["pid"]) == process["start"]:
            os.kill(process["pid"], signal.SIGKILL)
            print(
                f"killed pid {process['pid']} ({process['title']}) of attempt {attempt['number']}"
            )
            return
        time.sleep(0.05)
    print(f"attempt {attempt['number']} ended before it was ready")


if __name__ == "__main__":
    main()
