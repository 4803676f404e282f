"""Seconds the tool adds to an attempt, local and over SSH, beside a plain shell loop, in one run.

    python bench/overhead.py [ATTEMPTS]

The server is a stand-in that fails after a known second and stamps when it began and when it
printed its fatal line, so every other second is the tool's:

    decision to exec     from the decision to the server's first instruction
    fatal to group end   from the fatal line to the end of the last process of the server's group
    end to next exec     from there to the next server's first instruction

The shell loop is what people do by hand: start in the background, `sleep`, look at the tail, grep,
kill, again. Its `sleep` is 1 s here; the operator of the lead case used 180. SSH goes to an sshd
of our own on loopback.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from sglsweep import catalogue, report
from sglsweep.attempt import Attempt
from sglsweep.catalogue import limits
from sglsweep.clock import SystemClock, stamp
from sglsweep.drive import run_attempt
from sglsweep.hosts.local import LocalHost
from sglsweep.hosts.ssh import SshHost
from sglsweep.journal import Journal, RunIdentity
from sglsweep.matrix import Cell
from sglsweep.probe.target import ProbeSettings
from sglsweep.site import Site
from sshd import free_port, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.events import Event
    from sglsweep.hosts.base import Host
    from sshd import Sshd

SERVER = Path(__file__).with_name("standin_server.py")
LOOK_S = 0.02


class Silent:
    """Nobody watches."""

    def tell(self, event: Event) -> None:
        """Take it."""


@dataclass
class Times:
    """Seconds of each attempt, by what they were spent on."""

    to_exec: list[float] = field(default_factory=list)
    to_end: list[float] = field(default_factory=list)
    to_next: list[float] = field(default_factory=list)


class GroupWatch:
    """Notes when the last process of the stand-in's group is gone, without asking the tool."""

    def __init__(self, stamps: Path) -> None:
        self._stamps = stamps
        self.ends: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GroupWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_S):
            for word, _, pid in read(self._stamps):
                if word == "exec" and pid not in self.ends and not lives(pid):
                    self.ends[pid] = time.time()


def lives(group: int) -> bool:
    """Tell whether a group has a process that is no zombie."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def read(stamps: Path) -> Iterator[tuple[str, float, int]]:
    """Yield (word, time, pid) of each stamp."""
    if stamps.exists():
        for line in stamps.read_text().splitlines():
            word, when, pid = line.split()
            yield word, float(when), int(pid)


def with_the_tool(host: Host, folder: Path, count: int) -> Times:
    """Run `count` attempts through the product's own path."""
    stamps, decisions = folder / "stamps", []
    identity = RunIdentity(name="overhead", model="standin")
    with (
        Journal.create_or_resume(folder / "run", identity) as journal,
        GroupWatch(stamps) as watch,
    ):
        site = Site(
            host=host,
            keeper_python=sys.executable,
            journal=journal,
            catalogue=catalogue.load(),
            limits=limits.load({}),
            clock=SystemClock(),
            listener=Silent(),
            secrets={},
            cwd=None,
            probe=ProbeSettings(),
        )
        for number in range(1, count + 1):
            decisions.append(time.time())
            run_attempt(site, _attempt(number, host.name, folder, stamps), {})
            report.write(journal)
        wait_for_ends(watch, count)
    return times(decisions, stamps, watch)


def _attempt(number: int, host: str, folder: Path, stamps: Path) -> Attempt:
    return Attempt(
        number=number,
        cell=Cell({"attempt": number}),
        build="standin",
        model="standin",
        python=sys.executable,
        argv=(str(SERVER), str(stamps)),
        env={},
        launch_key=str(number),
        host=host,
        port=free_port(),
        why="measured",
        started_at=stamp(time.time()),
        keeper_dir=str(folder / "onhost" / f"{number:04d}"),
    )


def by_hand(folder: Path, count: int, ssh: str) -> Times:
    """Run the shell loop; `ssh` is what stands before each command."""
    stamps = folder / "stamps"
    log = folder / "log"
    launch = f"setsid nohup {sys.executable} {SERVER} {stamps} > {log} 2>&1 < /dev/null"
    fatal = f'tail -n 15 {log} | grep -qE "Traceback|out of memory|sigquit"'
    script = f"""
        for i in $(seq {count}); do
          echo "decision $(date +%s.%N) 0" >> {stamps}
          {ssh} '{launch} & echo $! > {folder}/pid'
          while sleep 1; do
            {ssh} '{fatal} || ! kill -0 $(cat {folder}/pid)' && break
          done
          {ssh} 'kill -9 -- -$(cat {folder}/pid) 2>/dev/null; sleep 1; true'
        done
    """
    with GroupWatch(stamps) as watch:
        subprocess.run(["/bin/bash", "-c", script], check=True)
        wait_for_ends(watch, count)
    decisions = [when for word, when, _ in read(stamps) if word == "decision"]
    return times(decisions, stamps, watch)


def wait_for_ends(watch: GroupWatch, count: int) -> None:
    """Wait until every group was seen to end."""
    until = time.time() + 30
    while len(watch.ends) < count and time.time() < until:
        time.sleep(LOOK_S)


def times(decisions: list[float], stamps: Path, watch: GroupWatch) -> Times:
    """Join decisions, stamps and ends."""
    execs = [(when, pid) for word, when, pid in read(stamps) if word == "exec"]
    fatal = {pid: when for word, when, pid in read(stamps) if word == "fatal"}
    found = Times()
    for index, (when, pid) in enumerate(execs):
        found.to_exec.append(when - decisions[index])
        found.to_end.append(watch.ends[pid] - fatal[pid])
        if index + 1 < len(execs):
            found.to_next.append(execs[index + 1][0] - watch.ends[pid])
    return found


def main() -> None:
    """Measure and print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows: dict[str, Times] = {}
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        folder = Path(name)
        with running_sshd(folder / "sshd") as sshd:
            for case in ("tool-local", "tool-ssh", "hand-local", "hand-ssh"):
                (folder / case).mkdir()
            rows["the tool, local"] = with_the_tool(LocalHost(), folder / "tool-local", count)
            host = SshHost(sshd.target())
            rows["the tool, ssh"] = with_the_tool(host, folder / "tool-ssh", count)
            host.close()
            rows["shell loop, local"] = by_hand(folder / "hand-local", count, "bash -c")
            rows["shell loop, ssh"] = by_hand(folder / "hand-ssh", count, command_of(sshd))
    show(rows, count)


def command_of(sshd: Sshd) -> str:
    """Return the ssh command that reaches the same server."""
    target = sshd.target()
    known = (target.known_hosts or ("",))[0]
    return (
        f"ssh -o BatchMode=yes -o UserKnownHostsFile={known} -p {target.port} -i {target.key} "
        f"{target.user or os.environ.get('USER', 'root')}@{target.host}"
    )


def show(rows: dict[str, Times], count: int) -> None:
    """Print medians, and each as a ratio of the shell loop on the same road."""
    print(f"median seconds of {count} attempts; ratio against the shell loop of the same road")
    print(f"{'':20}{'decision to exec':>22}{'fatal to group end':>22}{'end to next exec':>22}")
    for name, row in rows.items():
        other = rows["shell loop, ssh" if name.endswith("ssh") else "shell loop, local"]
        cells = []
        for mine, theirs in (
            (row.to_exec, other.to_exec),
            (row.to_end, other.to_end),
            (row.to_next, other.to_next),
        ):
            value, base = statistics.median(mine), statistics.median(theirs)
            cells.append(f"{value:.2f} s ({value / base:.2f}x)")
        print(f"{name:20}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
