"""Attempts, outcomes and scenes as a sweep would tell them."""

from __future__ import annotations

from sglsweep.attempt import (
    Attempt,
    Diagnosis,
    End,
    EndKind,
    Outcome,
    ProofStep,
    StepState,
    Timings,
)
from sglsweep.cli.scene import Scene
from sglsweep.events import Ended, Progress, Started, StepAsked
from sglsweep.matrix import Cell, Value
from sglsweep.verdict import Phase, Verdict

HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07 a\rb\x08\x00 \u202etfel\u202c wide \u6f22\u5b57 "
    "\ud800 \x9b31m tab\there " + "long " * 200
)


def attempt(number: int, why: str = "listed under include", **flags: Value) -> Attempt:
    """Return an attempt that passes these flags."""
    argv = ["-m", "sglang.launch_server", "--model-path", "made/up"]
    for name, value in flags.items():
        if value is not None:
            argv += [f"--{name.replace('_', '-')}", str(value)]
    return Attempt(
        number=number,
        cell=Cell({name.replace("_", "-"): value for name, value in flags.items()}),
        build="stock",
        model="made/up",
        python="python3",
        argv=tuple(argv),
        env={},
        launch_key=str(number),
        host="local",
        port=30000,
        why=why,
        started_at="2026-02-10T10:00:00Z",
        keeper_dir=f"/home/me/.sglsweep/runs/r/{number:04d}",
    )


def outcome(
    of: Attempt, verdict: Verdict = Verdict.OOM, cause: str | None = "oom-graph-capture"
) -> Outcome:
    """Return what an attempt came to."""
    diagnosis = Diagnosis(
        verdict=verdict, phase=Phase.GRAPH_CAPTURE, cause=cause, evidence="CUDA out of memory"
    )
    return Outcome(
        attempt=of,
        end=End(kind=EndKind.EXITED),
        diagnosis=diagnosis,
        timings=Timings(total_s=61.4),
        ended_at="2026-02-10T10:01:01Z",
    )


def progress(of: Attempt, **changes: object) -> Progress:
    """Return a look at an attempt in the middle of graph capture."""
    fields: dict[str, object] = {
        "attempt": of,
        "phase": Phase.GRAPH_CAPTURE,
        "phase_s": 42.0,
        "elapsed_s": 130.0,
        "last_text": "Capturing batches (bs=48 avail_mem=6.60 GB)",
        "bars": {"weights": (83, 83), "capture": (3, 12)},
        "ranks": {"cuda graph": (2, 8)},
        "silent_s": 7.0,
        "limit_s": 600.0,
        "cap_s": 1200.0,
        "sign": "CPU at work",
    }
    return Progress(**{**fields, **changes})  # type: ignore[arg-type] # a test's own words


def scene(finished: int = 3, text: str = "") -> Scene:
    """Return a scene with finished attempts and one that runs."""
    made = Scene(title="small", host="local", goal="map", began_at=1000.0)
    for number in range(1, finished + 1):
        made.take(Ended(outcome=outcome(attempt(number, tp=8, page_size=number))), 1060.0)
    running = attempt(finished + 1, text or "differs in one flag", tp=8, page_size=99)
    made.take(Started(attempt=running), 1061.0)
    made.take(progress(running, **({"last_text": text} if text else {})), 1100.0)
    step = ProofStep(name="greedy", state=StepState.OK, detail=text or "8 tokens for 44")
    made.take(StepAsked(attempt=running, step=step), 1100.0)
    made.next_text = text or "if it fails: page-size=1 (the cheapest question left)"
    made.odds_text = text or "12 cells are left; the best serves with a chance of 31 %"
    return made
