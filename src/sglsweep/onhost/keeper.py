"""The keeper: owns one attempt on the host. `docs/keeper.md` is its contract.

One file, standard library only, Python 3.8 and later: it is copied to a machine of which nothing
else is known. It outlives the link and the controller; all it knows stands in the attempt's
folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import json
import os
import pwd
import queue
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, NoReturn, Optional, Set, Tuple

Json = Dict[str, Any]

SCHEMA = 1
MARKER_NAME = "SGLSWEEP_MARKER"
EXIT_OK, EXIT_LEFT, EXIT_USAGE, EXIT_PORT_TAKEN, EXIT_NOT_STARTED = 0, 1, 2, 4, 5

TICK_S = 0.05
BEAT_S = 1.0
BEATS_PER_LOOK = 5
GPU_PERIOD_S = 5.0
GPU_BUSY_PERIOD_S = 1.0
GPU_END_PERIOD_S = 0.25
# The grace of `docs/keeper.md`; a stop request may carry its own.
PARENT_GRACE_S = 15.0
GROUP_GRACE_READY_S = 5.0
GROUP_GRACE_LOADING_S = 10.0
# PR_SET_PDEATHSIG ends SGLang's children within 2.5 s of their parent (0.4.6 and later).
ORPHAN_GRACE_S = 5.0
FLOOD_GRACE_S = 2.0
KILL_PATIENCE_S = 15.0
GPU_PATIENCE_S = 60.0
PORT_PATIENCE_S = 10.0
# A card's own use wanders by some MiB; a CUDA context alone is several hundred.
GPU_SLACK_MIB = 128
# No SGLang touches a GPU this early: a first figure taken until then is "before the start".
GPU_BEFORE_S = 4.0

BODY_BYTES = 262_144
MAX_CHUNKS = 4_096
MAX_THREADS = 512
MAX_TOOL_BYTES = 64_000_000
TOOL_GRACE_S = 3.0
MAX_LISTED = 512
MAX_TITLE = 400
STATE_ROOM = 8_192

COMPILERS = frozenset(
    ("nvcc", "cicc", "ptxas", "nvlink", "fatbinary", "cudafe++", "ninja", "cc1plus", "cc1", "gcc",
     "g++", "c++", "clang", "clang++", "hipcc", "amdclang++", "lld", "ld", "cmake")
)  # fmt: skip


# --- what /proc says ------------------------------------------------------------------------


class Proc(NamedTuple):
    """One line of /proc/PID/stat; `start` in clock ticks since boot tells a reused pid."""

    pid: int
    ppid: int
    pgrp: int
    session: int
    start: int
    state: str
    cpu_ticks: int
    threads: int
    name: str

    @property
    def is_alive(self) -> bool:
        """A zombie is not, unless only its first thread has ended."""
        return self.state not in "ZXx" or self.threads > 1


def read_bytes(path: str) -> bytes:
    """Return a file of /proc, b"" if it is gone or not ours to read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def file_size(path: str) -> int:
    """Return the bytes of a file, 0 if it is gone."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def is_plain_file(path: str) -> bool:
    """Tell whether it is a file itself: no link, no pipe, no socket."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def read_proc(pid: int) -> Optional[Proc]:
    """Return what the kernel says of a pid now, None if there is no such process."""
    # The name may hold spaces and brackets: everything after the last ")" is fixed.
    head, _, tail = read_bytes("/proc/%d/stat" % pid).rpartition(b")")
    if not head:
        return None
    field = tail.split()
    return Proc(
        pid=pid,
        ppid=int(field[1]),
        pgrp=int(field[2]),
        session=int(field[3]),
        start=int(field[19]),
        state=field[0].decode(),
        cpu_ticks=int(field[11]) + int(field[12]),
        threads=int(field[17]),
        name=head.partition(b"(")[2].decode("utf-8", "replace"),
    )


def is_alive(pid: Optional[int], start: Optional[int]) -> bool:
    """Tell whether the very process that had this pid at that start still lives."""
    proc = read_proc(pid) if pid else None
    return proc is not None and proc.start == start and proc.is_alive


def all_pids() -> List[int]:
    """Return every pid there is."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_title(pid: int) -> str:
    """Return the command line as `ps` shows it, the bare name for a process without one."""
    raw = read_bytes("/proc/%d/cmdline" % pid).strip(b"\0 ")
    if not raw:
        raw = read_bytes("/proc/%d/comm" % pid).strip()
    return raw.replace(b"\0", b" ").decode("utf-8", "replace")


def read_marker(pid: int) -> Optional[str]:
    """Return the marker in a process's environment, None without one or without leave to look."""
    wanted = MARKER_NAME.encode() + b"="
    for entry in read_bytes("/proc/%d/environ" % pid).split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode("utf-8", "replace")
    return None


def read_cards(environ: bytes) -> Optional[Set[str]]:
    """Return the cards that an environment names, None where it names none."""
    wanted = b"CUDA_VISIBLE_DEVICES="
    for entry in environ.split(b"\0"):
        if entry.startswith(wanted):
            return set(entry[len(wanted) :].decode("utf-8", "replace").split(","))
    return None


def has_neighbours(marker: str, own_cards: Optional[Set[str]], pids: Iterable[int]) -> bool:
    """Tell whether one of `pids` is another attempt's server that may have some of our cards."""
    for pid in pids:
        theirs = read_marker(pid)
        if theirs is None or theirs == marker:
            continue
        cards = read_cards(read_bytes("/proc/%d/environ" % pid))
        proc = read_proc(pid)
        is_apart = own_cards is not None and cards is not None and not own_cards & cards
        if proc is not None and proc.is_alive and not is_apart:
            return True
    return False


def read_boot_id() -> str:
    """Return the name the kernel gave this boot; pids of another boot mean nothing."""
    return read_bytes("/proc/sys/kernel/random/boot_id").decode().strip()


def send_signal(proc: Proc, number: int) -> bool:
    """Signal exactly this process; False if it is gone, or its pid is somebody else's by now."""
    pidfd = -1
    if hasattr(os, "pidfd_open"):  # Linux 5.3, Python 3.9: no gap between the look and the signal
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(proc.pid)
    try:
        now = read_proc(proc.pid)
        if now is None or now.start != proc.start:
            return False
        if pidfd >= 0:
            signal.pidfd_send_signal(pidfd, number)
        else:
            os.kill(proc.pid, number)
    except OSError:
        return False
    else:
        return True
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def describe(proc: Proc, redact: Callable[[str], str] = str) -> Json:
    """Return a process as `state.json` lists it."""
    # Cut after the secrets are out: half a value would stay.
    title = mask_options(redact(read_title(proc.pid)))[:MAX_TITLE] or proc.name
    return {"pid": proc.pid, "start": proc.start, "title": title, "state": proc.state}


def mask_options(title: str) -> str:
    """Hide what follows options that take a secret; a later look does not know its value."""
    shown = re.sub(r"(--[\w-]*(?:key|token|password|secret)[= ])(?!\$\{)\S+", r"\1***", title)
    # guidellm takes its key within JSON.
    return re.sub(r"(\"api_key\": *\")(?!\$\{)(?:[^\"\\]|\\.)+", r"\1***", shown)


# --- who listens on the port ----------------------------------------------------------------


class Listening(NamedTuple):
    """One listening TCP socket."""

    address: str
    inode: int
    uid: int


def decode_address(text: str) -> str:
    """Return the address that /proc/net/tcp and tcp6 write as hexadecimal words."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    raw = struct.pack("=%dI" % len(words), *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, raw)


def find_listening(port: int) -> List[Listening]:
    """Return the sockets that listen on a port, the one that 127.0.0.1 reaches first."""
    found = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read_bytes(path).decode().splitlines()[1:]:
            field = line.split()
            address, _, local = field[1].partition(":")
            if field[3] == "0A" and int(local, 16) == port:
                found.append(Listening(decode_address(address), int(field[9]), int(field[7])))
    reach = ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::1"]
    return sorted(
        found, key=lambda s: reach.index(s.address) if s.address in reach else len(reach)
    )


def find_owner(inode: int, pids: Iterable[int]) -> Optional[int]:
    """Return the first of `pids` that holds the socket; None if none does, or hides it."""
    wanted = "socket:[%d]" % inode
    for pid in pids:
        folder = "/proc/%d/fd" % pid
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            with contextlib.suppress(OSError):
                if os.readlink(folder + "/" + name) == wanted:
                    return pid
    return None


def user_name(uid: int) -> str:
    """Return the name of a user, its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def find_holder(port: int) -> Optional[Json]:
    """Return who keeps a server from binding the port; None if nobody does."""
    for listening in find_listening(port):
        pid = find_owner(listening.inode, all_pids())
        return {
            "pid": pid,
            "start": getattr(read_proc(pid) if pid else None, "start", None),
            "title": mask_options(read_title(pid)) if pid else None,
            "user": user_name(listening.uid),
            "address": listening.address,
            "marker": read_marker(pid) if pid else None,
        }
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.closing(probe):
        # As uvicorn binds: what is only waiting in TIME_WAIT does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                unknown = "a socket that is bound and does not listen"
                return {"pid": None, "start": None, "title": unknown, "user": None,
                        "address": "127.0.0.1", "marker": None}  # fmt: skip
    return None


# --- secrets --------------------------------------------------------------------------------


class Secrets:
    """Values that the server needs and nobody may read: put in at the start, taken out after."""

    def __init__(self, values: Dict[str, str]) -> None:
        self.values = {name: value for name, value in values.items() if value}
        forms: Dict[bytes, bytes] = {}
        for name, value in self.values.items():
            for form in self._forms_of(value):
                forms.setdefault(form.encode("utf-8", "surrogateescape"), b"${%s}" % name.encode())
        self.patterns = sorted(forms.items(), key=lambda pair: -len(pair[0]))
        self.longest = len(self.patterns[0][0]) if self.patterns else 0

    @staticmethod
    def _forms_of(value: str) -> Set[str]:
        """Return a value as it may stand in a log: plain, quoted, in a URL, line by line."""
        forms = {
            value,
            repr(value)[1:-1],
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
        }
        forms |= {urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)}
        lines = value.splitlines()
        shortest_line = 8
        if len(lines) > 1:
            forms |= {line for line in lines if len(line) >= shortest_line}
        return forms

    def put_in(self, text: str) -> str:
        """Replace `${NAME}` by the value."""
        for name, value in self.values.items():
            text = text.replace("${%s}" % name, value)
        return text

    def redact(self, text: str) -> str:
        """Replace every value by `${NAME}`."""
        if not self.patterns:
            return text
        return self.clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")

    def clean(self, raw: bytes) -> bytes:
        """Replace every value by `${NAME}`; all other bytes stay as they are."""
        return b"".join(self._clean(raw, len(raw)))

    def cut(self, raw: bytes) -> Tuple[bytes, bytes]:
        """Return what may be written now, redacted, and the tail that might begin a value."""
        hold = self._hold_from(raw)
        spans = self._spans(raw)
        for begin, end, _ in spans:
            if begin < hold < end:
                hold = begin
        written = b"".join(self._clean(raw, hold))
        return written, raw[hold:]

    def last(self, raw: bytes) -> bytes:
        """Return the held tail for the end of the log: no half of a value either."""
        shortest_half = 4
        for pattern, name in self.patterns:
            if len(raw) >= shortest_half and pattern.startswith(raw):
                return name
        return b"".join(self._clean(raw, len(raw)))

    def _hold_from(self, raw: bytes) -> int:
        for at in range(max(0, len(raw) - self.longest + 1), len(raw)):
            tail = raw[at:]
            if any(len(p) > len(tail) and p.startswith(tail) for p, _ in self.patterns):
                return at
        return len(raw)

    def _spans(self, raw: bytes) -> List[Tuple[int, int, bytes]]:
        """Return where values stand, overlapping ones joined, in order."""
        found = []
        for pattern, name in self.patterns:
            at = raw.find(pattern)
            while at >= 0:
                found.append((at, at + len(pattern), name))
                at = raw.find(pattern, at + 1)
        joined: List[Tuple[int, int, bytes]] = []
        for begin, end, name in sorted(found, key=lambda span: (span[0], -span[1])):
            if joined and begin < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]), joined[-1][2])
            else:
                joined.append((begin, end, name))
        return joined

    def _clean(self, raw: bytes, until: int) -> Iterable[bytes]:
        at = 0
        for begin, end, name in self._spans(raw):
            if begin >= until:
                break
            yield raw[at:begin]
            yield name
            at = end
        yield raw[at : max(at, until)]


def pump(source: int, log: int, secrets: Secrets, max_bytes: int) -> None:
    """Copy the server's output into the log without the secrets, until its last writer is gone.

    A full disk or a full log drops output; the server must never wait for us.
    """
    held, too_much = b"", 1 << 20
    while True:
        chunk = os.read(source, 1 << 16)
        if not chunk:
            break
        ready, held = secrets.cut(held + chunk)
        if len(held) > too_much:
            ready, held = ready + secrets.last(held), b""
        write_some(log, ready, max_bytes)
    write_some(log, secrets.last(held), max_bytes)


def write_some(log: int, text: bytes, max_bytes: int) -> None:
    """Append what the disk and the limit allow."""
    text = text[: max(0, max_bytes - os.fstat(log).st_size)]
    with contextlib.suppress(OSError):
        while text:
            text = text[os.write(log, text) :]


# --- the attempt's processes ----------------------------------------------------------------


class Tree:
    """The processes of one attempt, wherever they went.

    Ours is what carries the marker; what is in the recorded session and did not start before it;
    what descends from one of ours; and what was ours once (a process title may overwrite the
    environment, a rank may leave the session, but pid and start stay).
    """

    def __init__(self, marker: str, session: int, session_start: int) -> None:
        self.marker = marker
        self.session = session
        self.session_start = session_start
        self.known: Dict[int, int] = {}
        self.reaper: Optional[int] = None
        self.is_watched = False
        self.helpers: Set[int] = {os.getpid()}
        self.waited_for: Set[int] = {session}
        self.lock = threading.Lock()
        self._foreign: Dict[int, int] = {}
        self._leads = False

    def look(self, is_thorough: bool = True) -> List[Proc]:  # noqa: FBT001, FBT002 - this file's
        """Return every living process of ours.

        A machine with hundreds of cores has thousands of kernel threads: a look that is not
        thorough passes over pids that were foreign, though one may have been given out again.
        """
        with self.lock:
            helpers = set(self.helpers)
            pids = all_pids()
        passed = {} if is_thorough else {p: self._foreign[p] for p in pids if p in self._foreign}
        table: Dict[int, Proc] = {}
        for pid in pids:
            proc = None if pid in passed else read_proc(pid)
            if proc is not None and pid not in helpers:
                table[pid] = proc
        self._leads = self._is_session_ours()
        ours = {pid for pid, proc in table.items() if self._is_ours(proc)}
        self._add_descendants(ours, table)
        self.known = {pid: table[pid].start for pid in ours}
        foreign = {pid: proc.start for pid, proc in table.items() if pid not in ours}
        self._foreign = {**passed, **foreign}
        self._reap(table)
        return [table[pid] for pid in sorted(ours) if table[pid].is_alive]

    def _is_session_ours(self) -> bool:
        """Tell whether the session's number still means our session.

        A number is given out again only when its session is empty, so its living leader proves it.
        Without a leader only the keeper may go by it, who has watched the session all the while.
        """
        leader = read_proc(self.session)
        return self.is_watched if leader is None else leader.start == self.session_start

    def _is_ours(self, proc: Proc) -> bool:
        if self.known.get(proc.pid) == proc.start:
            return True
        if self._leads and proc.session == self.session and proc.start >= self.session_start:
            return True
        if self.reaper is not None and proc.ppid == self.reaper:
            return True
        # Only a descendant of ours has our marker, and it has it from birth: one look is enough.
        if not self.marker or self._foreign.get(proc.pid) == proc.start:
            return False
        return proc.start >= self.session_start and read_marker(proc.pid) == self.marker

    @staticmethod
    def _add_descendants(ours: Set[int], table: Dict[int, Proc]) -> None:
        children: Dict[int, List[int]] = {}
        for proc in table.values():
            children.setdefault(proc.ppid, []).append(proc.pid)
        todo = list(ours)
        while todo:
            for child in children.get(todo.pop(), ()):
                if child not in ours:
                    ours.add(child)
                    todo.append(child)

    def _reap(self, table: Dict[int, Proc]) -> None:
        """Bury orphans that fell to us; what has a Popen of its own is left to that."""
        for proc in table.values():
            if proc.ppid != os.getpid() or proc.pid in self.waited_for:
                continue
            if proc.state == "Z":
                with contextlib.suppress(OSError):
                    os.waitpid(proc.pid, os.WNOHANG)

    def send(self, number: int, procs: Iterable[Proc]) -> List[int]:
        """Signal the group at once, then each of ours outside it; return who got it."""
        procs = list(procs)
        if any(proc.pgrp == self.session for proc in procs):
            # A pid is not given out again while a group has its number: the group is ours.
            with contextlib.suppress(OSError):
                os.killpg(self.session, number)
        outside = [proc for proc in procs if proc.pgrp != self.session]
        for proc in outside:
            send_signal(proc, number)
        return [proc.pid for proc in procs]


def become_reaper() -> bool:
    """Let orphans of the server fall to the keeper, where descent still shows whose they are."""
    try:
        import ctypes

        set_child_subreaper = 36
        return int(ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)) == 0
    except (ImportError, OSError, AttributeError):
        return False


# --- life signs -----------------------------------------------------------------------------


class Gpus:
    """What nvidia-smi says, asked in a thread of its own: a broken driver lets it hang."""

    def __init__(
        self, tree: Tree, which: Optional[List[int]], redact: Callable[[str], str]
    ) -> None:
        self.program = shutil.which("nvidia-smi")
        self.period_s = GPU_PERIOD_S
        self.before: Optional[List[int]] = None
        self.holders: List[Json] = []
        self.pids: Optional[List[int]] = None
        self.figures: List[Tuple[int, int, int]] = []
        self.taken_at = 0.0
        self._tree = tree
        self._which = which
        self._redact = redact
        self._started = time.monotonic()
        self._wake = threading.Event()
        if self.program:
            threading.Thread(target=self._follow, daemon=True).start()

    def hurry(self, period_s: float) -> None:
        """Ask more often from now on; at the end who is there too, since that decides."""
        self.period_s = period_s
        self.pids = None
        self._wake.set()

    def used_mib(self) -> List[int]:
        """Return the memory in use on each card, in MiB; empty without a card."""
        return [figure[0] for figure in self.figures]

    def is_back(self, since: float) -> bool:
        """Tell whether a figure younger than `since` is at most what it was before the start."""
        if self.taken_at < since:
            return False
        pairs = zip(self.used_mib(), self.before or [])  # noqa: B905 - Python 3.10
        return all(used <= before + GPU_SLACK_MIB for used, before in pairs)

    def _follow(self) -> None:
        while True:
            asked_at = time.monotonic()
            figures = self._ask()
            if self.period_s <= GPU_END_PERIOD_S:
                self.pids = [holder["pid"] for holder in self._ask_holders()]
            if figures:
                self.figures, self.taken_at = figures, asked_at
                if self.before is None and time.monotonic() - self._started < GPU_BEFORE_S:
                    self.holders = self._ask_holders()
                    self.before = self.used_mib()
            self._wake.wait(self.period_s)
            self._wake.clear()

    def _ask(self) -> List[Tuple[int, int, int]]:
        lines = self._query("--query-gpu=memory.used,utilization.gpu,power.draw")
        return [parse_gpu_line(line) for line in lines if line.count(",") > 1]

    def _ask_holders(self) -> List[Json]:
        """Return who holds memory now; a container does not show the processes of others."""
        found = []
        for line in self._query("--query-compute-apps=pid,used_memory"):
            pid, _, used = (part.strip() for part in line.partition(","))
            if pid.isdigit() and read_marker(int(pid)) != self._tree.marker:
                # It may be an earlier server of the same sweep, with the same secrets.
                title = mask_options(self._redact(read_title(int(pid))))[:MAX_TITLE] or None
                mib = int(used) if used.isdigit() else None
                found.append({"pid": int(pid), "title": title, "used_mib": mib})
        return found[:MAX_LISTED]

    def _query(self, what: str) -> List[str]:
        command = [str(self.program), "--format=csv,noheader,nounits", what]
        if self._which:
            command.append("--id=" + ",".join(str(number) for number in self._which))
        child = None
        try:
            with self._tree.lock:
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
                self._tree.helpers.add(child.pid)
            text = child.communicate(timeout=20.0)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            if child is not None:
                child.kill()
                child.wait()
            return []
        except OSError:
            return []
        self._tree.helpers.discard(child.pid)
        return text.splitlines()


def parse_gpu_line(line: str) -> Tuple[int, int, int]:
    """Return MiB, percent and watts; 0 for what a card does not tell (`[N/A]`)."""
    numbers = [re.match(r"\s*(\d+)", part) for part in line.split(",")]
    values = [int(found.group(1)) if found else 0 for found in numbers]
    return values[0], values[1], values[2]


class LifeSigns:
    """Sums that grow while a silent server works; what an ended process did stays counted."""

    def __init__(self) -> None:
        self._cpu: Dict[Tuple[int, int], int] = {}
        self._io: Dict[Tuple[int, int], Tuple[int, int]] = {}

    def read(self, procs: List[Proc], log_bytes: int, gpus: Gpus) -> Json:
        """Return `life` of `state.json`."""
        for proc in procs:
            self._cpu[proc.pid, proc.start] = proc.cpu_ticks
            done = read_io(proc.pid)
            if done is not None:
                self._io[proc.pid, proc.start] = done
        return {
            "log_bytes": log_bytes,
            "cpu_s": round(sum(self._cpu.values()) / float(os.sysconf("SC_CLK_TCK")), 2),
            "read_bytes": sum(done[0] for done in self._io.values()),
            "read_chars": sum(done[1] for done in self._io.values()),
            "net_rx_bytes": read_received(),
            "page_cache_bytes": read_page_cache(),
            "gpu_used_mib": gpus.used_mib(),
            "gpu_util": [figure[1] for figure in gpus.figures],
            "gpu_power_w": [figure[2] for figure in gpus.figures],
            "compilers": sorted({proc.name for proc in procs if proc.name in COMPILERS}),
        }


def read_io(pid: int) -> Optional[Tuple[int, int]]:
    """Return bytes fetched from disk, and bytes that read calls returned (sockets, NFS, cache)."""
    lines = read_bytes("/proc/%d/io" % pid).decode().splitlines()
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    if "read_bytes" not in values:
        return None
    return int(values["read_bytes"]), int(values["rchar"])


def read_page_cache() -> int:
    """Return the size of the machine's page cache in bytes."""
    found = re.search(rb"^Cached:\s+(\d+) kB", read_bytes("/proc/meminfo"), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def read_received() -> int:
    """Return the bytes that the machine's network cards have received, loopback aside."""
    lines = read_bytes("/proc/net/dev").decode().splitlines()[2:]
    pairs = (line.strip().split(":", 1) for line in lines)
    return sum(int(rest.split()[0]) for name, rest in pairs if name != "lo")


def read_oom_kills() -> Json:
    """Return how often the kernel's OOM killer struck: on this machine, and in our cgroup."""
    host = re.search(rb"^oom_kill (\d+)", read_bytes("/proc/vmstat"), re.MULTILINE)
    group = read_bytes("/proc/self/cgroup").decode().strip().rpartition("::")[2]
    events = read_bytes("/sys/fs/cgroup%s/memory.events" % group.rstrip("/"))
    inside = re.search(rb"^oom_kill (\d+)", events, re.MULTILINE)
    return {
        "host": int(host.group(1)) if host else None,
        "cgroup": int(inside.group(1)) if inside else None,
    }


# --- questions put to the server ------------------------------------------------------------


class HttpAsk:
    """The requests of one ask, so many at a time, all of them answered whatever happens."""

    def __init__(self, ask: Json, address: str, port: int, secrets: Secrets) -> None:
        self.responses: List[Json] = []
        self._requests: "queue.Queue[Json]" = queue.Queue()
        for request in ask.get("requests", []):
            self._requests.put(request)
        self._where = (address, port)
        self._secrets = secrets
        self._started = time.monotonic()
        self._limit_s = float(ask.get("timeout_s") or 60.0)
        self._running: Dict[int, Exchange] = {}
        self._lock = threading.Lock()
        self.given_up: Optional[str] = None
        count = max(1, min(int(ask.get("concurrency") or 1), MAX_THREADS, self._requests.qsize()))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def is_done(self) -> bool:
        """Look after the time limits; True once every request has its answer."""
        now = time.monotonic()
        if now - self._started > self._limit_s:
            self.give_up("timeout")
        with self._lock:
            running = list(self._running.values())
        for exchange in running:
            if now > exchange.deadline:
                exchange.cut("timeout")
        return not any(thread.is_alive() for thread in self._threads)

    def give_up(self, why: str) -> None:
        """End what runs, with `why` as its error, and start nothing more."""
        self.given_up = self.given_up or why
        with self._lock:
            running = list(self._running.values())
        for exchange in running:
            exchange.cut(self.given_up)

    def _work(self) -> None:
        while True:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return
            exchange = Exchange(request, self._where, self._secrets, self._limit_s)
            with self._lock:
                self._running[id(exchange)] = exchange
            if self.given_up:
                exchange.cut(self.given_up)
            answer = exchange.run(self._started)
            with self._lock:
                del self._running[id(exchange)]
                self.responses.append(answer)


class Exchange:
    """One request and its response."""

    def __init__(
        self, request: Json, where: Tuple[str, int], secrets: Secrets, limit_s: float
    ) -> None:
        self._request = request
        self._secrets = secrets
        self._started = time.monotonic()
        self._timeout_s = float(request.get("timeout_s") or limit_s)
        self.deadline = self._started + self._timeout_s
        # http.client knows nothing of proxies in the environment; urllib would follow them.
        self._connection = http.client.HTTPConnection(*where, timeout=self._timeout_s)
        self._cut_by: Optional[str] = None
        self._body = bytearray()
        self._answer: Json = {
            "id": request.get("id"), "status": None, "error": None, "body": "",
            "truncated": False, "first_byte_s": None, "chunks": [],
        }  # fmt: skip

    def cut(self, why: str) -> None:
        """End it from another thread, where a socket's own time limit would wait on."""
        self._cut_by = self._cut_by or why
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def run(self, asked_at: float) -> Json:
        """Ask and return the response; every failure is an `error`."""
        self._answer["started_s"] = round(self._started - asked_at, 4)
        try:
            if self._cut_by is None:
                self._exchange()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._answer["error"] = self._secrets.redact(error_name(error))
        finally:
            with contextlib.suppress(OSError):
                self._connection.close()
        if self._cut_by and (self._answer["error"] or not self._answer.get("complete")):
            self._answer["error"] = self._cut_by
        self._answer.pop("complete", None)
        self._answer["elapsed_s"] = self._age()
        self._answer["body"] = self._secrets.redact(bytes(self._body).decode("utf-8", "replace"))
        return self._answer

    def _age(self) -> float:
        return round(time.monotonic() - self._started, 4)

    def _exchange(self) -> None:
        body = self._request.get("body")
        headers = {"Content-Type": "application/json"} if body is not None else {}
        for name, value in (self._request.get("headers") or {}).items():
            headers[str(name)] = self._secrets.put_in(str(value))
        raw = None if body is None else json.dumps(body).encode()
        method = str(self._request.get("method") or "GET")
        self._connection.connect()
        if self._cut_by:  # it came while there was no socket to shut
            return
        self._connection.request(method, str(self._request["path"]), raw, headers)
        response = self._connection.getresponse()
        self._answer["status"] = response.status
        self._answer["first_byte_s"] = self._age()
        read = self._read_events if self._request.get("stream") else self._read_whole
        read(response)
        self._answer["complete"] = True

    def _read_whole(self, response: http.client.HTTPResponse) -> None:
        while True:
            piece = response.read1(1 << 16)
            if not piece:
                break
            self._keep(piece)
        # read1 takes a connection that ends early for the end of the body; the length tells.
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)

    def _read_events(self, response: http.client.HTTPResponse) -> None:
        arrivals = self._answer["chunks"]
        while True:
            line = response.readline(1 << 20)
            if not line:
                return
            if line.startswith(b"data:") and len(arrivals) < MAX_CHUNKS:
                arrivals.append(self._age())
            self._keep(line)

    def _keep(self, piece: bytes) -> None:
        room = BODY_BYTES - len(self._body)
        self._body += piece[:room]
        if len(piece) > room:
            self._answer["truncated"] = True


class ToolRun:
    """One run of a load tool (`do: run`): a child of ours with the attempt's marker."""

    def __init__(self, ask: Json, folder: str, spec: Json, secrets: Secrets, tree: Tree) -> None:
        self._folder = folder
        self._read = [str(name) for name in ask.get("read") or ()]
        self._secrets = secrets
        self._started = time.monotonic()
        self._limit_s = float(ask.get("timeout_s") or 60.0)
        self._give_up_at: Optional[float] = None
        self._error: Optional[str] = None
        self._child: Optional["subprocess.Popen[bytes]"] = None
        self._output = os.path.join(folder, "output")
        argv = [str(word).replace("{folder}", folder) for word in ask.get("argv") or ()]
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._child = self._popen(argv, ask.get("env") or {}, spec)
            tree.waited_for.add(self._child.pid)
        except (OSError, ValueError, IndexError) as error:
            self._error = secrets.redact("cannot run %s: %s" % (argv[:1], error))

    def _popen(self, argv: List[str], more: Json, spec: Json) -> "subprocess.Popen[bytes]":
        environment = dict(os.environ)
        for name, value in {**(spec.get("env") or {}), **more}.items():
            environment[name] = self._secrets.put_in(str(value))
        environment[MARKER_NAME] = str(spec["marker"])
        with open(self._output, "ab") as output:
            return subprocess.Popen(
                [self._secrets.put_in(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=spec.get("cwd") or os.path.expanduser("~"),
                start_new_session=True,
            )

    def is_done(self) -> bool:
        """Look after the limits; True once the tool is gone."""
        if self._child is None:
            return True
        now = time.monotonic()
        if now - self._started > self._limit_s:
            self.give_up("timeout")
        elif file_size(self._output) > MAX_TOOL_BYTES:
            self.give_up("too much output")
        is_over = self._child.poll() is not None
        is_late = self._give_up_at is not None and now - self._give_up_at > TOOL_GRACE_S
        if is_late or (is_over and self._give_up_at is not None):
            # Its workers may outlive it; else only the end of the attempt would end them.
            self._signal(signal.SIGKILL)
        return is_over

    def give_up(self, why: str) -> None:
        """End it; `why` is its error."""
        if self._give_up_at is None and self._child is not None:
            self._error = why
            self._give_up_at = time.monotonic()
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._child is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._child.pid, number)

    def answer(self) -> Json:
        """Return what it came to; no secret is left in what it wrote."""
        self._redact_files()
        text = self._text("output") or ""
        return {
            "exit_status": None if self._child is None else self._child.returncode,
            "error": self._error,
            "elapsed_s": round(time.monotonic() - self._started, 3),
            "output": text[-BODY_BYTES:],
            "files": {name: self._text(name) for name in self._read},
        }

    def _text(self, name: str) -> Optional[str]:
        path = os.path.join(self._folder, name)
        raw = read_bytes(path) if is_plain_file(path) else None
        return None if raw is None else raw[:MAX_TOOL_BYTES].decode("utf-8", "replace")

    def _redact_files(self) -> None:
        """Take secrets out of what the tool left: results repeat the server's own arguments.

        Of plain files alone: a link may lead out of the folder, a pipe would never end.
        """
        if not self._secrets.values:
            return
        for where, _, names in os.walk(self._folder):
            for path in (os.path.join(where, name) for name in names):
                if not is_plain_file(path):
                    continue
                try:
                    self._redact_file(path)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(path)

    def _redact_file(self, path: str) -> None:
        if file_size(path) > MAX_TOOL_BYTES:
            os.unlink(path)
            return
        with open(path, "rb") as file:
            raw = file.read()
        clean = self._secrets.clean(raw)
        if clean != raw:
            with open(path, "wb") as file:
                file.write(clean)


def error_name(error: Exception) -> str:
    """Return the word of `docs/keeper.md` for a failed request."""
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    reset = (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)
    if isinstance(error, (*reset, http.client.IncompleteRead)):
        return "reset"
    return "%s: %s" % (type(error).__name__, error)


# --- the end of a tree ----------------------------------------------------------------------


class Graces(NamedTuple):
    """Seconds before the next step; the parent's is for a ready server only."""

    parent_s: float
    group_s: float
    orphan_s: float = ORPHAN_GRACE_S

    @classmethod
    def of(cls, ask: Json, spec: Json, is_ready: bool) -> Graces:  # noqa: FBT001 - private
        """Return what a stop request asks for, else the spec, else `docs/keeper.md`."""
        usual = {
            "parent_grace_s": PARENT_GRACE_S,
            "group_grace_s": GROUP_GRACE_READY_S if is_ready else GROUP_GRACE_LOADING_S,
            "orphan_grace_s": ORPHAN_GRACE_S,
        }
        for wish in (spec, ask):
            usual.update({name: float(wish[name]) for name in usual if wish.get(name) is not None})
        return cls(usual["parent_grace_s"], usual["group_grace_s"], usual["orphan_grace_s"])


class Ending:
    """Ends a tree in the order that SGLang needs and writes down how that went.

    Once ready, TERM goes to the parent alone: sent to the group it looks like a crash of the
    ranks and the parent ends -9. While loading, TERM to the parent alone leaves the ranks behind.
    """

    def __init__(
        self, tree: Tree, pause: Callable[[], None], redact: Callable[[str], str]
    ) -> None:
        self._tree = tree
        self._pause = pause
        self._redact = redact
        self._started = time.monotonic()
        self.report: Json = {
            "asked_at": time.time(), "is_ready": False, "signals": [], "ignored": [], "left": [],
            "tree_gone_s": None, "gpu_free_s": None, "gpu_left_mib": None, "port_free_s": None,
            "port_holder": None, "total_s": None,
        }  # fmt: skip

    def run(self, is_ready: bool, graces: Graces) -> bool:  # noqa: FBT001 - private to this file
        """Signal until nothing of ours lives; False if something would not die."""
        self.report["is_ready"] = is_ready
        alive = self._tree.look()
        parent = [proc for proc in alive if proc.pid == self._tree.session]
        if is_ready and parent:
            self._note("TERM", "parent", parent)
            send_signal(parent[0], signal.SIGTERM)
            alive = self._wait_for_parent(parent[0], graces)
            self._blame("TERM", [proc for proc in alive if proc.pid == parent[0].pid])
        if alive:
            self._note("TERM", "group", alive)
            self._tree.send(signal.SIGTERM, alive)
            alive = self._wait(graces.group_s)
            self._blame("TERM", alive)
        return self.kill(alive)

    def kill(self, alive: List[Proc]) -> bool:
        """KILL and look again until two looks in a row find nothing."""
        until = time.monotonic() + KILL_PATIENCE_S
        empty_looks = 0
        told: Set[int] = set()
        while empty_looks < 2 and time.monotonic() < until:  # noqa: PLR2004 - a look is not atomic
            new = [proc for proc in alive if proc.pid not in told]
            if new:
                self._note("KILL", "group", new)
                told.update(proc.pid for proc in new)
            self._tree.send(signal.SIGKILL, alive)
            empty_looks = 0 if alive else empty_looks + 1
            self._pause()
            alive = self._tree.look()
        self.report["left"] = [describe(proc, self._redact) for proc in alive]
        self.report["tree_gone_s"] = None if alive else self.age()
        return not alive

    def settle(self, gpus: Optional[Gpus], port: int, is_shared: Callable[[], bool]) -> None:
        """Wait until the GPUs' memory is back, if it is ours alone, and the port is free."""
        begun = time.monotonic()
        if gpus is not None:
            gpus.hurry(GPU_END_PERIOD_S)
        while time.monotonic() - begun < GPU_PATIENCE_S:
            port_done = self._look_at_port(port, time.monotonic() - begun)
            gpu_done = self._look_at_gpus(gpus, begun)
            if not gpu_done and is_shared():
                gpus, gpu_done = None, True
            if gpu_done and port_done:
                break
            self._pause()
        if gpus is not None and gpus.before is not None and self.report["gpu_free_s"] is None:
            self.report["gpu_left_mib"] = gpus.used_mib()

    def age(self) -> float:
        """Return seconds since the end began."""
        return round(time.monotonic() - self._started, 3)

    def _look_at_port(self, port: int, waited_s: float) -> bool:
        if self.report["port_free_s"] is not None:
            return True
        holder = find_holder(port)
        if holder is not None:
            self.report["port_holder"] = holder
            return waited_s > PORT_PATIENCE_S
        self.report["port_holder"] = None
        self.report["port_free_s"] = self.age()
        return True

    def _look_at_gpus(self, gpus: Optional[Gpus], begun: float) -> bool:
        if gpus is None or gpus.before is None:
            return True
        if self.report["gpu_free_s"] is None and gpus.is_back(begun):
            self.report["gpu_free_s"] = self.age()
        return self.report["gpu_free_s"] is not None

    def _wait(self, limit_s: float) -> List[Proc]:
        until = time.monotonic() + limit_s
        alive = self._tree.look()
        while alive and time.monotonic() < until:
            self._pause()
            alive = self._tree.look(is_thorough=False) or self._tree.look()
        return alive

    def _wait_for_parent(self, parent: Proc, graces: Graces) -> List[Proc]:
        """Wait for the whole tree; once its parent is gone the rest has only a moment more."""
        until = time.monotonic() + graces.parent_s
        alive = self._tree.look()
        while alive and time.monotonic() < until:
            if parent.pid not in [proc.pid for proc in alive]:
                until = min(until, time.monotonic() + graces.orphan_s)
                return self._wait(until - time.monotonic())
            self._pause()
            alive = self._tree.look(is_thorough=False) or self._tree.look()
        return alive

    def _note(self, name: str, to: str, procs: List[Proc]) -> None:
        pids = [proc.pid for proc in procs]
        self.report["signals"].append({"signal": name, "to": to, "pids": pids, "at_s": self.age()})

    def _blame(self, name: str, procs: List[Proc]) -> None:
        for proc in procs:
            self.report["ignored"].append({"signal": name, **describe(proc, self._redact)})


# --- the keeper -----------------------------------------------------------------------------


class Folder:
    """The attempt's folder; a full disk is a trouble, not an end."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.trouble: Optional[str] = None

    def at(self, *names: str) -> str:
        """Return a path inside."""
        return os.path.join(self.path, *names)

    def read_json(self, *names: str) -> Optional[Json]:
        """Return a JSON object, None if it is absent or cannot be read."""
        try:
            with open(self.at(*names), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def read_state(self) -> Json:
        """Return `state.json`, empty if there is none; on a full disk it may be half written."""
        for _ in range(5):
            state = self.read_json("state.json")
            if state is not None:
                return state
            if not os.path.exists(self.at("state.json")):
                break
            time.sleep(TICK_S)
        return {}

    def write_json(self, value: Json, *names: str) -> bool:
        """Write by rename; False if that did not go."""
        return self._write(json.dumps(value).encode() + b"\n", self.at(*names))

    def write_state(self, state: Json) -> None:
        """Write `state.json`, with room for what it may have to hold once the disk is full."""
        path = self.at("state.json")
        for value in (state, {**state, "processes": [], "stop": None}):
            raw = json.dumps(value).encode()
            padded = raw.ljust(STATE_ROOM - 1) + b"\n"
            if self._write(padded, path) or self._overwrite(path, padded):
                return

    def _write(self, raw: bytes, path: str) -> bool:
        temporary = "%s.%d.tmp" % (path, threading.get_ident())
        try:
            write_file(temporary, raw, os.O_CREAT | os.O_TRUNC)
            os.rename(temporary, path)
        except OSError as error:
            self.trouble = "cannot write %s: %s" % (path, error)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return False
        return True

    @staticmethod
    def _overwrite(path: str, raw: bytes) -> bool:
        """Write into the blocks that the file already has; a reader may meet it half done."""
        try:
            if len(raw) > os.path.getsize(path):
                return False
            write_file(path, raw, 0)
        except OSError:
            return False
        return True

    def ask_numbers(self) -> List[int]:
        """Return the numbers of the requests that lie there, in order."""
        try:
            names = os.listdir(self.at("ask"))
        except OSError:
            return []
        return sorted(int(name[:-5]) for name in names if re.match(r"\d{3,}\.json$", name))


def write_file(path: str, raw: bytes, flags: int) -> None:
    """Write all of it, readable by the owner alone."""
    number = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        while raw:
            raw = raw[os.write(number, raw) :]
    finally:
        os.close(number)


class NotStarted(Exception):  # noqa: N818 - names what happened
    """The server could not be started; `kind` is a word, the message is for a person."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Keeper:
    """Owns one attempt from its start to its end."""

    def __init__(self, folder: Folder, spec: Json, secrets: Secrets) -> None:
        self.folder = folder
        self.spec = spec
        self.secrets = secrets
        self.started = time.monotonic()
        self.signalled: Optional[str] = None
        self.state: Json = {
            "schema": SCHEMA, "state": "running", "keeper_pid": os.getpid(),
            "keeper_start": getattr(read_proc(os.getpid()), "start", None),
            "boot_id": read_boot_id(), "marker": spec["marker"], "port": spec["port"],
            "server_pid": None, "session": None, "started_at": time.time(), "ended_at": None,
            "processes": [], "exit_status": None, "exited_at": None, "end_reason": None,
            "stop": None, "listener": None, "life": {}, "oom_kills": None, "trouble": None,
            "gpu_before": None,
            "beat_at": time.time(),
        }  # fmt: skip
        self._owners: Dict[int, Optional[int]] = {}
        self._oom_before = read_oom_kills()
        self._life = LifeSigns()
        self._http: Optional[HttpAsk] = None
        self._tool: Optional[ToolRun] = None
        self._http_listener: Optional[Json] = None
        self._ask_number = 0
        self._stop_ask: Optional[Json] = None
        self._unwritten: Dict[int, Json] = {}
        self._beat_due = 0.0
        self._beats = 0
        self._pump: Optional[int] = None

    def start(self) -> None:
        """Start the server.

        Raises:
            NotStarted: there is no such program or folder, or the machine refuses.
        """
        for name in ("ask", "answer"):
            os.makedirs(self.folder.at(name), mode=0o700, exist_ok=True)
        self._log = os.open(self.folder.at("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        output = self._start_pump() if self.secrets.values else os.dup(self._log)
        try:
            self._server = self._popen(output)
        except OSError as error:
            raise self._explain(error) from error
        finally:
            os.close(output)
        pid = self._server.pid
        proc = read_proc(pid)
        begun = proc.start if proc else 0
        self.state.update(server_pid=pid, server_start=begun, session=pid)
        self.tree = Tree(self.spec["marker"], pid, begun)
        self.tree.is_watched = True
        self.tree.reaper = os.getpid() if become_reaper() else None
        if self._pump:
            self.tree.helpers.add(self._pump)
        self.gpus = Gpus(self.tree, self.spec.get("gpus"), self.secrets.redact)
        self.beat()

    def _popen(self, output: int) -> "subprocess.Popen[bytes]":
        environment = dict(os.environ)
        for name, value in (self.spec.get("env") or {}).items():
            environment[name] = self.secrets.put_in(str(value))
        # Process titles overwrite the environment that /proc shows, marker and all, without it.
        environment["SPT_NOENV"] = "1"
        environment["PYTHONUNBUFFERED"] = "1"
        environment[MARKER_NAME] = str(self.spec["marker"])
        return subprocess.Popen(
            [self.secrets.put_in(str(word)) for word in self.spec["argv"]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=self.spec.get("cwd") or os.path.expanduser("~"),
            # SGLang may SIGKILL its whole process group (SGLANG_KILLPG_ON_SCHEDULER_EXCEPTION).
            start_new_session=True,
        )

    def _explain(self, error: OSError) -> NotStarted:
        cwd = self.spec.get("cwd")
        if cwd and not os.path.isdir(cwd):
            return NotStarted("folder", "no such folder on this host: %s" % cwd)
        program = self.secrets.redact(str(self.spec["argv"][0]))
        why = self.secrets.redact(str(error.strerror or error))
        return NotStarted("program", "cannot run %s: %s" % (program, why))

    def _start_pump(self) -> int:
        """Start the process that redacts the log; it outlives a killed keeper, as the log must."""
        source, sink = os.pipe()
        self._pump = os.fork()
        if self._pump:
            os.close(source)
            return sink
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            close_all_but({0, 1, 2, source, self._log})
            pump(source, self._log, self.secrets, self._max_log_bytes())
        finally:
            os._exit(0)

    def _max_log_bytes(self) -> int:
        return int(self.spec.get("max_log_bytes") or 2_000_000_000)

    def run(self) -> None:
        """Keep the attempt until it has ended, whatever goes wrong on the way."""
        reason = None
        while reason is None:
            try:
                self.tick()
            except Exception:  # noqa: BLE001 - the tree needs its owner, and its deadline
                self.note(traceback.format_exc())
                time.sleep(BEAT_S)
            reason = self._reason_to_end()
        try:
            self._finish(reason)
        finally:
            self._close(reason)

    def tick(self) -> None:
        """Do what is due, then rest a moment."""
        self._poll_server()
        self._look_at_asks()
        if time.monotonic() >= self._beat_due:
            self.beat()
        time.sleep(TICK_S)

    def beat(self) -> None:
        """Look at everything and write `state.json`."""
        self._beats += 1
        procs = self.tree.look(is_thorough=self._beats % BEATS_PER_LOOK == 0)
        self.state.update(
            processes=[describe(proc, self.secrets.redact) for proc in procs[:MAX_LISTED]],
            listener=self.find_listener(procs),
            life=self._life.read(procs, os.fstat(self._log).st_size, self.gpus),
            oom_kills=self._count_oom_kills(),
            gpu_before=self._gpu_before(),
            trouble=self.folder.trouble,
        )
        self._write_state()
        self._beat_due = time.monotonic() + BEAT_S

    def _gpu_before(self) -> Optional[Json]:
        if self.gpus.before is None:
            return None
        return {"used_mib": self.gpus.before, "holders": self.gpus.holders}

    def find_listener(self, procs: List[Proc]) -> Optional[Json]:
        """Return who answers on the port now, None if nobody listens."""
        listening = find_listening(self.spec["port"])
        if not listening:
            return None
        found = []
        for sock in [sock for sock in listening if sock.address == listening[0].address]:
            pid = find_owner(sock.inode, [proc.pid for proc in procs])
            is_ours = pid is not None
            if pid is None:
                pid = self._find_stranger(sock.inode)
            title = mask_options(self.secrets.redact(read_title(pid))) if pid else None
            found.append({"pid": pid, "is_ours": is_ours, "address": sock.address,
                          "title": title, "user": user_name(sock.uid)})  # fmt: skip
        # SO_REUSEPORT shares a port: one stranger among them and an answer may be his.
        return min(found, key=lambda one: bool(one["is_ours"]))

    def _find_stranger(self, inode: int) -> Optional[int]:
        if inode not in self._owners:
            self._owners = {inode: find_owner(inode, all_pids())}
        return self._owners[inode]

    def note(self, text: str) -> None:
        """Write a trouble to `keeper.log`, without secrets."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        with contextlib.suppress(OSError, ValueError):
            print(stamp, self.secrets.redact(text.rstrip()), file=sys.stderr, flush=True)

    def _write_state(self) -> None:
        self.state["beat_at"] = time.time()
        self.folder.write_state(self.state)

    def _poll_server(self) -> None:
        status = self._server.poll()
        if status is not None and self.state["exit_status"] is None:
            self.state.update(exit_status=status, exited_at=time.time())
            self._write_state()

    def _count_oom_kills(self) -> Json:
        now = read_oom_kills()
        before = self._oom_before
        return {
            key: None if now[key] is None or before[key] is None else now[key] - before[key]
            for key in now
        }

    def _reason_to_end(self) -> Optional[str]:
        if self.state["exit_status"] is not None:
            return "exited"
        if self._stop_ask is not None or self.signalled:
            return "stopped"
        if time.monotonic() - self.started > float(self.spec["deadline_s"]):
            return "deadline"
        if os.fstat(self._log).st_size >= self._max_log_bytes():
            return "log-limit"
        return None

    def _look_at_asks(self) -> None:
        for number, answer in list(self._unwritten.items()):
            if self.folder.write_json(answer, "answer", "%03d.json" % number):
                del self._unwritten[number]
        waiting = [number for number in self.folder.ask_numbers() if number > self._ask_number]
        if self._http is not None or self._tool is not None:
            self._look_at_running(waiting)
        elif waiting:
            self._ask_number = waiting[0]
            self._take(self.folder.read_json("ask", "%03d.json" % waiting[0]) or {})

    def _take(self, ask: Json) -> None:
        if ask.get("do") == "stop":
            self._stop_ask = ask
        elif ask.get("do") == "run":
            self.gpus.hurry(GPU_BUSY_PERIOD_S)
            folder = self.folder.at("tools", "%03d" % self._ask_number)
            self._tool = ToolRun(ask, folder, self.spec, self.secrets, self.tree)
        elif ask.get("do") == "http":
            self.gpus.hurry(GPU_BUSY_PERIOD_S)
            self._http_listener = self.find_listener(self.tree.look(is_thorough=False))
            address = (self._http_listener or {}).get("address") or "127.0.0.1"
            reached = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(address, address)
            try:
                self._http = HttpAsk(ask, reached, self.spec["port"], self.secrets)
            except (TypeError, ValueError, AttributeError) as error:
                self._answer({"error": "not a request: %s" % error, "responses": []})
        else:
            self._answer({"error": "not a request: %r" % ask.get("do")})

    def _look_at_running(self, waiting: List[int]) -> None:
        asks = (self.folder.read_json("ask", "%03d.json" % number) for number in waiting)
        if self.state["exit_status"] is not None:
            self._give_up("server-gone")
        elif self.signalled or any(ask and ask.get("do") == "stop" for ask in asks):
            self._give_up("stopped")
        elif self._tool is not None and waiting:
            # Who asked for it waits for its answer alone: somebody else has taken over.
            self._give_up("superseded")
        self._finish_running()

    def _give_up(self, why: str) -> None:
        if self._http is not None:
            self._http.give_up(why)
        if self._tool is not None:
            self._tool.give_up(why)

    def _finish_running(self) -> None:
        """Answer what is done."""
        if self._http is not None and self._http.is_done():
            self._finish_http()
        if self._tool is not None and self._tool.is_done():
            self._answer(self._tool.answer())
            self._tool = None

    def _finish_http(self) -> None:
        assert self._http is not None
        before, after = self._http_listener, self.find_listener(self.tree.look(is_thorough=False))
        if before and after and before["pid"] != after["pid"]:
            after["is_ours"] = False
        self._answer({"listener": after or before, "responses": self._http.responses})
        self._http = None

    def _answer(self, answer: Json) -> None:
        answer = {"done": True, **answer}
        if not self.folder.write_json(answer, "answer", "%03d.json" % self._ask_number):
            self._unwritten[self._ask_number] = answer

    def _finish(self, reason: str) -> None:
        """End what is left of the tree, then wait for memory and port."""
        self._give_up("server-gone" if reason == "exited" else "stopped")
        ask = self._stop_ask or {}
        is_ready = bool(ask.get("is_ready", (self.state["listener"] or {}).get("is_ours")))
        self.state.update(state="stopping", end_reason=reason)
        self.beat()
        ending = Ending(self.tree, self._pause, self.secrets.redact)
        graces = Graces.of(ask, self.spec, is_ready)
        if reason == "exited":
            self._let_orphans_go(graces.orphan_s)
        if reason in ("exited", "log-limit"):
            is_ready, graces = False, Graces(0.0, min(FLOOD_GRACE_S, graces.group_s))
        ending.run(is_ready, graces)
        gpus = None if self.spec.get("shares_gpus") else self.gpus
        ending.settle(gpus, self.spec["port"], self._has_neighbours)
        ending.report["total_s"] = ending.age()
        self.state["stop"] = ending.report

    def _has_neighbours(self) -> bool:
        environment = {**os.environ, **(self.spec.get("env") or {})}
        chosen = environment.get("CUDA_VISIBLE_DEVICES")
        cards = set(str(chosen).split(",")) if chosen else None
        if self.gpus.pids is None:  # not known yet
            return False
        # In a container the driver may show nobody: then whoever lives counts.
        return has_neighbours(self.spec["marker"], cards, self.gpus.pids or all_pids())

    def _let_orphans_go(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while self.tree.look(is_thorough=False) and time.monotonic() < until:
            self._pause()

    def _pause(self) -> None:
        self._poll_server()
        self._finish_running()
        if time.monotonic() >= self._beat_due:
            self.beat()
        time.sleep(TICK_S)

    def _close(self, reason: str) -> None:
        """Write the last state and answer what still waits."""
        self._wait_for_pump()
        self._poll_server()
        self.state.update(state="ended", end_reason=reason, ended_at=time.time())
        self.beat()
        if self._http is not None:
            self._finish_http()
        if self._tool is not None:
            self._answer(self._tool.answer())
        for number in [
            number for number in self.folder.ask_numbers() if number > self._ask_number
        ]:
            self._ask_number = number
            self._stop_ask = self.folder.read_json("ask", "%03d.json" % number)
            if (self._stop_ask or {}).get("do") != "stop":
                self._answer({"error": "ended", "responses": []})
                self._stop_ask = None
        if self._stop_ask is not None:
            self._answer({"stop": self.state["stop"]})

    def _wait_for_pump(self) -> None:
        """Let the log get its last lines; somebody who would not die may hold the pipe."""
        until = time.monotonic() + ORPHAN_GRACE_S
        while self._pump and time.monotonic() < until:
            if os.waitpid(self._pump, os.WNOHANG)[0]:
                self._pump = None
            time.sleep(TICK_S / 5)


# --- commands -------------------------------------------------------------------------------


def close_all_but(keep: Set[int]) -> None:
    """Close what was inherited: an SSH channel ends only when its last holder closes it."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def take_lock(folder: Folder, patience_s: float) -> Optional[int]:
    """Return the folder's lock, held while the number is open; None if somebody keeps it."""
    number = os.open(folder.at("lock"), os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(number)
                return None
            time.sleep(TICK_S)
        except OSError:
            return number  # a file system without locks: start twice is then on the caller
        else:
            return number


def read_secrets() -> Dict[str, str]:
    """Return the secrets of standard input; none from a terminal or an empty one."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    raw = sys.stdin.buffer.read()
    found = json.loads(raw) if raw.strip() else {}
    if not isinstance(found, dict):
        raise TypeError("secrets on standard input are not a JSON object")
    return {str(name): str(value) for name, value in found.items()}


def read_spec(folder: Folder, secrets: Dict[str, str]) -> Json:
    """Return `spec.json`.

    Raises:
        NotStarted: it is absent or lacks something, or wants secrets that did not arrive.
    """
    spec = folder.read_json("spec.json")
    if spec is None:
        raise NotStarted("spec", "no readable spec.json in %s" % folder.path)
    wanted: Dict[str, Any] = {
        "marker": str, "argv": list, "port": int, "deadline_s": (int, float),
    }  # fmt: skip
    wrong = [name for name, kind in wanted.items() if not isinstance(spec.get(name), kind)]
    if wrong or not spec["marker"] or not spec["argv"]:
        raise NotStarted("spec", "spec.json lacks %s" % (", ".join(wrong) or "marker or argv"))
    # A link that breaks before they came looks like an empty standard input.
    lacking = [name for name in spec.get("secrets") or [] if name not in secrets]
    if lacking:
        raise NotStarted("spec", "standard input lacks the secrets %s" % ", ".join(lacking))
    return spec


def fail(code: int, **said: object) -> int:
    """Say why as JSON and return the exit code."""
    print(json.dumps({"schema": SCHEMA, **said}))
    return code


def start(path: str) -> int:
    """Start the attempt of a folder; a second start of the same one starts nothing."""
    folder = Folder(path)
    try:
        values = read_secrets()
        secrets = Secrets(values)
        spec = read_spec(folder, values)
        lock = take_lock(folder, patience_s=0.0)
        state = folder.read_json("state.json")
        if lock is None and state is None:
            lock = take_lock(folder, patience_s=20.0)
            state = folder.read_json("state.json")
    except NotStarted as error:
        return fail(EXIT_NOT_STARTED, kind=error.kind, error=str(error))
    except (OSError, ValueError, TypeError) as error:
        return fail(EXIT_NOT_STARTED, kind="folder", error=str(error))
    if state is not None and state.get("marker") == spec["marker"]:
        print(json.dumps({"schema": SCHEMA, "already": True, "server_pid": state["server_pid"]}))
        return EXIT_OK
    if lock is None or state is not None:
        return fail(EXIT_NOT_STARTED, kind="folder", error="another attempt owns %s" % folder.path)
    holder = find_holder(int(spec["port"]))
    if holder is not None:
        holder["title"] = secrets.redact(holder["title"] or "") or None
        return fail(EXIT_PORT_TAKEN, port=spec["port"], holder=holder)
    return start_keeper(folder, spec, secrets, lock)


def start_keeper(folder: Folder, spec: Json, secrets: Secrets, lock: int) -> int:
    """Leave the caller's session, and return what the keeper reports of its start."""
    report, sink = os.pipe()
    child = os.fork()
    if child:
        os.close(sink)
        os.waitpid(child, 0)
        with os.fdopen(report, "rb") as pipe:
            said = json.loads(pipe.read() or b'{"kind": "keeper", "error": "the keeper died"}')
        print(json.dumps({"schema": SCHEMA, **said}))
        return EXIT_NOT_STARTED if "error" in said else EXIT_OK
    os.setsid()
    if os.fork():
        os._exit(0)
    become_daemon(folder, {sink, lock})
    return keep(Keeper(folder, spec, secrets), sink)


def become_daemon(folder: Folder, keep_open: Set[int]) -> None:
    """Let go of everything that belongs to whoever called us."""
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        troubles = os.open(folder.at("keeper.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        troubles = nothing
    os.dup2(nothing, 0)
    os.dup2(troubles, 1)
    os.dup2(troubles, 2)
    close_all_but({0, 1, 2} | keep_open)


def keep(keeper: Keeper, sink: int) -> NoReturn:
    """Be the keeper: start, report, stay to the end."""

    def on_signal(number: int, _frame: object) -> None:
        if number != signal.SIGHUP:
            keeper.signalled = "signal %d" % number

    # A function and not SIG_IGN: what is ignored stays ignored in the server.
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        try:
            keeper.start()
            said: Json = {"keeper_pid": os.getpid(), "server_pid": keeper.state["server_pid"]}
        except NotStarted as error:
            said = {"kind": error.kind, "error": str(error)}
        except OSError as error:
            said = {"kind": "folder", "error": keeper.secrets.redact(str(error))}
        with os.fdopen(sink, "wb") as pipe:
            pipe.write(json.dumps(said).encode())
        if "error" not in said:
            keeper.run()
    except BaseException:  # noqa: BLE001 - a keeper has nobody above it to tell
        keeper.note(traceback.format_exc())
    finally:
        os._exit(0)


def check(folder: Folder) -> Tuple[Json, Tree, bool]:
    """Return the last state, a tree to look with, and whether the keeper lives."""
    state = folder.read_state()
    spec = folder.read_json("spec.json") or {}
    marker = str(state.get("marker") or spec.get("marker") or "")
    is_this_boot = state.get("boot_id") == read_boot_id()
    session = int(state.get("session") or 0) if is_this_boot else 0
    tree = Tree(marker, session or -1, int(state.get("server_start") or 0) if session else 0)
    if is_this_boot:
        tree.known = {one["pid"]: one["start"] for one in state.get("processes", [])}
        is_keeper = is_alive(state.get("keeper_pid"), state.get("keeper_start"))
    else:
        is_keeper = False
    return state, tree, is_keeper


def status(path: str) -> int:
    """Print `state.json` with what is true now."""
    folder = Folder(path)
    state, tree, is_keeper = check(folder)
    if not state and not folder.read_json("spec.json"):
        print(json.dumps({"schema": SCHEMA, "state": None, "keeper_alive": False}))
        return EXIT_OK
    alive = [describe(proc) for proc in tree.look()] if not is_keeper else state["processes"]
    last = (folder.ask_numbers() or [0])[-1]
    checked = {"keeper_alive": is_keeper, "alive": alive, "last_ask": last}
    print(json.dumps({"schema": SCHEMA, "state": None, **state, **checked}))
    return EXIT_OK


def stop(path: str) -> int:
    """End an attempt, through its keeper if it lives."""
    folder = Folder(path)
    state, tree, is_keeper = check(folder)
    if is_keeper and end_through_keeper(folder, state):
        state, tree, _ = check(folder)
    marker = tree.marker
    if not marker:
        return fail(EXIT_LEFT, error="no attempt in %s" % folder.path, left=[])
    ending = Ending(tree, lambda: time.sleep(TICK_S), str)
    is_ready = bool((state.get("listener") or {}).get("is_ours"))
    spec = folder.read_json("spec.json") or {}
    is_clean = ending.run(is_ready, Graces.of({}, spec, is_ready))
    if state.get("state") == "ended":
        ending.report = {**(state.get("stop") or {}), "left": ending.report["left"]}
    else:
        ending.report["total_s"] = ending.age()
        state.update(state="ended", end_reason=state.get("end_reason") or "keeper-lost",
                     ended_at=time.time(), stop=ending.report, processes=ending.report["left"],
                     listener=None, schema=SCHEMA, marker=marker)  # fmt: skip
        folder.write_state(state)
    print(json.dumps({"schema": SCHEMA, **ending.report}))
    return EXIT_OK if is_clean else EXIT_LEFT


def end_through_keeper(folder: Folder, state: Json) -> bool:
    """Ask the keeper with a signal; end it if it gives no sign of life."""
    proc = read_proc(int(state["keeper_pid"]))
    if proc is None:
        return False
    send_signal(proc, signal.SIGTERM)
    beat, seen_at, patience_s = state.get("beat_at"), time.monotonic(), 8.0
    while is_alive(proc.pid, proc.start):
        now = (folder.read_json("state.json") or {}).get("beat_at")
        if now != beat:
            beat, seen_at = now, time.monotonic()
        if time.monotonic() - seen_at > patience_s:
            send_signal(proc, signal.SIGKILL)
        time.sleep(TICK_S)
    return True


def reap(marker: str) -> int:
    """End every process that carries a marker, for attempts whose folder is gone."""
    ending = Ending(Tree(marker, -1, 0), lambda: time.sleep(TICK_S), str)
    is_clean = ending.run(is_ready=False, graces=Graces.of({}, {}, is_ready=False))
    print(json.dumps({"schema": SCHEMA, **ending.report}))
    return EXIT_OK if is_clean else EXIT_LEFT


def owner_of(pid: int) -> Optional[str]:
    """Return the user whose process this is, None if it is gone."""
    try:
        return user_name(os.stat("/proc/%d" % pid).st_uid)
    except OSError:
        return None


def keeper_above(proc: Proc) -> Optional[str]:
    """Return the folder of the living keeper that a process descends from; None without one.

    A keeper is the subreaper of its tree: as long as it lives, no process of it gets away.
    """
    above: Optional[Proc] = proc
    while above is not None and above.ppid > 1:
        words = read_bytes("/proc/%d/cmdline" % above.ppid).rstrip(b"\0").split(b"\0")
        is_keeper = len(words) > 2 and words[-2] == b"start"  # noqa: PLR2004 - program, command, folder
        if is_keeper and os.path.basename(words[-3]).startswith(b"keeper"):
            return os.fsdecode(words[-1])
        above = read_proc(above.ppid)
    return None


def find(root: str) -> int:
    """Print every attempt under a folder, and every process with a marker."""
    attempts = []
    for path, folders, files in os.walk(os.path.abspath(root)):
        if "spec.json" in files and ("state.json" in files or "lock" in files):
            folders.clear()
            state, tree, is_keeper = check(Folder(path))
            attempts.append({
                "directory": path, "marker": tree.marker, "state": state.get("state"),
                "port": state.get("port"), "end_reason": state.get("end_reason"),
                "keeper_alive": is_keeper, "processes": [describe(p) for p in tree.look()],
            })  # fmt: skip
    folder_of = {attempt["marker"]: attempt["directory"] for attempt in attempts}
    marked = []
    for proc in filter(None, map(read_proc, all_pids())):
        marker = read_marker(proc.pid) if proc.is_alive else None
        if marker is not None:
            marked.append({
                **describe(proc), "marker": marker, "directory": folder_of.get(marker),
                "keeper_directory": keeper_above(proc), "user": owner_of(proc.pid),
            })  # fmt: skip
    print(json.dumps({"schema": SCHEMA, "attempts": attempts, "processes": marked}))
    return EXIT_OK


def main(words: List[str]) -> int:
    """Run one command."""
    commands = {"start": start, "status": status, "stop": stop, "reap": reap, "find": find}
    if len(words) != 2 or words[0] not in commands:  # noqa: PLR2004 - a command and its object
        print("usage: keeper.py start|status|stop DIR, find ROOT, reap MARKER", file=sys.stderr)
        return EXIT_USAGE
    return commands[words[0]](words[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
