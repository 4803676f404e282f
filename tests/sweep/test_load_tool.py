"""A load tool in place of the own ladder, over the stand-in, through the tool's command line."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attempts import wait_until
from small_sweeps import Folder, end, small_sweep, wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Mapping

STANDIN = Path(__file__).with_name("bench_standin.py")
SWEEP = """
name: loaded
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
launch:
  flags: {max-running-requests: 8, api-key: "${LOADED_KEY}"}
  env: {PYTHONPATH: PACKAGES, BENCH_DOES: WHAT}
matrix: {attention-backend: [triton]}
goal: first-serving
workload: {input: 32, output: 24, ladder: [1, 4, 8], slo: {ttft_p99: 20s}, tool: TOOL}
"""
WORLD = """
axes: {attention-backend: [flashinfer, triton]}
RULES
rehearsal: {ranks: 1, time-scale: 0.02}
"""
KEY = "k-77aa0c3e-never-shown"


def loaded(
    path: Path, *, does: str = "", tool: str = "bench_serving", rules: str = "rules: []"
) -> Folder:
    """Write a sweep whose build has a benchmark of its own."""
    folder = small_sweep(path)
    package = path / "packages" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "bench_serving.py").write_text(
        STANDIN.read_text() + '# "random-ids" is one of its data sets\n'
    )
    text = SWEEP.replace("PORT", str(folder.port)).replace("TOOL", tool)
    text = text.replace("PACKAGES", str(package.parent)).replace("WHAT", does or "nothing")
    (path / "sweep.yaml").write_text(text)
    (path / "world.yaml").write_text(WORLD.replace("RULES", rules))
    return Folder(folder.path, folder.port, {**folder.env, "LOADED_KEY": KEY})


def first(folder: Folder) -> Mapping[str, Any]:
    found: Mapping[str, Any] = folder.records()[1]
    return found


def test_every_rung_is_a_run_of_it_whose_output_is_kept(tmp_path: Path) -> None:
    folder = loaded(tmp_path)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    record = first(folder)
    assert record["ladder"]["tool"] == "sglang.bench_serving"
    assert [r["concurrency"] for r in record["ladder"]["rungs"]] == [1, 4, 8]
    for rung in record["ladder"]["rungs"]:
        assert (rung["errors"], rung["meets_slo"]) == (0, True)
        assert rung["tokens_per_s"] > 0
        assert rung["numbers"]["ttft_p50_s"] > 0
    kept = folder.run / "attempts" / "0001" / "tools" / "ladder-8"
    assert "Starting" in (kept / "output").read_text()
    assert '"completed": 16' in (kept / "result.jsonl").read_text()
    assert "measured with sglang.bench_serving" in (folder.run / "FINDINGS.md").read_text()


def test_the_key_that_it_sends_and_repeats_is_in_no_file(tmp_path: Path) -> None:
    folder = loaded(tmp_path)
    folder.call(*folder.sweep_words())
    assert first(folder)["ladder"]["rungs"]
    files = [p for p in (*folder.run.rglob("*"), *(tmp_path / "home").rglob("*")) if p.is_file()]
    assert any(p.name == "result.jsonl" for p in files)
    assert [str(p) for p in files if KEY.encode() in p.read_bytes()] == []


def test_where_it_cannot_start_the_own_ladder_measures_and_says_why(tmp_path: Path) -> None:
    folder = loaded(tmp_path, does="lacks-a-package")
    assert folder.call(*folder.sweep_words()).returncode == 0
    ladder = first(folder)["ladder"]
    assert ladder["tool"] == "own"
    assert [r["concurrency"] for r in ladder["rungs"]] == [1, 4, 8]
    assert "No module named 'datasets_that_nobody_has'" in ladder["note"]
    findings = (folder.run / "FINDINGS.md").read_text()
    assert "measured with sglsweep's own ladder, since sglang.bench_serving failed" in findings


def test_a_tool_that_is_not_installed_is_said(tmp_path: Path) -> None:
    folder = loaded(tmp_path, tool="guidellm, program: /no/such/guidellm")
    assert folder.call(*folder.sweep_words()).returncode == 0
    ladder = first(folder)["ladder"]
    assert (ladder["tool"], ladder["note"]) == ("own", "guidellm is not installed on the host")


def test_a_server_that_dies_under_it_served_up_to_the_rung_before(tmp_path: Path) -> None:
    rule = (
        "rules: [{when: {attention-backend: triton}, verdict: cuda-fault, "
        "cause: illegal-memory-access, phase: decode, at: 58, blames: []}]"
    )
    folder = loaded(tmp_path, rules=rule)
    folder.call(*folder.sweep_words())
    record = first(folder)
    assert record["diagnosis"]["verdict"] == "cuda-fault"
    assert record["diagnosis"]["metrics"]["proof_failed_step"] == "ladder"
    climbed = [r["concurrency"] for r in record["ladder"]["rungs"]]
    assert climbed
    assert climbed == [1, 4, 8][: len(climbed)]
    findings = (folder.run / "FINDINGS.md").read_text()
    assert f"served up to {climbed[-1]} at once" in findings


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_under_it_keeps_the_proof_and_ends_the_tool(
    kind: signal.Signals, tmp_path: Path
) -> None:
    folder = loaded(tmp_path, does="never-ends")
    sweep = folder.begin()
    wait_until(lambda: any("never ends" in p.read_text() for p in tmp_path.rglob("output")))
    end(sweep, kind)
    wait_until_gone(folder)
    record = first(folder)
    assert record["diagnosis"]["verdict"] == "serving"
    assert record["ladder"]["is_cut"] is True
