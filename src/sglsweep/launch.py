"""Drives a keeper over a Host: start an attempt, follow it, question it, end it, find it again."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sglsweep.errors import HostError, HostUnreachable
from sglsweep.keeper_files import (
    HttpAnswer,
    HttpRequest,
    KeeperState,
    StopReport,
    ToolAnswer,
    parse_answer,
    parse_object,
    parse_state,
    parse_stop,
    parse_tool_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import PurePosixPath

    from sglsweep.hosts.base import Answer, Host

_KEEPER_PORT_TAKEN = 4
_KEEPER_NOT_STARTED = 5
_POLL_S = 0.1
# `keeper.py stop` may have to wait out both graces and KILL; the others answer at once.
_COMMAND_S = 120.0
# The keeper writes its state every second; so long without a new one, and somebody must look.
_STALE_AFTER_S = 10.0
# Both graces, the wait for GPU memory, and a machine under load.
_STOP_PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """What a keeper is to start.

    Attributes:
        argv: the whole command; a secret stands as `${NAME}`, here and in `env`.
        marker: unique text by which the attempt's processes are known on the host.
        deadline_s: the keeper ends the tree then, whoever else is gone.
        cwd: None = the login user's home folder.
        gpus: indexes whose memory is watched; None = all.
        shares_gpus: others come and go on them: their memory is not waited for at the end.
        graces: other seconds than the keeper's own for `parent_grace_s`, `group_grace_s` and
            `orphan_grace_s`.
    """

    argv: tuple[str, ...]
    marker: str
    port: int
    deadline_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    max_log_bytes: int = 2_000_000_000
    gpus: tuple[int, ...] | None = None
    shares_gpus: bool = False
    graces: Mapping[str, float] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def as_json(self) -> bytes:
        """Return `spec.json`: everything, of the secrets the names."""
        spec = {
            "schema": 1,
            "marker": self.marker,
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd,
            "port": self.port,
            "deadline_s": self.deadline_s,
            "max_log_bytes": self.max_log_bytes,
            "gpus": None if self.gpus is None else list(self.gpus),
            "shares_gpus": self.shares_gpus,
            "secrets": sorted(self.secrets),
            **self.graces,
        }
        return json.dumps(spec, indent=1).encode()


class PortTaken(HostError):  # noqa: N818 - names what happened
    """Somebody listens on the attempt's port; nothing was started.

    Attributes:
        pid: None if the process is another user's and hides it.
        marker: that of an attempt of ours, None if it is nobody we know.
    """

    def __init__(self, host: str, port: int, holder: Mapping[str, Any]) -> None:
        self.port = port
        self.pid: int | None = holder.get("pid")
        self.title: str | None = holder.get("title")
        self.user: str | None = holder.get("user")
        self.marker: str | None = holder.get("marker")
        who = f"pid {self.pid} ({self.title})" if self.pid else str(self.title or "a process")
        of = f" of user {self.user}" if self.user else ""
        super().__init__(
            f"{host}: port {port} is in use by {who}{of}",
            next_step=f"It is an earlier attempt of ours: run `sglsweep clean {host}`."
            if self.marker
            else "Stop that process, or set another `port:` for this host in hosts.yaml.",
        )


class Launched:
    """An attempt on a host, started by us now or by an earlier controller."""

    def __init__(
        self, host: Host, python: str, directory: PurePosixPath, *, asks: int = 0
    ) -> None:
        self.directory = directory
        self._host = host
        self._python = python
        self._asks = asks
        self._is_keeper_gone = False
        self._ids: dict[int, tuple[str, ...]] = {}
        self._beat = 0.0
        self._beat_seen_at = time.monotonic()

    def state(self) -> KeeperState:
        """Return what the keeper last wrote; looks after the keeper when that grows old."""
        if self._is_keeper_gone:
            return self.check()
        raw = self._host.read(self.directory / "state.json")
        try:
            state = parse_state(parse_object(raw, f"{self._host.name}: state.json"))
        except HostError:
            # On a full disk the keeper writes in place, and a reader may come between.
            return self.check()
        if state.beat_at != self._beat:
            self._beat, self._beat_seen_at = state.beat_at, time.monotonic()
        if state.has_ended or time.monotonic() - self._beat_seen_at < _STALE_AFTER_S:
            return state
        self._beat_seen_at = time.monotonic()
        return self.check()

    def check(self) -> KeeperState:
        """Ask the host what is true now: is the keeper alive, and what lives of the tree."""
        answer = _run_keeper(self._host, self._python, "status", self.directory)
        said = parse_object(answer.stdout, f"{self._host.name}: keeper.py status")
        if said.get("state") is None:
            raise HostError(
                f"{self._host.name}: {self.directory} holds no attempt any more",
                next_step=f"Somebody removed it; `sglsweep clean {self._host.name}` finds what "
                "still runs.",
            )
        state = parse_state(said)
        self._is_keeper_gone = state.is_keeper_alive is False
        return state

    def note_keeper(self, *, is_alive: bool) -> None:
        """Take it from somebody who has looked whether the keeper lives."""
        self._is_keeper_gone = not is_alive

    def read_log(self, offset: int, limit: int = 1 << 20) -> bytes:
        """Return the next bytes of the server's output; b"" while there are none."""
        return self._host.read(self.directory / "log", offset=offset, limit=limit)

    def ask_http(
        self, requests: Sequence[HttpRequest], *, concurrency: int, timeout_s: float
    ) -> int:
        """Let the keeper ask the server; returns the ask's number at once."""
        number = self._write_ask(
            {
                "do": "http",
                "requests": [request.as_json() for request in requests],
                "concurrency": concurrency,
                "timeout_s": timeout_s,
            }
        )
        self._ids[number] = tuple(request.id for request in requests)
        return number

    def answer(self, number: int) -> HttpAnswer | None:
        """Return the answer to an http ask, None until it is there.

        An attempt that ended without answering answers with an error.
        """
        raw = self._read_answer(number)
        if raw is None and self._is_over():
            # It may have been written between the two looks.
            raw = self._read_answer(number) or {"error": "ended"}
        return None if raw is None else parse_answer(raw, self._ids.get(number, ()))

    def run_tool(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float,
        read: Sequence[str] = (),
    ) -> int:
        """Let the keeper run a program beside the server; returns the ask's number at once.

        Args:
            argv: `{folder}` in it becomes a folder of its own in the attempt's.
            env: added to the attempt's; a secret stands as `${NAME}`.
            timeout_s: it is ended then, and when the attempt ends.
            read: names of files in its folder to return.
        """
        return self._write_ask(
            {
                "do": "run",
                "argv": list(argv),
                "env": dict(env or {}),
                "timeout_s": timeout_s,
                "read": list(read),
            }
        )

    def tool_answer(self, number: int) -> ToolAnswer | None:
        """Return what a program came to, None while it runs."""
        raw = self._read_answer(number)
        if raw is None and self._is_over():
            raw = self._read_answer(number) or {"error": "ended"}
        return None if raw is None else parse_tool_answer(raw)

    def stop(
        self,
        *,
        is_ready: bool,
        on_wait: Callable[[], None] | None = None,
        parent_grace_s: float | None = None,
        group_grace_s: float | None = None,
    ) -> StopReport:
        """End the attempt and wait until nothing of it is left; harmless if it has ended.

        Args:
            is_ready: the ready line stood in the log (TERM then goes to the parent alone).
            on_wait: called about ten times a second while it takes.
            parent_grace_s: instead of the keeper's 15 s.
            group_grace_s: instead of the keeper's 10 s before ready, 5 s after.

        Raises:
            HostUnreachable: the link failed; the keeper goes on with what it was told.
        """
        ask = {
            "do": "stop",
            "is_ready": is_ready,
            "parent_grace_s": parent_grace_s,
            "group_grace_s": group_grace_s,
        }
        if not self._is_over() and not self._could_ask(ask):
            return self._stop_without_keeper()
        until = time.monotonic() + _STOP_PATIENCE_S
        while not self._is_over() and time.monotonic() < until:
            if on_wait is not None:
                on_wait()
            time.sleep(_POLL_S)
        state = self.state()
        if state.has_ended and state.stop is not None and not state.stop.left:
            return state.stop
        return self._stop_without_keeper()

    def _could_ask(self, ask: Mapping[str, object]) -> bool:
        """Write an ask; False if the host's disk takes none, and then a signal must do."""
        try:
            self._write_ask(ask)
        except HostUnreachable:
            raise
        except HostError:
            return False
        return True

    def _stop_without_keeper(self) -> StopReport:
        answer = _run_keeper(self._host, self._python, "stop", self.directory)
        return parse_stop(parse_object(answer.stdout, f"{self._host.name}: keeper.py stop"))

    def _is_over(self) -> bool:
        """Tell whether the keeper will do nothing more: it has ended, or was killed."""
        state = self.state()
        return state.has_ended or state.is_keeper_alive is False

    def _write_ask(self, ask: Mapping[str, object]) -> int:
        self._asks += 1
        path = self.directory / "ask" / f"{self._asks:03d}.json"
        self._host.write(path, json.dumps(ask).encode())
        return self._asks

    def _read_answer(self, number: int) -> dict[str, Any] | None:
        path = self.directory / "answer" / f"{number:03d}.json"
        raw = self._host.read(path, limit=1 << 28)
        return parse_object(raw, f"{self._host.name}: {path.name}") if raw else None


def start(host: Host, python: str, directory: PurePosixPath, spec: LaunchSpec) -> Launched:
    """Start an attempt; its folder must be new or hold the same attempt.

    Args:
        host: where.
        python: any Python 3.8 or later there, to run the keeper.
        directory: the attempt's folder on the host, absolute.
        spec: what to start.

    Raises:
        PortTaken: somebody listens on the port.
        HostError: the server could not be started, and why.
        HostUnreachable: the link failed; `adopt` tells later whether it was started.
    """
    host.write(directory / "spec.json", spec.as_json())
    secrets = json.dumps(dict(spec.secrets)).encode()
    try:
        answer = _run_keeper(host, python, "start", directory, stdin=secrets)
    except HostUnreachable:
        # Nobody knows whether it ran. A keeper starts a folder once, so asking again is safe.
        answer = _run_keeper(host, python, "start", directory, stdin=secrets)
    said = parse_object(answer.stdout, f"{host.name}: keeper.py start")
    if answer.exit_status == _KEEPER_PORT_TAKEN:
        raise PortTaken(host.name, spec.port, said.get("holder") or {})
    if answer.exit_status == _KEEPER_NOT_STARTED:
        raise _not_started(host.name, said)
    return Launched(host, python, directory)


def adopt(host: Host, python: str, directory: PurePosixPath) -> Launched | None:
    """Return an attempt that was started earlier, running or not; None if there is none."""
    answer = _run_keeper(host, python, "status", directory)
    said = parse_object(answer.stdout, f"{host.name}: keeper.py status")
    if said.get("state") is None:
        return None
    launched = Launched(host, python, directory, asks=parse_state(said).last_ask or 0)
    launched.note_keeper(is_alive=bool(said.get("keeper_alive")))
    return launched


def find(host: Host, python: str, root: PurePosixPath) -> dict[str, Any]:
    """Return `keeper.py find`: the attempts under a folder, and every process with a marker."""
    answer = _run_keeper(host, python, "find", root)
    return parse_object(answer.stdout, f"{host.name}: keeper.py find")


def reap(host: Host, python: str, root: PurePosixPath, marker: str) -> StopReport:
    """End every process that carries a marker, for an attempt whose folder is gone."""
    path = _copied_keeper(host, root)
    answer = _checked(host, python, host.run([python, "-I", str(path), "reap", marker]))
    return parse_stop(parse_object(answer.stdout, f"{host.name}: keeper.py reap"))


_COPIED: WeakKeyDictionary[Host, set[PurePosixPath]] = WeakKeyDictionary()


def _keeper_source() -> bytes:
    return (resources.files("sglsweep.onhost") / "keeper.py").read_bytes()


def _copied_keeper(host: Host, folder: PurePosixPath) -> PurePosixPath:
    """Return the keeper's path in a folder on the host, copied there if need be."""
    source = _keeper_source()
    path = folder / f"keeper-{hashlib.sha256(source).hexdigest()[:12]}.py"
    copied = _COPIED.setdefault(host, set())
    if path not in copied:
        if host.read(path, limit=len(source) + 1) != source:
            host.write(path, source)
        copied.add(path)
    return path


def _run_keeper(
    host: Host,
    python: str,
    command: str,
    directory: PurePosixPath,
    *,
    stdin: bytes = b"",
) -> Answer:
    """Run a command of the keeper that lies beside the attempt's folder."""
    path = _copied_keeper(host, directory.parent)
    # -I: nothing of the user's Python environment may change what the keeper is.
    argv = [python, "-I", str(path), command, str(directory)]
    answer = host.run(argv, stdin=stdin, timeout_s=_COMMAND_S)
    if not answer.stdout and b"can't open file" in answer.stderr:
        _COPIED.pop(host, None)
        _copied_keeper(host, directory.parent)
        answer = host.run(argv, stdin=stdin, timeout_s=_COMMAND_S)
    return _checked(host, python, answer)


def _checked(host: Host, python: str, answer: Answer) -> Answer:
    """Return a keeper's answer.

    Raises:
        HostError: there is none, since that Python could not run it.
    """
    if answer.stdout.strip():
        return answer
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"]
    # A traceback says what it means at its end, everybody else at the beginning.
    said = lines[-1] if lines[-1].partition(":")[0].endswith("Error") else lines[0]
    raise HostError(
        f"{host.name}: {python} cannot run the keeper (exit {answer.exit_status}): {said}",
        next_step="Set `python:` for this host in hosts.yaml to a Python 3.8 or later.",
    )


def _not_started(host: str, said: Mapping[str, Any]) -> HostError:
    next_steps = {
        "program": "Check the build's `python:`; it must exist on that host.",
        "folder": "Check that the folder exists there, and is writable, with space left.",
    }
    return HostError(
        f"{host}: the server could not be started: {said.get('error')}",
        next_step=next_steps.get(str(said.get("kind")), "Look into keeper.log in that folder."),
    )
