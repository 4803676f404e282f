"""Process titles as SGLang's setproctitle sets them, and what that does to the environment."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_COMM_BYTES = 15


def set_title(title: str) -> None:
    """Show `title` as this process's name and command line; Linux only, elsewhere nothing happens.

    As setproctitle does, it writes over the environment that /proc shows too, unless SPT_NOENV
    is set: a marker variable is then gone, which is what the keeper has to live with.
    """
    try:
        start, end, env_start, env_end = _memory_of_arguments()
    except (OSError, ValueError):
        return
    _prctl(_PR_SET_NAME, title.encode()[:_COMM_BYTES])
    spares_environment = bool(os.environ.get("SPT_NOENV")) or env_start != end
    room = (end if spares_environment else env_end) - start
    ctypes.memset(start, 0, room)
    ctypes.memmove(start, title.encode()[: room - 1], min(len(title.encode()), room - 1))


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends (PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, 9)


def outlive_parent() -> None:
    """Take back `die_with_parent`."""
    _prctl(_PR_SET_PDEATHSIG, 0)


def _memory_of_arguments() -> tuple[int, int, int, int]:
    """Return arg_start, arg_end, env_start, env_end of /proc/self/stat (fields 48 to 51)."""
    after_name = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
    fields = after_name.rpartition(") ")[2].split()
    start, end, env_start, env_end = (int(field) for field in fields[45:49])
    if not start < end <= env_start <= env_end:
        raise ValueError(fields)
    return start, end, env_start, env_end


def _prctl(option: int, argument: int | bytes) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(option, argument, 0, 0, 0)
