"""What one attempt is, how it ended, what was proven, and what it all means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sglsweep.matrix import Cell, Value
from sglsweep.verdict import Milestone, MilestoneState, Phase, Verdict

Scalar = None | bool | int | float | str
"""A value as SGLang's own `server_args` line holds it, or a number read from the log."""


@dataclass(frozen=True, slots=True)
class Blame:
    """One flag that a signature implicates, with the value that is suspect (None = any)."""

    flag: str
    value: Value = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A warning worth knowing beside the verdict; never its cause."""

    id: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIssue:
    """A public report whose condition holds for this log."""

    title: str
    url: str
    fixed_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The whole answer about one log.

    Attributes:
        line: 1-based number of the evidence line; lines end at a newline alone. None: no evidence.
        evidence: the text between carriage returns that shows the cause, without colour codes.
        rank: as printed, all parts ("DP3 TP3"); None when the log names none.
        remedy: changes that the catalogue knows to help, `env.NAME` or flag -> value.
        requested: flags as the command asked for them, where the log shows them.
        effective: flags as SGLang resolved them.
        metrics: numbers from the log; memory in GiB (`*_gb`), times in seconds (`*_s`).
        catalogue: version of the catalogue that said so.
    """

    verdict: Verdict
    phase: Phase
    cause: str | None
    rank: str | None = None
    line: int | None = None
    evidence: str = ""
    blames: tuple[Blame, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    next_step: str = ""
    remedy: Mapping[str, Value] = field(default_factory=dict)
    known_issues: tuple[KnownIssue, ...] = ()
    sglang_version: str | None = None
    requested: Mapping[str, Scalar] = field(default_factory=dict)
    effective: Mapping[str, Scalar] = field(default_factory=dict)
    milestones: Mapping[Milestone, MilestoneState] = field(default_factory=dict)
    metrics: Mapping[str, Scalar] = field(default_factory=dict)
    confidence: str = "high"
    catalogue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One launch of one cell on one host, as decided; never changed afterwards.

    Attributes:
        argv: what follows the build's Python: `-m sglang.launch_server ...`, with host and port.
        env: what is added to the environment; a secret stands as `${NAME}`, never as its value.
        launch_key: equal where sorted argv (host and port aside), environment and build are.
        why: one plain sentence.
        started_at: ISO 8601, UTC.
        keeper_dir: the attempt's folder on the host.
        slot: its place among attempts side by side; its port is the host's plus this.
        gpus: the cards that the tool let it see, as nvidia-smi numbers them; then `env` says so
            too. None: all that its environment shows.
    """

    number: int
    cell: Cell
    build: str
    model: str
    python: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    launch_key: str
    host: str
    port: int
    why: str
    started_at: str
    keeper_dir: str
    relaunch_of: int | None = None
    slot: int = 0
    gpus: tuple[int, ...] | None = None

    @property
    def own_env(self) -> Mapping[str, str]:
        """The environment without the choice of cards: a slot is no setting, as a port is none."""
        if self.gpus is None:
            return self.env
        return {name: text for name, text in self.env.items() if name not in OF_A_SLOT}


OF_A_SLOT = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
"""Variables that give an attempt its cards."""


class EndKind(StrEnum):
    """Why the wait for an attempt ended."""

    FATAL_LINE = "fatal-line"
    EXITED = "exited"
    SILENCE = "silence"
    CAP = "cap"
    LOG_LIMIT = "log-limit"
    PROVEN = "proven"
    PROOF_FAILED = "proof-failed"
    DEADLINE = "deadline"
    EQUAL = "equal"
    INTERRUPTED = "interrupted"
    HOST_LOST = "host-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an attempt's wait ended.

    Attributes:
        exit_status: the parent's, as Python gives it: negative for a signal; None if unknown.
        stop_offset: bytes of log before we stopped anything; later lines are teardown.
        silence_s: seconds without output or life sign, where that ended it.
        detail: one line for a reader.
        equal_to: the finished attempt whose effective configuration is the same.
        oom_kills: kills by the kernel's OOM killer, in the keeper's cgroup or on the machine,
            while the attempt ran.
        gpu_before_mib: in use on each of its cards before the server touched it; empty if unknown.
        gpu_cards: those cards, as nvidia-smi numbers them; empty in records of all, in order.
        gpu_holders: by whom, "pid 4121 (python train.py), 4,096 MiB", as far as the host tells.
        port_holder: who else listened on the attempt's port, in the same way.
        first_gone: the rank whose process was gone while the others still ran, as its title
            names it ("TP1").
        beside: attempts of the run that ran on the host at the same time.
        sharing: those of them that had memory of the same cards.
    """

    kind: EndKind
    exit_status: int | None = None
    stop_offset: int | None = None
    silence_s: float | None = None
    detail: str = ""
    equal_to: int | None = None
    oom_kills: int = 0
    gpu_before_mib: tuple[int, ...] = ()
    gpu_cards: tuple[int, ...] = ()
    gpu_holders: tuple[str, ...] = ()
    port_holder: str = ""
    first_gone: str = ""
    beside: tuple[int, ...] = ()
    sharing: tuple[int, ...] = ()


class StepState(StrEnum):
    """What one step of the proof said."""

    OK = "ok"
    FAILED = "failed"
    SUSPECT = "suspect"
    NOT_APPLICABLE = "not-applicable"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofStep:
    """One question of the proof and its answer.

    Attributes:
        verdict: what a failed step makes of the attempt (garbage-output, hang, crash, ...);
            None where only the log can tell (the server died under it).
        evidence: text of the server's answer that shows it, shortened.
        cause: id for the diagnosis where the step's name and verdict do not say it all.
        next_step: what to do about a failed step.
        numbers: what was measured on the way (`ttft_s`, `tokens_per_s`, ...).
    """

    name: str
    state: StepState
    detail: str = ""
    elapsed_s: float = 0.0
    verdict: Verdict | None = None
    evidence: str = ""
    cause: str | None = None
    next_step: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


WITHOUT_TOKENS = frozenset({"answers", "server-info"})
"""Steps of the proof that need no forward pass: they say nothing of a decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The probes that make "serving" true, in the order they were asked.

    Attributes:
        tokens_per_s: output tokens a second of the short load; None if it was not reached.
        concurrency: requests in flight during that load.
    """

    steps: tuple[ProofStep, ...] = ()
    tokens_per_s: float | None = None
    concurrency: int | None = None

    @property
    def holds(self) -> bool:
        """True if nothing failed or was left out, and most answers were beyond doubt.

        Answers that are all odd in some way (one token to every prompt, say) prove nothing, nor
        do the steps that ask for no token.
        """
        if any(s.state in {StepState.FAILED, StepState.NOT_RUN} for s in self.steps):
            return False
        asked = [s for s in self.steps if s.name not in WITHOUT_TOKENS]
        passed = sum(s.state is StepState.OK for s in asked)
        return passed > sum(s.state is StepState.SUSPECT for s in asked)

    @property
    def first_failure(self) -> ProofStep | None:
        """The step that failed, if one did."""
        return next((s for s in self.steps if s.state is StepState.FAILED), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One load of the ladder, as it was borne.

    Attributes:
        concurrency: requests in flight.
        requests: requests in all.
        tokens_per_s: output tokens of all requests together.
        numbers: `ttft_*_s`, `tpot_*_s` and `itl_*_s` at p50, p90 and p99; `gpu_used_mib` of the
            fullest card and `gpu_power_w` of all cards at their highest, where there are any;
            `log_*`: what SGLang's own lines said meanwhile (`log_tokens_per_s`, `log_running`,
            `log_queued`, `log_kv_share` at their highest).
        errors: requests refused or not answered.
        meets_slo: None where no objective is set.
    """

    concurrency: int
    requests: int
    tokens_per_s: float
    numbers: Mapping[str, float] = field(default_factory=dict)
    errors: int = 0
    meets_slo: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """How a proven server bore more and more requests at once.

    Attributes:
        input: tokens of each prompt.
        output: tokens of each answer.
        slo: name of a percentile (`ttft_p99`) -> seconds.
        is_short: only some rungs were asked: a heat of the race, no full measurement.
        is_cut: it was stopped from outside before its end.
        ended_because: why there is no further rung.
        tool: what asked: "own", or the load tool's name.
        note: why it was not the tool that was wanted.
    """

    rungs: tuple[Rung, ...] = ()
    input: int = 0
    output: int = 0
    slo: Mapping[str, float] = field(default_factory=dict)
    is_short: bool = False
    is_cut: bool = False
    ended_because: str = ""
    tool: str = "own"
    note: str = ""

    @property
    def best(self) -> Rung | None:
        """The fastest rung that meets the objectives, or the fastest where there are none."""
        fit = [r for r in self.rungs if r.meets_slo is not False]
        return max(fit, key=lambda r: r.tokens_per_s, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """How a proven server bore a modest load for a long time.

    Attributes:
        asked_s: how long it was to last.
        lasted_s: how long it did.
        first_tokens_per_s: output speed of the first quarter of it.
        last_tokens_per_s: of the last quarter.
        first_kv_share: least share of the KV pool in use when it was idle, in its first quarter.
        last_kv_share: in its last quarter; much more is memory that does not come back.
        is_cut: it was stopped from outside before its end.
    """

    asked_s: float
    lasted_s: float = 0.0
    concurrency: int = 0
    requests: int = 0
    errors: int = 0
    first_tokens_per_s: float | None = None
    last_tokens_per_s: float | None = None
    first_kv_share: float | None = None
    last_kv_share: float | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Instants:
    """When what happened to one attempt: seconds since the epoch, on the controller's clock.

    What the host saw is brought to that clock by the keeper's heartbeats. None: it did not
    happen, or nobody saw it.

    Attributes:
        call_at: this call of the tool opened the run; attempts of one call follow each other.
        decided_at: the attempt was chosen.
        exec_at: the server was started on the host.
        fatal_at: a fatal line, or the exit, was first seen.
        judged_at: the wait ended: last words heard, the proof's last answer taken, or a limit.
        stop_at: the end began on the host; before `judged_at` where the server ended by itself.
        group_gone_at: no process of the attempt lived any more.
        gpu_free_at: the GPUs' memory was back; None without a GPU, or if it did not come back.
        port_free_at: nobody listened on the port any more.
        closed_at: the record was complete.
    """

    call_at: float | None = None
    decided_at: float | None = None
    exec_at: float | None = None
    fatal_at: float | None = None
    judged_at: float | None = None
    stop_at: float | None = None
    group_gone_at: float | None = None
    gpu_free_at: float | None = None
    port_free_at: float | None = None
    closed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityAnswer:
    """One question about whether a server is the model that was asked for.

    Attributes:
        kind: question, needle, tool (a call is right), no-tool (a call is wrong).
        right: None: not judged, since it was refused or cut off.
        text: the last word of the answer, thoughts left out, shortened.
    """

    id: str
    kind: str
    prompt: str
    right: bool | None = None
    text: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What a proven server answered to questions with known answers.

    Attributes:
        note: what could not be asked, and why.
    """

    answers: tuple[QualityAnswer, ...] = ()
    note: str = ""

    @property
    def right(self) -> int:
        """How many were right."""
        return sum(a.right is True for a in self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds spent on one attempt, by what they were spent on.

    Attributes:
        total_s: from the decision until the stop was seen to its end.
        ready_s: from the decision until the server was ready.
        proof_s: from ready until the wait ended.
        stop_s: from the wait's end until the stop was seen to its end.
        launch_s: from the decision until the server was started: records, copies, the keeper.
        server_s: from there until the wait ended; the server's own time.
        last_words_s: of `server_s`: from the fatal line, or the exit, until the wait ended.
        group_gone_s: from the wait's end until no process lived; 0 if none did by then.
        gpu_free_s: from the wait's end until the GPUs' memory was back.
        port_free_s: from the wait's end until the port was free.
        at: the instants behind them.
    """

    total_s: float = 0.0
    ready_s: float | None = None
    proof_s: float | None = None
    stop_s: float | None = None
    launch_s: float | None = None
    server_s: float | None = None
    last_words_s: float | None = None
    group_gone_s: float | None = None
    gpu_free_s: float | None = None
    port_free_s: float | None = None
    at: Instants = field(default_factory=Instants)

    @property
    def dead_s(self) -> float | None:
        """What passed beside the server's own time: launching it and ending it."""
        return None if self.server_s is None else max(self.total_s - self.server_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished attempt.

    Attributes:
        facts: what the host was at that moment (see `onhost/facts.py`), for later comparison.
        server_info: what the running server said of itself, where it was asked.
        ladder: how it bore more and more requests at once, where that was measured.
        soak: how it bore a long load, where that was asked for.
        quality: how it answered questions, where that was asked for.
    """

    attempt: Attempt
    end: End
    diagnosis: Diagnosis
    proof: Proof | None = None
    timings: Timings = field(default_factory=Timings)
    ended_at: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    server_info: Mapping[str, object] = field(default_factory=dict)
    ladder: Ladder | None = None
    soak: Soak | None = None
    quality: Quality | None = None

    @property
    def verdict(self) -> Verdict:
        """The diagnosis in one word."""
        return self.diagnosis.verdict

    @property
    def is_due_alone(self) -> bool:
        """It lacked what others of its run had: no evidence, to be launched again alone."""
        return self.diagnosis.cause == BESIDE_OTHERS

    @property
    def is_from_outside(self) -> bool:
        """Another process on the host ended it, by what it holds there; no flag did."""
        return self.diagnosis.cause in FROM_OUTSIDE

    @property
    def is_evidence(self) -> bool:
        """True where it says something about the cell that was launched."""
        return self.verdict.is_evidence and not self.is_from_outside


FROM_OUTSIDE = frozenset({"port-in-use", "dist-port-in-use", "oom-gpu-held"})
"""Causes that another process on the host makes: it has the port, or the card's memory."""
BESIDE_OTHERS = "beside-others"
"""Cause of an attempt that lacked memory, a port, or a card that others of its run had."""


def numbered(found: Iterable[int]) -> str:
    """Write "attempt 3" or "attempts 3, 4"."""
    words = [str(number) for number in found]
    return f"attempt{'s' if len(words) > 1 else ''} {', '.join(words)}"
