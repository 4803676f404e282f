"""The children of a launch: schedulers and detokenizer, how they start and how they are ended."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sglsweep.rehearsal import misbehave, title
from sglsweep.rehearsal.rank import Rank, rank_prefix, rank_title
from sglsweep.rehearsal.scheduler import Scheduler
from sglsweep.rehearsal.voice import Log
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.rehearsal.plan import Plan

_REAP_S = 0.5
_OUTLIVES_STORY_S = 60


@dataclass(frozen=True, slots=True)
class Child:
    """A process of ours: its name as SGLang's watchdog calls it, and the link to it."""

    name: str
    pid: int
    link: socket.socket

    @property
    def rank(self) -> str:
        """A scheduler's position; the detokenizer has none."""
        return self.name.rpartition("_")[2]

    def exit_code(self) -> int | None:
        """Return its exit code once it is dead; it is reaped then."""
        try:
            found, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return -signal.SIGKILL
        return os.waitstatus_to_exitcode(status) if found else None


class Family:
    """All children. Forked, not spawned: eight ranks must not cost eight interpreters."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan = plan
        self._log = log
        self._parent_pid = os.getpid()
        count = plan.ranks
        peers = [socket.socketpair() for _ in range(count - 1)]
        born: dict[int, Child] = {}
        for index in random.sample(range(count), count):  # ranks come up in any order
            orders = [mine for mine, _ in peers] if index == 0 else [peers[index - 1][1]]
            born[index] = self._rank(index, orders)
        for mine, theirs in peers:
            mine.close()
            theirs.close()
        self.schedulers = tuple(born[index] for index in sorted(born))
        self.detokenizer = self._fork("detokenizer", "sglang::detokenizer", self._detokenize)

    @property
    def everyone(self) -> tuple[Child, ...]:
        """Schedulers by rank, then the detokenizer."""
        return (*self.schedulers, self.detokenizer)

    def kill(self) -> None:
        """Kill and reap: where no init reaps orphans, zombies would pile up over a long sweep."""
        children = [
            child
            for index, child in enumerate(self.everyone)
            if not misbehave.is_orphan(self._plan, index)
        ]
        for child in children:
            _kill(child.pid)
        end = time.monotonic() + _REAP_S
        while time.monotonic() < end and any(child.exit_code() is None for child in children):
            time.sleep(0.005)

    def _rank(self, index: int, orders: list[socket.socket]) -> Child:
        prefix = rank_prefix(index, self._plan)

        def main(link: socket.socket) -> None:
            self._schedule(link, index, prefix, orders)

        return self._fork(f"scheduler_{index}", rank_title(prefix), main)

    def _fork(self, name: str, shown: str, main: Callable[[socket.socket], None]) -> Child:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            return Child(name, pid, ours)
        ours.close()
        try:
            _forget_signals()
            title.set_title(shown)
            main(theirs)
        finally:
            os._exit(0)

    def _schedule(
        self, link: socket.socket, index: int, prefix: str, orders: list[socket.socket]
    ) -> None:
        rank = Rank(index, self._plan, self._voice(prefix), self._parent_pid)
        misbehave.as_child(self._plan, index)
        rank.start_up()
        link.sendall(b"ready\n")
        if os.getppid() != self._parent_pid:
            self._outlive_parent()
        if not misbehave.is_orphan(self._plan, index):
            title.die_with_parent()
        if index == 0:
            Scheduler(rank, link, orders).run()
        else:
            _obey(rank, link, orders[0])
        misbehave.linger_as_orphan(self._plan, index)

    def _voice(self, prefix: str) -> Log:
        version = self._plan.stage.sglang_version
        return Log(version, self._log.clock, prefix, self._plan.mischief)

    def _detokenize(self, link: socket.socket) -> None:
        misbehave.as_child(self._plan, len(self.schedulers))
        link.sendall(b"ready\n")
        misbehave.flood(self._plan, self._parent_pid)
        link.recv(1)

    def _outlive_parent(self) -> NoReturn:
        """Stay for a minute after a parent that died while loading, as the real ones do."""
        self._log.clock.sleep(_OUTLIVES_STORY_S)
        os._exit(1)


def _obey(rank: Rank, link: socket.socket, orders: socket.socket) -> None:
    """Wait, as ranks above 0 do, for the end of the tree or for rank 0's word to die."""
    watched = [link, orders]
    while True:
        readable, _, _ = select.select(watched, [], [])
        if link in readable:
            return
        if not orders.recv(64):
            watched = [link]
            continue
        rank.clock.sleep(0.05 * rank.index)
        rank.die(Phase.WARMUP if rank.plan.strikes(Phase.WARMUP) else Phase.DECODE)


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
