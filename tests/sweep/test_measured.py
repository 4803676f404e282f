"""What comes after the proof: ladder, race, soak, confirmed NaN; over the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

SWEEP = """
name: measured
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
launch: {flags: {max-running-requests: 8, api-key: "${MEASURED_KEY}"}}
matrix: {attention-backend: [flashinfer, triton]}
workload: {input: 32, output: 24, ladder: [1, 4, 8], slo: {ttft_p99: 20s, e2e_p90: 60s}}
"""
WORLD = """
axes: {attention-backend: [flashinfer, triton]}
RULES
rehearsal: {ranks: 1, time-scale: 0.02}
"""
KEY = "k-6b1f0c3e-never-shown"


def measured(path: Path, *, rules: str = "rules: []", more: str = "goal: map") -> Folder:
    """Write a sweep with a workload whose servers want an API key."""
    folder = small_sweep(path)
    (path / "world.yaml").write_text(WORLD.replace("RULES", rules))
    (path / "sweep.yaml").write_text(SWEEP.replace("PORT", str(folder.port)) + more + "\n")
    return Folder(folder.path, folder.port, {**folder.env, "MEASURED_KEY": KEY})


def test_a_serving_cell_has_its_ladder_and_its_soak(tmp_path: Path) -> None:
    folder = measured(tmp_path, more="goal: first-serving\nprobe: {soak: 1s}")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    (record,) = folder.records().values()
    rungs = record["ladder"]["rungs"]
    assert [r["concurrency"] for r in rungs] == [1, 4, 8]
    for rung in rungs:
        assert rung["errors"] == 0
        assert rung["meets_slo"] is True
        assert 0 < rung["numbers"]["ttft_p50_s"] <= rung["numbers"]["ttft_p99_s"]
    assert record["soak"]["lasted_s"] >= 1.0
    assert record["soak"]["requests"] >= 16
    findings = (folder.run / "FINDINGS.md").read_text()
    assert "## Under load" in findings
    assert "1 soaked for" in findings


def test_a_soak_sees_a_kv_pool_that_does_not_come_back(tmp_path: Path) -> None:
    folder = measured(tmp_path, more="goal: first-serving\nprobe: {soak: 12s}")
    world = (tmp_path / "world.yaml").read_text()
    leak = "time-scale: 0.02, mischief: [{when: {attention-backend: flashinfer}, does: leaks-kv}]"
    (tmp_path / "world.yaml").write_text(world.replace("time-scale: 0.02", leak))
    assert folder.call(*folder.sweep_words()).returncode == 0
    record = folder.records()[1]
    assert record["diagnosis"]["verdict"] == "serving"
    assert record["soak"]["last_kv_share"] > record["soak"]["first_kv_share"] + 0.05
    (step,) = (s for s in record["proof"]["steps"] if s["name"] == "soak")
    assert step["state"] == "suspect"
    assert "it does not come back" in step["detail"]


def test_a_relaunch_proves_and_measures_only_where_that_is_asked(tmp_path: Path) -> None:
    folder = measured(tmp_path, more="goal: first-serving\nquality: {}")
    assert folder.call(*folder.sweep_words()).returncode == 0
    for words in ((), ("--measure",)):
        again = folder.call("relaunch", str(folder.run), "1", *words)
        assert again.returncode == 0, again.stderr
    first, proven, measured_again = (folder.records()[n] for n in (1, 2, 3))
    assert proven["proof"]["steps"][0]["state"] == "ok"
    assert (proven["ladder"], proven["quality"]) == (None, None)
    assert len(measured_again["ladder"]["rungs"]) == len(first["ladder"]["rungs"]) == 3
    assert measured_again["quality"]["answers"]


def test_an_api_key_is_sent_and_never_shown(tmp_path: Path) -> None:
    folder = measured(tmp_path, more="goal: first-serving")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    files = [p for p in (*folder.run.rglob("*"), *(tmp_path / "home").rglob("*")) if p.is_file()]
    assert any(p.name == "attempt.json" for p in files)
    assert [str(p) for p in files if KEY.encode() in p.read_bytes()] == []
    assert KEY not in done.stdout + done.stderr
    command = " ".join(folder.records()[1]["attempt"]["argv"])
    assert "--api-key ${MEASURED_KEY}" in command
    assert "--host 127.0.0.1" in command


def test_a_crash_under_the_ladder_says_up_to_where_it_served(tmp_path: Path) -> None:
    rule = (
        "rules: [{when: {attention-backend: triton}, verdict: cuda-fault, "
        "cause: illegal-memory-access, phase: decode, at: 56, blames: []}]"
    )
    folder = measured(tmp_path, rules=rule)
    assert folder.call(*folder.sweep_words()).returncode == 0
    by_backend = {r["attempt"]["cell"]["attention-backend"]: r for r in folder.records().values()}
    broken = by_backend["triton"]
    assert broken["diagnosis"]["verdict"] == "cuda-fault"
    assert broken["diagnosis"]["metrics"]["proof_failed_step"] == "ladder"
    climbed = [r["concurrency"] for r in broken["ladder"]["rungs"]]
    assert climbed == [1, 4, 8][: len(climbed)]
    there = [1, 4, 8][len(climbed)]
    findings = (folder.run / "FINDINGS.md").read_text()
    assert f"{there} at once: see the log; served up to {climbed[-1]} at once" in findings
    assert by_backend["flashinfer"]["diagnosis"]["verdict"] == "serving"


def test_the_fastest_is_launched_again_before_it_is_called_so(tmp_path: Path) -> None:
    folder = measured(tmp_path, more="goal: [first-serving, fastest]\nbudget: {attempts: 6}")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    records = folder.records()
    again = [r for r in records.values() if r["attempt"]["relaunch_of"] is not None]
    assert again
    assert all(not r["ladder"]["is_short"] for r in again)
    heats = [r for r in records.values() if r not in again]
    assert {r["attempt"]["cell"]["attention-backend"] for r in heats} == {"flashinfer", "triton"}
    assert all(r["ladder"]["is_short"] for r in heats)
    # Two stand-ins are made equal: which of the two is said depends on the machine's noise.
    assert "is the fastest" in done.stdout or "are equally fast" in done.stdout, done.stdout


def test_garbage_is_confirmed_with_the_nan_check_of_that_version(tmp_path: Path) -> None:
    rule = (
        "rules: [{when: {attention-backend: flashinfer}, verdict: garbage-output, "
        "cause: proof-garbage, phase: decode, blames: []}]"
    )
    more = "goal: map\nprobe: {confirm-nan: true}"
    folder = measured(tmp_path, rules=rule, more=more)
    folder.call(*folder.sweep_words())
    confirmed = [r for r in folder.records().values() if r["attempt"]["relaunch_of"] is not None]
    assert len(confirmed) == 1
    words = [*confirmed[0]["attempt"]["argv"], *confirmed[0]["attempt"]["env"]]
    assert {"--enable-nan-detection", "SGLANG_ENABLE_NAN_LOGITS_CHECK"} & set(words)
