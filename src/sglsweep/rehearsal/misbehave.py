"""Bad behaviour on demand: what a launcher must survive, each done for real."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from sglsweep.rehearsal import title
from sglsweep.rehearsal.voice import STDERR

if TYPE_CHECKING:
    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.voice import Clock

_ORPHAN_LIVES_S = 600
_LINGERS_STORY_S = 65
_FLOOD_BYTES_PER_S = 17_000_000
_FLOOD_MOST_BYTES = 3_000_000_000
_STRANGER_STARTS_S = 10.0


def as_child(plan: Plan, index: int) -> None:
    """Do what a child's bad behaviour needs at its start."""
    if "ignores-term" in plan.mischief:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if is_orphan(plan, index):
        os.setsid()
        title.outlive_parent()


def is_orphan(plan: Plan, index: int) -> bool:
    """True if this rank leaves the group and outlives everything but a signal of its own."""
    return "orphan-rank" in plan.mischief and index == plan.ranks - 1


def linger_as_orphan(plan: Plan, index: int) -> None:
    """Stay although the tree is gone; ten minutes at most, so that a test cannot leak it."""
    if is_orphan(plan, index):
        time.sleep(_ORPHAN_LIVES_S)


def linger(plan: Plan, clock: Clock) -> None:
    """Take 65 seconds of the story to end."""
    if "lingers" in plan.mischief:
        clock.sleep(_LINGERS_STORY_S)


def flood(plan: Plan, parent_pid: int) -> None:
    """Write 1 GB of log a minute until the tree ends."""
    if "flood" not in plan.mischief:
        return
    line = b"/usr/lib/python3.12/warnings.py:110: UserWarning: the same line again and again\n"
    block = line * (_FLOOD_BYTES_PER_S // 10 // len(line))
    written = 0
    while written < _FLOOD_MOST_BYTES and os.getppid() == parent_pid:
        os.write(STDERR, block)
        written += len(block)
        time.sleep(0.1)


def has_wrong_owner(plan: Plan) -> bool:
    """True if somebody else answers on the port while the log says that all is well."""
    return "wrong-owner" in plan.mischief


def let_stranger_answer(plan: Plan) -> None:
    """Start a server that is not ours on the port and wait until it listens."""
    _start_stranger(plan)


def refuse_port(plan: Plan) -> None:
    """Have the port taken, where that is the plan.

    Raises:
        OSError: always, where that is the plan.
    """
    is_planned = plan.failure is not None and plan.failure.kind == "stranger"
    if "port-taken" in plan.mischief:
        _start_stranger(plan)
    if is_planned:
        raise OSError(98, "Address already in use")


def _start_stranger(plan: Plan) -> None:
    """Run a process outside our session and without our environment, until we are gone.

    It is still our descendant, and a keeper that follows ancestry says so. Whoever needs a true
    stranger starts one before us; it is then taken for the owner.
    """
    port = plan.int_arg("port")
    if _answers(port):
        return
    subprocess.Popen(
        [sys.executable, "-m", "sglsweep.rehearsal.stranger", str(port), str(os.getpid())],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + _STRANGER_STARTS_S
    while time.monotonic() < end and not _answers(port):
        time.sleep(0.02)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
