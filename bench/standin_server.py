"""A server of a few lines for `bench/overhead.py`: prints SGLang's words and fails.

    standin_server.py STAMPS ...

Appends `exec TIME PID` to STAMPS when it begins and `fatal TIME PID` when it has printed its fatal
line. Like SGLang it has a child in its own process group that outlives it for a moment.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

BEGAN = time.time()
WORK_S = 1.0
LINGER_S = 0.2

_LINES = (
    # A name of its own: an attempt that resolves like a finished one would be ended there.
    f"server_args={{'model_path': 'standin-{os.getpid()}', 'port': 1}}",
    "Init torch distributed begin.",
    "Init torch distributed ends. elapsed=0.10 s, mem usage=0.01 GB",
    "Load weight begin. avail mem=94.08 GB",
)
_FATAL = (
    "Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/srt/managers/scheduler.py", line 1, in run_scheduler_process\n'
    "    scheduler = Scheduler()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 94.97 GiB of which 1.00 GiB is free.\n"
)


def stamp(path: Path, word: str, when: float) -> None:
    """Append one line."""
    with path.open("a") as file:
        file.write(f"{word} {when:.6f} {os.getpid()}\n")


def say(text: str) -> None:
    """Print as SGLang does: to standard error, with a time stamp."""
    sys.stderr.write(time.strftime("[%Y-%m-%d %H:%M:%S TP0] ") + text + "\n")


def main() -> None:
    """Begin, work, fail."""
    stamps = Path(sys.argv[1])
    stamp(stamps, "exec", BEGAN)
    for line in _LINES:
        say(line)
        time.sleep(WORK_S / len(_LINES))
    if os.fork() == 0:
        time.sleep(LINGER_S)
        os._exit(0)
    # Stamped first: whoever sees the line may kill this process at once.
    stamp(stamps, "fatal", time.time())
    say(_FATAL)
    sys.stderr.flush()
    time.sleep(LINGER_S)
    say("Received sigquit from a child process. It usually means the child failed.")
    os.kill(os.getpid(), 9)


if __name__ == "__main__":
    main()
