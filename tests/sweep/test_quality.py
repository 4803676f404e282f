"""Answers of serving cells beside a reference's, over the stand-in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

SWEEP = """
name: same
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
launch: {flags: {tool-call-parser: glm45, max-running-requests: 8}}
matrix: {attention-backend: [flashinfer, nsa]}
goal: map
quality: {needle: {context: 4096}, tools: true, reference: REFERENCE}
"""
WORLD = """
axes: {attention-backend: [flashinfer, nsa]}
RULES
rehearsal:
  ranks: 1
  time-scale: 0.02
  mischief: [{when: {attention-backend: flashinfer}, does: [answers-wrong=8, misses-needle]}]
"""


def asked(path: Path, *, reference: str = "{attention-backend: nsa}", rules: str = "") -> Folder:
    folder = small_sweep(path)
    text = SWEEP.replace("PORT", str(folder.port)).replace("REFERENCE", reference)
    (path / "sweep.yaml").write_text(text)
    (path / "world.yaml").write_text(WORLD.replace("RULES", rules or "rules: []"))
    return folder


def test_a_cell_that_answers_worse_is_not_recommended_and_says_why(tmp_path: Path) -> None:
    folder = asked(tmp_path)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    by_backend = {r["attempt"]["cell"]["attention-backend"]: r for r in folder.records().values()}
    right = {
        name: sum(a["right"] is True for a in r["quality"]["answers"])
        for name, r in by_backend.items()
    }
    assert right == {"nsa": 17, "flashinfer": 6}
    assert {r["diagnosis"]["verdict"] for r in by_backend.values()} == {"serving"}
    findings = (folder.run / "FINDINGS.md").read_text()
    best, other = (by_backend[n]["attempt"]["number"] for n in ("nsa", "flashinfer"))
    assert f"**Serves.** Attempt {best}:" in findings
    assert f"- {other}: 6 of 17 right, 17 of 17 in attempt {best}; worse beyond chance" in findings
    assert f"| {other} | **4 of 12** | 0 of 3 | 2 of 2 |" in findings
    assert "dense-for-sparse" in findings


def test_saved_answers_of_another_run_are_a_reference_too(tmp_path: Path) -> None:
    first = asked(tmp_path)
    first.call(*first.sweep_words())
    by_backend = {r["attempt"]["cell"]["attention-backend"]: n for n, r in first.records().items()}
    saved = first.run / "attempts" / f"{by_backend['nsa']:04d}" / "attempt.json"
    (tmp_path / "saved.json").write_text(saved.read_text())
    text = (tmp_path / "sweep.yaml").read_text()
    text = text.replace("{attention-backend: nsa}", "saved.json").replace(
        "[flashinfer, nsa]", "[flashinfer]"
    )
    (tmp_path / "sweep.yaml").write_text(text)
    done = first.call("sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "second"))
    assert done.returncode == 0, done.stderr
    findings = (tmp_path / "second" / "FINDINGS.md").read_text()
    assert "Serves, but answers unlike the model that was asked for" in findings
    assert "6 of 17 right, 17 of 17 in saved.json: worse beyond chance" in findings
    short = first.call("report", str(tmp_path / "second"), "--brief").stdout
    assert "It serves, but answers unlike the model that was asked for" in short
    said = json.loads(first.call("report", str(tmp_path / "second"), "--json").stdout)
    (attempt,) = said["attempts"]
    assert attempt["quality"]["compared"]["only_there"] == 11
    assert attempt["quality"]["warning"]
    assert "dense-for-sparse" in {d["id"] for d in attempt["differs"]}


def test_a_server_that_dies_of_a_question_of_quality_says_so(tmp_path: Path) -> None:
    rule = (
        "rules: [{when: {attention-backend: flashinfer}, verdict: cuda-fault, "
        "cause: illegal-memory-access, phase: decode, at: 40, blames: []}]"
    )
    folder = asked(tmp_path, rules=rule)
    folder.call(*folder.sweep_words())
    records = folder.records().values()
    broken = next(r for r in records if r["attempt"]["cell"]["attention-backend"] == "flashinfer")
    assert broken["diagnosis"]["verdict"] == "cuda-fault"
    assert broken["diagnosis"]["metrics"]["proof_failed_step"] == "quality"
