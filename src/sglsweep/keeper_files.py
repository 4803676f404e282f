"""What the keeper's files hold, as frozen types. `docs/keeper.md` describes the files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sglsweep.errors import HostError

Json = Mapping[str, Any]


class RunState(StrEnum):
    """Where an attempt stands on its host."""

    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """A process on the host; `start` in clock ticks since boot tells a reused pid."""

    pid: int
    start: int
    title: str
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who answers on the attempt's port.

    Attributes:
        pid: None if the process is another user's and hides it.
        is_ours: it belongs to this attempt's tree; an answer of anybody else proves nothing.
    """

    pid: int | None
    is_ours: bool
    address: str
    title: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Sums and figures that change while a silent server works.

    Attributes:
        cpu_s: of all the tree's processes, ended ones too.
        read_bytes: fetched from disks by the tree.
        read_chars: returned to the tree by read calls: cache and network file systems too.
        net_rx_bytes: received by the machine, loopback aside.
        page_cache_bytes: of the whole machine.
        compilers: names of compilers in the tree (nvcc, cicc, ptxas, ninja, ...).
    """

    log_bytes: int = 0
    cpu_s: float = 0.0
    read_bytes: int = 0
    read_chars: int = 0
    net_rx_bytes: int = 0
    page_cache_bytes: int = 0
    gpu_used_mib: tuple[int, ...] = ()
    gpu_util: tuple[int, ...] = ()
    gpu_power_w: tuple[int, ...] = ()
    compilers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSent:
    """One signal of a stop: to the `parent` or to the `group` (everything of ours)."""

    signal: str
    to: str
    pids: tuple[int, ...]
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """How the end of a tree went; times in seconds since it began.

    Attributes:
        ignored: what outlived the grace of a TERM.
        left: what would not die.
        gpu_free_s: None without a GPU, without a figure from before, or if it did not come back.
        gpu_left_mib: in use on each card where the memory did not come back.
        port_holder: who still has the port, in the keeper's words.
        asked_at: when the end began, the host's clock.
    """

    asked_at: float | None = None
    is_ready: bool = False
    signals: tuple[SignalSent, ...] = ()
    ignored: tuple[HostProcess, ...] = ()
    left: tuple[HostProcess, ...] = ()
    tree_gone_s: float | None = None
    gpu_free_s: float | None = None
    gpu_left_mib: tuple[int, ...] | None = None
    port_free_s: float | None = None
    port_holder: Mapping[str, Any] | None = None
    total_s: float | None = None

    @property
    def is_clean(self) -> bool:
        """Nothing of the attempt is left: no process, no memory, no port."""
        return not self.left and self.gpu_left_mib is None and self.port_holder is None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHolder:
    """A process that held GPU memory before the server did."""

    pid: int
    title: str | None = None
    used_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuBefore:
    """What was in use on the watched cards before the server touched them.

    Attributes:
        holders: as far as the driver tells; a container does not show the processes of others.
    """

    used_mib: tuple[int, ...] = ()
    holders: tuple[GpuHolder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperState:
    """`state.json`.

    Attributes:
        exit_status: the server parent's, negative for a signal; None while it lives or unknown.
        end_reason: exited, stopped, deadline, log-limit, keeper-lost.
        exited_at: when the parent was found gone, the host's clock.
        oom_kills_host: kills by the kernel's OOM killer on the machine since the start.
        oom_kills_cgroup: the same inside the keeper's cgroup; None where it does not tell.
        trouble: the keeper's last trouble with its own folder.
        gpu_before: None without a card, or where no figure came in time.
        is_keeper_alive: None if nobody has looked; False: nobody watches what still runs.
        alive: what lives though the keeper does not.
        last_ask: highest number of a request in the folder; None if nobody has looked.
    """

    state: RunState
    marker: str = ""
    port: int = 0
    keeper_pid: int | None = None
    server_pid: int | None = None
    session: int | None = None
    boot_id: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    exited_at: float | None = None
    exit_status: int | None = None
    end_reason: str | None = None
    processes: tuple[HostProcess, ...] = ()
    listener: Listener | None = None
    life: Life = field(default_factory=Life)
    stop: StopReport | None = None
    oom_kills_host: int | None = None
    oom_kills_cgroup: int | None = None
    trouble: str | None = None
    gpu_before: GpuBefore | None = None
    beat_at: float = 0.0
    is_keeper_alive: bool | None = None
    alive: tuple[HostProcess, ...] = ()
    last_ask: int | None = None

    @property
    def has_ended(self) -> bool:
        """Nothing more will happen to this attempt."""
        return self.state is RunState.ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One question to the server.

    Attributes:
        body: anything JSON can hold; None sends no body.
        headers: a secret stands as `${NAME}`.
        timeout_s: None = the whole ask's.
        stream: note when each server-sent event arrives.
    """

    id: str
    path: str
    method: str = "GET"
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    stream: bool = False

    def as_json(self) -> dict[str, object]:
        """Return it as an ask file spells it."""
        return {
            "id": self.id,
            "path": self.path,
            "method": self.method,
            "body": self.body,
            "headers": dict(self.headers),
            "timeout_s": self.timeout_s,
            "stream": self.stream,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """What came back; seconds since this request began, `started_s` since the ask began.

    Attributes:
        status: None if no status line came.
        error: timeout, refused, reset, server-gone, stopped, or the failure's own words.
        body: the first 262,144 bytes, secrets replaced; what came before an error too.
        chunks: arrival of each server-sent event where `stream` was asked.
    """

    id: str
    status: int | None = None
    error: str | None = None
    body: str = ""
    is_truncated: bool = False
    elapsed_s: float = 0.0
    first_byte_s: float | None = None
    chunks: tuple[float, ...] = ()
    started_s: float = 0.0

    @property
    def is_ok(self) -> bool:
        """A whole response with a status below 400."""
        return self.error is None and self.status is not None and self.status < 400  # noqa: PLR2004 - HTTP's own border


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """The answers to one ask, in the order of its requests.

    Attributes:
        listener: who had the port before and after; believe nothing if it is not ours.
        error: the ask could not be worked on; then there are no responses.
    """

    responses: tuple[HttpResponse, ...] = ()
    listener: Listener | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a program came to that the keeper ran beside the server (`do: run`).

    Attributes:
        exit_status: None if it was never started.
        error: timeout, server-gone, stopped, "too much output", or why it could not be run.
        output: the last 262,144 bytes of what it printed, secrets replaced.
        files: the files that were asked for; None where it did not write one.
    """

    exit_status: int | None = None
    error: str | None = None
    elapsed_s: float = 0.0
    output: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)


def parse_object(raw: bytes, what: str) -> dict[str, Any]:
    """Return a JSON object of the keeper's.

    Raises:
        HostError: it is none.
    """
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        shown = raw[:200].decode("utf-8", "replace").strip()
        raise HostError(
            f"{what} is not what a keeper writes: {shown!r}",
            next_step="Look whether the host's disk is full; then run `sglsweep clean HOST`.",
        )
    return found


def parse_state(raw: Json) -> KeeperState:
    """Return `state.json`, or what `keeper.py status` printed."""
    oom = raw.get("oom_kills") or {}
    plain = ("marker", "port", "keeper_pid", "server_pid", "session", "boot_id", "started_at",
             "ended_at", "exited_at", "exit_status", "end_reason", "trouble", "beat_at",
             "last_ask")  # fmt: skip
    return KeeperState(
        state=RunState(raw["state"]),
        processes=_processes(raw.get("processes")),
        listener=parse_listener(raw.get("listener")),
        life=parse_life(raw.get("life") or {}),
        stop=parse_stop(raw["stop"]) if raw.get("stop") else None,
        gpu_before=_gpu_before(raw.get("gpu_before")),
        oom_kills_host=oom.get("host"),
        oom_kills_cgroup=oom.get("cgroup"),
        is_keeper_alive=raw.get("keeper_alive"),
        alive=_processes(raw.get("alive")),
        **{name: raw[name] for name in plain if name in raw},
    )


def _gpu_before(raw: Json | None) -> GpuBefore | None:
    if not raw:
        return None
    holders = tuple(
        GpuHolder(pid=one["pid"], title=one.get("title"), used_mib=one.get("used_mib"))
        for one in raw.get("holders") or ()
    )
    return GpuBefore(used_mib=tuple(raw.get("used_mib") or ()), holders=holders)


def parse_listener(raw: Json | None) -> Listener | None:
    """Return who answers on the port; None if nobody does."""
    if not raw:
        return None
    return Listener(
        pid=raw.get("pid"),
        is_ours=bool(raw.get("is_ours")),
        address=str(raw.get("address")),
        title=raw.get("title"),
        user=raw.get("user"),
    )


def parse_life(raw: Json) -> Life:
    """Return the life signs; what a keeper does not know is zero or empty."""
    known: dict[str, Any] = {name: raw[name] for name in Life.__dataclass_fields__ if name in raw}
    for name, value in known.items():
        known[name] = tuple(value) if isinstance(value, list) else value
    return Life(**known)


def parse_stop(raw: Json) -> StopReport:
    """Return how the end of a tree went."""
    plain = ("asked_at", "tree_gone_s", "gpu_free_s", "port_free_s", "port_holder", "total_s")
    left_mib = raw.get("gpu_left_mib")
    return StopReport(
        is_ready=bool(raw.get("is_ready")),
        signals=tuple(
            SignalSent(signal=s["signal"], to=s["to"], pids=tuple(s["pids"]), at_s=s["at_s"])
            for s in raw.get("signals") or ()
        ),
        ignored=_processes(raw.get("ignored")),
        left=_processes(raw.get("left")),
        gpu_left_mib=None if left_mib is None else tuple(left_mib),
        **{name: raw.get(name) for name in plain},
    )


def parse_answer(raw: Json, requests: Sequence[str] = ()) -> HttpAnswer:
    """Return an http answer, its responses in the order of the requests' ids."""
    order = {name: at for at, name in enumerate(requests)}
    responses = [parse_response(one) for one in raw.get("responses") or ()]
    responses.sort(key=lambda one: order.get(one.id, len(order)))
    return HttpAnswer(
        responses=tuple(responses),
        listener=parse_listener(raw.get("listener")),
        error=raw.get("error"),
    )


def parse_tool_answer(raw: Json) -> ToolAnswer:
    """Return what a program came to."""
    names = ("exit_status", "error", "elapsed_s", "output", "files")
    return ToolAnswer(**{name: raw[name] for name in names if name in raw})


def parse_response(raw: Json) -> HttpResponse:
    """Return one response."""
    plain = ("status", "error", "body", "elapsed_s", "first_byte_s", "started_s")
    return HttpResponse(
        id=str(raw.get("id")),
        is_truncated=bool(raw.get("truncated")),
        chunks=tuple(raw.get("chunks") or ()),
        **{name: raw[name] for name in plain if name in raw},
    )


def _processes(raw: Sequence[Json] | None) -> tuple[HostProcess, ...]:
    return tuple(
        HostProcess(pid=p["pid"], start=p["start"], title=p["title"], state=p.get("state", ""))
        for p in raw or ()
    )
