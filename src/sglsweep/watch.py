"""When to stop waiting for a server: a fatal line, an exit, silence without life, too long.

Pure: time, log and life signs come in, a decision goes out. Output is not progress: a line
that repeats itself is a server that does not get on. And silence is not a hang: K2's weights
once took 812 s without a line, then the server served.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.attempt import End, EndKind
from sglsweep.catalogue.limits import CpuLife, Limit, Limits
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.keeper_files import Life
    from sglsweep.triage.follow import Terminal, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Go on waiting.

    Attributes:
        silent_s: seconds since the last output or life sign.
        limit_s: of that silence; None = without end.
        sign: what the last sign was, for a reader.
    """

    silent_s: float
    limit_s: float | None
    sign: str


@dataclass(frozen=True, slots=True)
class ReadyForProof:
    """The server says that it is ready, or listens where its ready line is hidden."""

    detail: str = "the ready line"


Decision = Continue | ReadyForProof | End


@dataclass(slots=True)
class _Sums:
    """The life signs at the last sign of each kind, to tell growth from noise."""

    at: float
    cpu_s: float = 0.0
    read_bytes: int = 0
    net_rx_bytes: int = 0
    page_cache_bytes: int = 0
    gpu_used_mib: list[int] = field(default_factory=list)


_REMEMBERED_LINES = 4096


class Watcher:
    """Watches one attempt.

    Feed the log to the view first and observe then, and take the server's state before the
    log: whoever sees an exit has then also seen its last words.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        started_at: float,
        gpu_limit_w: Sequence[float] = (),
        is_mute: bool = False,
    ) -> None:
        """Begin at `started_at`.

        Args:
            limits: of this attempt.
            started_at: on the clock that `observe` is given.
            gpu_limit_w: power limit of each GPU; without it spinning GPUs are not recognised.
            is_mute: `log-level` is above info, so no phase will ever be seen.
        """
        self._limits = limits
        self._is_mute = is_mute
        self._started_at = started_at
        self._gpu_limit_w = tuple(gpu_limit_w)
        self._now = started_at
        self._sign_at = started_at
        self._sign = "the start"
        self._work = ""
        self._work_s: dict[str, float] = {}
        self._phase = Phase.START
        self._was_capturing = False
        self._progress: Mapping[str, tuple[int, int]] = {}
        self._records = 0
        self._seen_lines: set[str] = set()
        self._sums: _Sums | None = None
        self._terminal_since: float | None = None
        self._spoke_at = started_at
        self._listening_since: float | None = None

    def observe(  # noqa: PLR0913 - what there is to see, all by name after the first three
        self,
        now: float,
        view: View,
        life: Life | None,
        *,
        server_alive: bool,
        exit_status: int | None = None,
        is_listening: bool = False,
    ) -> Decision:
        """Decide.

        Args:
            now: seconds on the clock of `started_at`; never runs backwards.
            view: what the log says so far.
            life: None where no life signs can be had: then only long silence counts.
            server_alive: the server's parent lives.
            exit_status: the parent's, negative for a signal.
            is_listening: this attempt's own process holds the port.
        """
        self._advance(now, view)
        if not server_alive:
            return _exited(view, exit_status)
        if view.terminal is not None:
            return self._after_terminal(now, view, view.terminal)
        if (ready := self._ready(now, view, is_listening=is_listening)) is not None:
            return ready
        self._note_output(now, view, is_blind=life is None)
        limit = self._limit(view)
        if life is not None:
            self._note_life(now, life, limit)
        return self._too_long(now, view, limit) or self._too_quiet(now, view, life, limit)

    # -- what goes on ------------------------------------------------------------------------

    def _advance(self, now: float, view: View) -> None:
        """Charge the time since the last look to the work that was going on."""
        if self._work:
            passed = max(now - self._now, 0.0)
            self._work_s[self._work] = self._work_s.get(self._work, 0.0) + passed
        self._now = max(now, self._now)
        if view.is_capturing and not self._was_capturing:
            # Decode, prefill and draft graphs have their time each.
            self._work_s.pop(Phase.GRAPH_CAPTURE, None)
        self._was_capturing = view.is_capturing
        self._work = _work(view)

    def _limit(self, view: View) -> Limit:
        limits = self._limits
        if self._work == "jit":
            return limits.jit
        if self._work == "download":
            return limits.download
        limit = limits.phases[view.phase]
        if self._is_mute and view.phase.order < Phase.WEIGHTS.order:
            return limits.unseen
        mode = view.server_args.get("disaggregation_mode")
        if view.phase is Phase.WARMUP and mode not in {None, "null"}:
            return Limit(quiet_s=limits.pd_warmup_s, cap_s=limits.pd_warmup_s, cpu=limit.cpu)
        return limit

    def _ready(self, now: float, view: View, *, is_listening: bool) -> ReadyForProof | None:
        if view.is_ready:
            return ReadyForProof()
        if not is_listening:
            self._listening_since = None
            return None
        if self._listening_since is None:
            self._listening_since = now
        # With `log-level warning` no milestone is printed at all, the ready line neither.
        is_unseen = view.phase.order < Phase.WEIGHTS.order
        if is_unseen and now - self._listening_since >= self._limits.listening_s:
            return ReadyForProof("the port is open; its log level hides the ready line")
        return None

    # -- signs -------------------------------------------------------------------------------

    def _note(self, now: float, sign: str) -> None:
        self._sign_at, self._sign = now, sign

    def _note_output(self, now: float, view: View, *, is_blind: bool) -> None:
        if view.phase is not self._phase:
            self._phase = view.phase
            self._seen_lines.clear()
            self._note(now, f"phase {view.phase}")
        if dict(view.progress) != dict(self._progress):
            self._progress = dict(view.progress)
            self._note(now, "progress")
        if view.records != self._records:
            self._records = view.records
            if self._is_news(view.last_text, is_blind=is_blind):
                self._note(now, "output")

    def _is_news(self, text: str, *, is_blind: bool) -> bool:
        """Tell whether a line says something that was not said before in this phase.

        With life signs at hand, lines that differ in their numbers alone are the same line
        ("waiting for rank 3, 20 s"): if such a server works, its life signs show it.
        """
        line = _TIMESTAMP.sub("", text)
        line = line if is_blind else _NUMBER.sub("#", line)
        if line in self._seen_lines:
            return False
        if len(self._seen_lines) < _REMEMBERED_LINES:
            self._seen_lines.add(line)
        return True

    def _note_life(self, now: float, life: Life, limit: Limit) -> None:
        if self._sums is None:
            self._sums = _sums(now, life)
            return
        sign = self._grown(now, self._sums, life, limit)
        if sign:
            self._note(now, sign)
            self._sums = _sums(now, life)
            return
        # A sum that fell (a process of the tree ended) must not hide later growth.
        old = self._sums
        old.cpu_s = min(old.cpu_s, life.cpu_s)
        old.read_bytes = min(old.read_bytes, _read(life))
        old.net_rx_bytes = min(old.net_rx_bytes, life.net_rx_bytes)
        old.page_cache_bytes = min(old.page_cache_bytes, life.page_cache_bytes)

    def _grown(self, now: float, old: _Sums, life: Life, limit: Limit) -> str:
        least = self._limits.life
        passed = now - old.at
        is_busy = passed > 0 and (life.cpu_s - old.cpu_s) / passed >= least.cpu_share
        is_early = self._phase.order <= Phase.WEIGHTS.order
        gpus = zip(life.gpu_used_mib, old.gpu_used_mib, strict=False)
        signs = {
            "compilers at work": bool(life.compilers),
            "reading files": _read(life) - old.read_bytes >= least.read_bytes,
            "receiving from the network": is_early
            and life.net_rx_bytes - old.net_rx_bytes >= least.net_rx_bytes,
            "page cache growing": life.page_cache_bytes - old.page_cache_bytes
            >= least.page_cache_bytes,
            "GPU memory changing": any(abs(a - b) >= least.gpu_mib for a, b in gpus),
            "CPU at work": is_busy and _cpu_counts(limit.cpu, has_gpu=bool(life.gpu_used_mib)),
        }
        return next((sign for sign, is_seen in signs.items() if is_seen), "")

    # -- ends --------------------------------------------------------------------------------

    def _after_terminal(self, now: float, view: View, terminal: Terminal) -> Decision:
        if self._terminal_since is None:
            self._terminal_since = now
        if view.records != self._records:
            self._records, self._spoke_at = view.records, now
        waited = now - self._terminal_since
        limits = self._limits
        grace = limits.cascade_grace_s if terminal.is_cascade else limits.cause_grace_s
        has_said_all = now - self._spoke_at >= limits.alone_grace_s and not terminal.is_cascade
        if waited < grace and not (has_said_all and _is_one_rank(view.server_args)):
            return Continue(silent_s=waited, limit_s=grace, sign="a fatal line")
        return End(kind=EndKind.FATAL_LINE, detail=_fatal_detail(terminal))

    def _too_long(self, now: float, view: View, limit: Limit) -> End | None:
        total = now - self._started_at
        ready_s = self._limits.ready_s
        if ready_s is not None and total >= ready_s:
            said = f"not ready after {span(total)}, in phase {view.phase}; limit {span(ready_s)}"
            return End(kind=EndKind.CAP, detail=said)
        spent = self._work_s.get(self._work, 0.0)
        if limit.cap_s is None or spent < limit.cap_s:
            return None
        said = (
            f"{span(spent)} {_doing(self._work, view)} without an end; limit {span(limit.cap_s)}"
        )
        return End(kind=EndKind.CAP, silence_s=now - self._sign_at, detail=said)

    def _too_quiet(
        self, now: float, view: View, life: Life | None, limit: Limit
    ) -> Continue | End:
        silent = now - self._sign_at
        quiet = limit.quiet_s
        is_spinning = life is not None and not view.is_compiling and self._spins(life)
        if quiet is not None and life is None:
            quiet = max(quiet, self._limits.blind_quiet_s)
        if quiet is not None and is_spinning:
            quiet = min(quiet, self._limits.spin.quiet_s)
        if quiet is None or silent < quiet:
            return Continue(silent_s=silent, limit_s=quiet, sign=self._sign)
        signs = "no output and no life sign" if life is not None else "no output"
        said = f"{signs} for {span(silent)} {_doing(self._work, view)}; limit {span(quiet)}"
        if is_spinning:
            said += "; GPUs fully used at low power, memory unchanged: ranks wait for each other"
        return End(kind=EndKind.SILENCE, silence_s=silent, detail=said)

    def _spins(self, life: Life) -> bool:
        """Tell whether every GPU is fully used at a fraction of its power limit."""
        spin, limits = self._limits.spin, self._gpu_limit_w
        if not limits or not life.gpu_util or len(life.gpu_power_w) < len(life.gpu_util):
            return False
        return all(
            util >= spin.util_percent and power <= spin.power_share * limit
            for util, power, limit in zip(life.gpu_util, life.gpu_power_w, limits, strict=False)
        )


_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d:\d\d:\d\d\b")
_NUMBER = re.compile(r"\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?")
_DOWNLOAD = re.compile(
    r"\bDownloading\b|\bFetching \d+ files|\bDownload complete\b|\bPulling (?:image|fs layer)"
    r"|\.(?:safetensors|bin|gguf|json): +\d+%"
)


def _work(view: View) -> str:
    if view.is_compiling:
        return "jit"
    if view.phase.order <= Phase.WEIGHTS.order and _DOWNLOAD.search(view.last_text):
        return "download"
    return str(view.phase)


def _doing(work: str, view: View) -> str:
    names = {"jit": "compiling or tuning kernels", "download": "downloading"}
    return f"{names[work]} (phase {view.phase})" if work in names else f"in phase {view.phase}"


def _is_one_rank(server_args: Mapping[str, object]) -> bool:
    """Tell whether the launch has one scheduler, by its printed arguments; unknown: no."""
    sizes = ("tp_size", "pp_size", "dp_size", "nnodes")
    return bool(server_args) and all(server_args.get(name) == 1 for name in sizes)


def _sums(now: float, life: Life) -> _Sums:
    return _Sums(
        at=now,
        cpu_s=life.cpu_s,
        read_bytes=_read(life),
        net_rx_bytes=life.net_rx_bytes,
        page_cache_bytes=life.page_cache_bytes,
        gpu_used_mib=list(life.gpu_used_mib),
    )


def _read(life: Life) -> int:
    return life.read_bytes + life.read_chars


def _cpu_counts(rule: CpuLife, *, has_gpu: bool) -> bool:
    return rule is CpuLife.ALWAYS or (rule is CpuLife.WITHOUT_GPU and not has_gpu)


def _exited(view: View, exit_status: int | None) -> End:
    said = f"{_how(exit_status)} in phase {view.phase}"
    if view.terminal is None:
        return End(kind=EndKind.EXITED, exit_status=exit_status, detail=said)
    said = f"{_fatal_detail(view.terminal)}; {said}"
    return End(kind=EndKind.FATAL_LINE, exit_status=exit_status, detail=said)


def _fatal_detail(terminal: Terminal) -> str:
    return f"fatal line {terminal.line}: {' '.join(terminal.text.split())[:160]}"


_SIGNAL_STATUS = 128


def _how(exit_status: int | None) -> str:
    if exit_status is None:
        return "ended"
    number = ended_by_signal(exit_status)
    if number is None:
        return f"exited with status {exit_status}"
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def ended_by_signal(exit_status: int) -> int | None:
    """Return the signal behind an exit status (-9 and 137 are both 9), None if there is none."""
    if exit_status < 0:
        return -exit_status
    return exit_status - _SIGNAL_STATUS if exit_status > _SIGNAL_STATUS else None


_MINUTE, _HOUR = 60, 3600


def span(seconds: float) -> str:
    """Write a duration for people: 42 s, 5 m 02 s, 1 h 05 m."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        minutes, rest = divmod(whole, _MINUTE)
        return f"{minutes} m {rest:02d} s" if rest else f"{minutes} m"
    hours, rest = divmod(whole, _HOUR)
    return f"{hours} h {rest // _MINUTE:02d} m"
