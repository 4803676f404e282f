"""The parent process of a launch: it waits for its ranks, serves, and ends as SGLang would."""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Never

from sglsweep.rehearsal import misbehave
from sglsweep.rehearsal.answers import tokenize
from sglsweep.rehearsal.engine import Ask, Engine
from sglsweep.rehearsal.failures import parent_traceback
from sglsweep.rehearsal.family import Child, Family
from sglsweep.rehearsal.server import Api
from sglsweep.rehearsal.voice import STDOUT

if TYPE_CHECKING:
    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.voice import Log

_LEAST_GRACE_S = 0.05
_GRACE_STORY_S = 0.4
_DIAGNOSTICS_STORY_S = 5
_COREDUMP_STORY_S = 60
_DRAIN_STORY_S = 5
_WARMUP_PROMPT = "The capital city of France is"
_WARMUP_TOKENS = 8
_WARMUP_CLIENT = "127.0.0.1:47602"
_PORT_TAKEN_EXIT = 3


class Tree:
    """A launch from its first child to its end."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan = plan
        self._log = log
        self._began = time.monotonic()
        self._arrived: set[int] = set()
        self._wake, self._wake_writer = socket.socketpair()
        self._wake.setblocking(False)  # noqa: FBT003 - the library's own signature
        self._wake_writer.setblocking(False)  # noqa: FBT003
        self._is_running = False
        self._api: Api | None = None
        self._listen_to_signals()
        self._family = Family(plan, log)

    def run(self) -> Never:
        """Bring the tree up, serve, and end as SGLang would; never returns."""
        self._await_children()
        engine = Engine(self._family.schedulers[0].link)
        self._open_port(engine)
        if not self._plan.args.get("skip_server_warmup"):
            self._warm_up(engine)
        self._log.say("ready")
        self._is_running = True
        if "ignores-term" not in self._plan.mischief:
            signal.signal(signal.SIGTERM, self._note)
        while True:
            self._handle_signals()
            select.select([self._wake], [], [])

    def _listen_to_signals(self) -> None:
        """Note signals for the loop; TERM keeps its default until the first request."""
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGQUIT, self._note)
        signal.signal(signal.SIGCHLD, self._note)
        if "ignores-term" in self._plan.mischief:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _note(self, number: int, _frame: object) -> None:
        self._arrived.add(number)

    def _handle_signals(self) -> None:
        """Act on what has arrived; ends the process where SGLang's would."""
        while select.select([self._wake], [], [], 0)[0]:
            self._wake.recv(64)
        if signal.SIGQUIT in self._arrived:
            self._die_of_failure()
        if signal.SIGTERM in self._arrived:
            self._shut_down()
        if signal.SIGCHLD in self._arrived and self._is_running:
            self._arrived.discard(signal.SIGCHLD)
            self._look_after_children()

    def _await_children(self) -> None:
        waiting = {child.link: child for child in self._family.everyone}
        while waiting:
            readable, _, _ = select.select([*waiting, self._wake], [], [])
            self._handle_signals()
            for link in readable:
                if link is self._wake:
                    continue
                child = waiting.pop(link)
                if not link.recv(64):
                    # Its SIGQUIT, if it sent one, may be just behind the end of the link.
                    select.select([self._wake], [], [], _LEAST_GRACE_S)
                    self._handle_signals()
                    self._die_of_lost(child)

    def _look_after_children(self) -> None:
        """Notice dead children while serving, as 0.5.15 and later do; earlier ones do not."""
        if not self._log.lines["watchdog-notices-children"]:
            return
        for child in self._family.everyone:
            code = child.exit_code()
            if code is not None:
                self._log.say("child-crashed", name=child.name, pid=child.pid, code=code)
                self._die_of_failure()

    def _open_port(self, engine: Engine) -> None:
        log, plan = self._log, self._plan
        self._say_timings()
        log.uvicorn(f"Started server process [{os.getpid()}]")
        log.uvicorn("Waiting for application startup.")
        log.say("fallback-ids")
        log.uvicorn("Application startup complete.")
        if misbehave.has_wrong_owner(plan):
            misbehave.let_stranger_answer(plan)
        else:
            self._bind(engine)
        address = f"{plan.args['host']}:{plan.args['port']}"
        log.uvicorn(f"Uvicorn running on http://{address} (Press CTRL+C to quit)")

    def _say_timings(self) -> None:
        stage = self._plan.stage
        spent = (time.monotonic() - self._began) / self._log.clock.scale
        self._log.say(
            "timings",
            load=stage.load_s,
            kv=0.4,
            scheduler=spent,
            graph=stage.capture_s if self._plan.sizes else 0.0,
            tokenizer=spent + stage.start_s / 2,
        )

    def _bind(self, engine: Engine) -> None:
        try:
            misbehave.refuse_port(self._plan)
            self._api = Api(self._plan, self._log, engine, shlex.join(sys.argv[1:]))
        except OSError:
            self._die_of_taken_port()
        threading.Thread(target=self._api.serve_forever, daemon=True).start()

    def _warm_up(self, engine: Engine) -> None:
        """Ask for eight greedy tokens, as SGLang does before it says that it is ready."""
        log, answered = self._log, threading.Event()
        log.clock.sleep(1)
        path = log.lines["model-info"]
        log.uvicorn(f'{_WARMUP_CLIENT} - "GET {path} HTTP/1.1" 200 OK', stream=STDOUT)
        self._is_running = True
        ids = tokenize(_WARMUP_PROMPT, self._plan.stage.vocabulary)
        ask = Ask(ids=ids, new_tokens=_WARMUP_TOKENS, temperature=0.0, kind="warmup")
        arguments = (engine, engine.submit(ask), answered)
        threading.Thread(target=self._await_answer, args=arguments, daemon=True).start()
        while not answered.is_set():
            select.select([self._wake], [], [])
            self._handle_signals()
        log.uvicorn(f'{_WARMUP_CLIENT} - "POST /generate HTTP/1.1" 200 OK', stream=STDOUT)

    def _await_answer(self, engine: Engine, rid: str, answered: threading.Event) -> None:
        engine.finish(rid)
        answered.set()
        self._wake_writer.send(b".")

    def _die_of_failure(self) -> Never:
        """Say that a child failed, linger as this version does, then kill all and oneself."""
        self._log.say("sigquit-running" if self._is_running else "sigquit-launch")
        if self._is_running:
            self._linger()
        misbehave.linger(self._plan, self._log.clock)
        time.sleep(max(_LEAST_GRACE_S, _GRACE_STORY_S * self._log.clock.scale))
        self._log.say("kill-tree", pid=os.getpid(), parent=True)
        self._family.kill()
        _kill_self()

    def _linger(self) -> None:
        """Wait for crash diagnostics as 0.5.15 and later do: a minute if any rank still lives."""
        if self._log.lines["linger-sleep"] is None:
            return
        self._log.say("linger-sleep")
        self._log.clock.sleep(_DIAGNOSTICS_STORY_S)
        alive = [child for child in self._family.schedulers if child.exit_code() is None]
        if not alive:
            self._log.say("linger-none")
            return
        if os.environ.get("SGLANG_PYSPY_DUMP_BEFORE_CRASH") != "0":
            for child in alive:
                self._log.say("linger-pyspy", pid=child.pid)
        if os.environ.get("SGLANG_CUDA_COREDUMP_BEFORE_CRASH") != "0":
            self._log.say("linger-wait")
            self._log.clock.sleep(_COREDUMP_STORY_S)

    def _die_of_lost(self, child: Child) -> Never:
        """End because a child vanished without a word while starting up."""
        code = child.exit_code()
        for line in self._log.lines["child-dead"]:
            self._log.record(line.format(rank=child.rank, code=code))
        self._log.say("kill-tree", pid=os.getpid(), parent=False)
        headline = self._log.lines["child-dead-error"].format(rank=child.rank, code=code)
        self._log.raw(parent_traceback(self._log.lines, "wait-for-ranks", headline))
        self._family.kill()
        os._exit(1)

    def _die_of_taken_port(self) -> Never:
        """End as uvicorn does without its port: status 3, after the warm-up met its owner."""
        log, address = self._log, (self._plan.args["host"], self._plan.int_arg("port"))
        log.uvicorn(
            f"[Errno 98] error while attempting to bind on address {address}: "
            "address already in use",
            level="ERROR",
        )
        log.uvicorn("Waiting for application shutdown.")
        log.clock.sleep(1)
        log.say("ready")
        log.uvicorn("Application shutdown complete.")
        log.say("kill-tree", pid=os.getpid(), parent=False)
        self._family.kill()
        os._exit(_PORT_TAKEN_EXIT)

    def _shut_down(self) -> Never:
        """End after SIGTERM: drain, then status 0, or before 0.5.23 a SIGKILL to oneself."""
        log = self._log
        if self._api is not None:
            self._api.is_stopping = True
        log.say("sigterm")
        log.clock.sleep(_DRAIN_STORY_S)
        misbehave.linger(self._plan, log.clock)
        log.say("drained")
        log.say("kill-tree", pid=os.getpid(), parent=False)
        self._family.kill()
        if log.lines["term-exit"]:
            _kill_self()
        log.uvicorn("Shutting down")
        log.uvicorn("Waiting for application shutdown.")
        log.uvicorn("Application shutdown complete.")
        log.uvicorn(f"Finished server process [{os.getpid()}]")
        os._exit(0)


def _kill_self() -> Never:
    os.kill(os.getpid(), signal.SIGKILL)
    while True:
        signal.pause()
