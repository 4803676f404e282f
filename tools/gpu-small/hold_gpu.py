"""Hold memory of the first visible GPU until standard input ends, or for --limit seconds.

usage: hold_gpu.py --leave GIB [--limit SECONDS]      leaves so much free
       hold_gpu.py --take GIB [--limit SECONDS]

Needs torch. Prints "holding" once it has the memory; run it with a pipe or a FIFO as its input,
or end it by its pid.
"""

from __future__ import annotations

import argparse
import os
import select
import sys

import torch

GIB = 1 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--leave", type=float)
    size.add_argument("--take", type=float)
    parser.add_argument("--limit", type=float, default=600.0)
    words = parser.parse_args()
    free, total = torch.cuda.mem_get_info()
    want = int(words.take * GIB) if words.take is not None else free - int(words.leave * GIB)
    held = torch.empty(max(want, 0), dtype=torch.uint8, device="cuda")
    free = torch.cuda.mem_get_info()[0]
    print(
        f"holding {held.numel() / GIB:.1f} of {total / GIB:.1f} GiB, {free / GIB:.1f} GiB free, "
        f"pid {os.getpid()}",
        flush=True,
    )
    ready, _, _ = select.select([sys.stdin], [], [], words.limit)
    if ready:
        sys.stdin.read()


if __name__ == "__main__":
    main()
