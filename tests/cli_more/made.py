"""Finished attempts and runs made by hand, for commands that only read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sglsweep import catalogue
from sglsweep.attempt import Attempt, Diagnosis, End, EndKind, Outcome
from sglsweep.cli.wiring import identity_of
from sglsweep.config.sweep import load_sweep
from sglsweep.journal import Journal, RunIdentity
from sglsweep.matrix import Cell
from sglsweep.triage.diagnose import diagnose
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ARGV = ("-m", "sglang.launch_server", "--model-path", "org/model", "--tp", "2")
PLACE = ("--host", "127.0.0.1", "--port", "30000")


def outcome(  # noqa: PLR0913 - one word for each thing that a test cares about
    number: int,
    verdict: Verdict = Verdict.SERVING,
    *,
    phase: Phase = Phase.DECODE,
    cause: str | None = None,
    argv: tuple[str, ...] = (*ARGV, *PLACE),
    env: Mapping[str, str] | None = None,
    cell: Cell | None = None,
    facts: Mapping[str, Any] | None = None,
    host: str = "gpu-host-07",
    model: str = "org/model",
) -> Outcome:
    """Return a finished attempt."""
    attempt = Attempt(
        number=number,
        cell=cell or Cell({"tp": 2}),
        build="stock",
        model=model,
        python="/opt/sglang/bin/python",
        argv=argv,
        env=env or {},
        launch_key=" ".join(argv),
        host=host,
        port=30000,
        why="a test asks for it",
        started_at="2026-11-29T01:02:03Z",
        keeper_dir="/tmp/keeper",  # noqa: S108 - never made
    )
    kind = EndKind.PROVEN if verdict is Verdict.SERVING else EndKind.FATAL_LINE
    return Outcome(
        attempt=attempt,
        end=End(kind=kind),
        diagnosis=Diagnosis(
            verdict=verdict,
            phase=phase,
            cause=cause or verdict.value,
            evidence="" if verdict is Verdict.SERVING else "RuntimeError: made up",
            sglang_version="0.5.9",
            catalogue=catalogue.load().version,
        ),
        ended_at="2026-11-29T01:12:03Z",
        facts=facts or {},
    )


def with_log(one: Outcome, log: bytes) -> Outcome:
    """Return the attempt with the diagnosis of a log."""
    return replace(one, diagnosis=diagnose(log, catalogue.load()))


def make_run(
    folder: Path,
    *outcomes: Outcome,
    logs: Mapping[int, bytes] | None = None,
    sweep: Path | None = None,
) -> Path:
    """Write a run, of a sweep if one is given, and return its folder."""
    identity = (
        identity_of(load_sweep(sweep))
        if sweep
        else RunIdentity(
            name="made",
            model="org/model",
            launch={},
            sweep_text="name: made\n",
            host="gpu-host-07",
            catalogue="",
        )
    )
    with Journal.create_or_resume(folder / "run", identity) as journal:
        journal.record(source=str(sweep))
        for one in outcomes:
            journal.open(one.attempt, one.facts)
            journal.append_log(one.attempt.number, (logs or {}).get(one.attempt.number, b""))
            journal.close(one)
    return folder / "run"
