"""What `plan` tells before anything is launched, and from which earlier runs it knows it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cli_more.made import outcome
from sglsweep.attempt import Outcome, Timings
from sglsweep.cli.app import program
from sglsweep.config.sweep import load_sweep
from sglsweep.journal import Journal, RunIdentity
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

SWEEP = """
name: small
model: org/model
host: gpu-host-07
need: {context: 32768, concurrent: 4}
builds: {stock: {python: /opt/sglang/bin/python}}
launch: {flags: {tp: 2}}
matrix:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [null, bf16]
  moe-runner-backend: [triton, cutlass]
  mem-fraction-static: [0.80, 0.88, 0.93]
exclude:
  - {when: {attention-backend: fa3, kv-cache-dtype: bf16}, because: fa3 is not for this card}
include:
  - {attention-backend: triton, kv-cache-dtype: bf16}
goal: first-serving
budget: {attempts: 12, hours: 1}
"""
FIGURES = {
    "avail_before_weights_gb": 100.0,
    "avail_after_weights_gb": 20.0,
    "avail_after_graphs_gb": 8.0,
    "kv_gb": 5.0,
    "kv_tokens": 50_000,
    "kv_dtype": "bfloat16",
}


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep's file."""
    file = tmp_path / "SWEEP.yaml"
    file.write_text(SWEEP)
    return file


def plan(sweep: Path, *words: str, status: int = 0) -> str:
    done = CliRunner().invoke(program(), ["plan", str(sweep), *words])
    assert done.exit_code == status, done.output
    return done.output


def document(sweep: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(sweep, "--json", *words))
    return found


def launched(number: int, seconds: float, **metrics: object) -> Outcome:
    """Return an attempt that took so long, at a fraction of 0.85."""
    one = outcome(number, Verdict.OOM)
    effective = {"mem-fraction-static": 0.85}
    diagnosis = replace(one.diagnosis, metrics=metrics, effective=effective)  # type: ignore[arg-type]
    return replace(one, diagnosis=diagnosis, timings=Timings(total_s=seconds))


def earlier(
    folder: Path,
    *outcomes: Outcome,
    model: str = "org/model",
    host: str = "gpu-host-07",
    **facts: object,
) -> None:
    """Write a run into a folder."""
    identity = RunIdentity(
        name=folder.name, model=model, launch={}, sweep_text="", host=host, catalogue=""
    )
    folder.parent.mkdir(exist_ok=True)
    with Journal.create_or_resume(folder, identity) as journal:
        journal.record(**facts)
        for one in outcomes:
            journal.open(one.attempt, {})
            journal.close(one)


def test_the_size_and_every_exclusion_with_its_reason_are_told(sweep: Path) -> None:
    text = plan(sweep)
    assert "cells: 30 of 36 to launch, 1 included first" in text
    assert "excluded: 6 cells: fa3 is not for this card" in text
    assert "not asked: flags, values and known issues are not checked" in text


def test_slots_of_the_host_make_it_shorter_at_best(sweep: Path) -> None:
    assert "side by side" not in plan(sweep)
    host = load_sweep(sweep).host
    ssh = "" if host == "local" else "ssh: {host: x}, "
    (sweep.parent / "hosts.yaml").write_text(f"{host}: {{{ssh}slots: 4}}\n")
    assert "(one after another; 4 side by side take 15 min at best)" in plan(sweep)


def test_what_is_not_known_is_not_made_up(sweep: Path) -> None:
    text = plan(sweep)
    assert "time: at most 12 attempts, 1 h 00 min at 5 min each\n" in text
    assert "nothing was launched here yet, so by the lead case" in text
    assert "memory: nothing known yet" in text
    assert document(sweep)["memory"]["known"] == []


def test_the_first_launches_are_told_for_both_suppositions(sweep: Path) -> None:
    text = plan(sweep, "--first", "4")
    alike, blamed = text.split("first attempts, ")[1:]
    assert alike.startswith("if everything fails alike")
    assert blamed.startswith("if blames are right")
    assert "  1 " in alike
    assert "listed under include (1 of 1)" in alike
    assert "as above" in blamed
    assert len(document(sweep, "--first", "4")["decisions"]["blamed"]["launches"]) == 4


def test_an_end_that_is_foreseen_is_told(sweep: Path) -> None:
    found = document(sweep, "--first", "40")["decisions"]["alike"]
    assert "ended with one cause" in found["end"]
    assert f"then the end: {found['end']}" in plan(sweep, "--first", "40")


def test_earlier_attempts_of_this_run_set_time_and_memory(sweep: Path) -> None:
    earlier(sweep.parent / "runs" / "small", launched(1, 60, **FIGURES), launched(2, 120))
    text = plan(sweep)
    assert "time: at most 12 attempts, 18 min at 1 min 30 s each\n" in text
    assert "(the mean of 2 attempts of runs/small, this run)" in text
    assert "runs/small holds 2 attempts already" in text
    assert (
        "memory: by attempt 1 of runs/small (fraction 0.850, KV cache bfloat16, 100.00 GB free"
        in text
    )
    assert "f_min 0.800, f_max 0.905 (leaves 2.5 GB)" in text
    assert "at 0.8: no room for a KV pool" in text
    assert "at 0.88: 8.00 GB of KV cache, 80,000 tokens, 5.00 GB left after capture\n" in text
    assert (
        "at 0.93: 13.00 GB of KV cache, 130,000 tokens, 0.00 GB left after capture: too high"
        in text
    )
    assert "131,072 tokens are needed: from 0.931 on" in text


def test_the_estimates_are_in_the_json(sweep: Path) -> None:
    earlier(sweep.parent / "runs" / "small", launched(1, 60, **FIGURES))
    found = document(sweep)
    assert found["time"] == {
        "attempts": 12,
        "each_s": 60.0,
        "total_s": 720.0,
        "budget_hours": 1.0,
        "source": "the mean of 1 attempt of runs/small, this run",
    }
    (known,) = found["memory"]["known"]
    assert known["from"] == {"run": "runs/small", "attempt": 1, "fraction": 0.85}
    assert (known["f_min"], known["f_max"], known["f_enough"]) == (0.8, 0.905, 0.9311)
    assert known["at"][1] == {"fraction": 0.88, "pool_gb": 8.0, "tokens": 80_000, "left_gb": 5.0}


def test_another_run_on_this_host_is_taken_where_this_one_is_new(sweep: Path) -> None:
    runs = sweep.parent / "runs"
    earlier(runs / "a-other-model", launched(1, 600, **FIGURES), model="org/other")
    earlier(runs / "b-same-model", launched(1, 30, **FIGURES), model="org/model@abc123")
    earlier(runs / "c-other-host", launched(1, 9, **FIGURES), host="elsewhere")
    text = plan(sweep)
    assert "(the mean of 1 attempt of runs/b-same-model, the same model on this host)" in text
    assert "memory: by attempt 1 of runs/b-same-model" in text


def test_the_memory_of_another_model_tells_nothing(sweep: Path) -> None:
    earlier(sweep.parent / "runs" / "other", launched(1, 600, **FIGURES), model="org/other")
    text = plan(sweep)
    assert "(the mean of 1 attempt of runs/other, another model on this host)" in text
    assert "memory: nothing known yet" in text


def test_a_rehearsal_says_nothing_about_real_launches(sweep: Path) -> None:
    earlier(sweep.parent / "runs" / "reh", launched(1, 2, **FIGURES), rehearsal="glm5-sm120")
    assert "nothing was launched here yet" in plan(sweep)


def test_a_run_named_under_prior_comes_before_a_neighbour(sweep: Path) -> None:
    earlier(sweep.parent / "runs" / "near", launched(1, 30))
    earlier(sweep.parent / "old" / "k2", launched(1, 90, **FIGURES))
    sweep.write_text(f"{SWEEP}prior: [old/k2]\n")
    text = plan(sweep)
    assert "(the mean of 1 attempt of old/k2, named under prior)" in text
    assert "note: what `prior` teaches is weighed with --probe" in text


def test_exported_findings_of_a_stranger_will_do(sweep: Path) -> None:
    folder = sweep.parent / "theirs" / "run"
    earlier(folder, launched(1, 90, **FIGURES))
    done = CliRunner().invoke(program(), ["report", str(folder), "--json"])
    (sweep.parent / "theirs.json").write_text(done.stdout)
    sweep.write_text(f"{SWEEP}prior: [theirs.json]\n")
    text = plan(sweep)
    assert "(the mean of 1 attempt of theirs.json, named under prior)" in text
    assert (
        "memory: by attempt 1 of theirs.json (fraction 0.850, KV cache bfloat16, 100.00 GB free"
        in text
    )


def test_damaged_runs_nearby_do_no_harm(sweep: Path) -> None:
    (sweep.parent / "runs" / "broken").mkdir(parents=True)
    (sweep.parent / "runs" / "broken" / "run.json").write_text("{")
    (sweep.parent / "runs" / "notes.txt").write_text("mine")
    assert "nothing was launched here yet" in plan(sweep)


def test_a_covering_array_is_told_with_its_size(sweep: Path) -> None:
    text = plan(sweep, "--strategy", "pairwise", "--first", "3")
    assert "launches show all 36 pairs of values that some cell has" in text
    assert "that show all pairs of values" in text
    found = document(sweep, "--strategy", "pairwise", "--order", "3")["covering"]
    assert (found["order"], found["of"]) == (3, "triples")
    assert found["rows"] > 9


def test_an_order_that_makes_no_array_is_refused_with_the_way_out(sweep: Path) -> None:
    text = plan(sweep, "--strategy", "pairwise", "--order", "9", status=2)
    assert "order 9" in text
    assert "from 2 (pairs) to 6" in text


def test_a_pool_of_max_total_tokens_is_not_estimated_by_the_fraction(sweep: Path) -> None:
    capped = launched(1, 60, **FIGURES)
    effective = {**capped.diagnosis.effective, "max-total-tokens": 50_000}
    capped = replace(capped, diagnosis=replace(capped.diagnosis, effective=effective))
    earlier(sweep.parent / "runs" / "small", capped)
    assert "max-total-tokens sets the KV pool there, not the fraction" in plan(sweep)


def test_the_memory_of_weights_on_other_gpus_tells_nothing(sweep: Path) -> None:
    wide = launched(1, 60, **FIGURES)
    argv = tuple("8" if word == "2" else word for word in wide.attempt.argv)
    wide = replace(wide, attempt=replace(wide.attempt, argv=argv))
    earlier(sweep.parent / "runs" / "wide", wide)
    text = plan(sweep)
    assert "(the mean of 1 attempt of runs/wide, the same model on this host)" in text
    assert "memory: nothing known yet" in text


def test_a_sweep_of_days_without_a_budget_is_told_so(sweep: Path) -> None:
    sweep.write_text(SWEEP.replace("budget: {attempts: 12, hours: 1}\n", ""))
    earlier(sweep.parent / "runs" / "small", launched(1, 7200))
    assert "62 h 00 min at 2 h 00 min each; no `budget: {hours: ...}` ends it" in plan(sweep)
