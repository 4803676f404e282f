"""A matrix in which nothing can serve, and the catalogue's remedy beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from small_sweeps import Folder, small_sweep

WORLD = Path(__file__).parents[2] / "configs" / "worlds" / "glm5-sm120.yaml"
SWEEP = """
name: small
model: lukealonso/GLM-5-NVFP4
port: PORT
builds: {stand-in: {rehearsal: WORLD}}
launch: {flags: {tp: 8, quantization: modelopt_fp4, cuda-graph-max-bs: 64}}
matrix:
  attention-backend: [flashinfer]
  kv-cache-dtype: [fp8_e4m3]
  fp8-gemm-backend: [null, cutlass]
  moe-runner-backend: [flashinfer_cutlass]
  mem-fraction-static: [0.88]
"""


def sweep(folder: Path, more: str) -> tuple[Folder, int, dict[str, Any]]:
    made = small_sweep(folder)
    text = SWEEP.replace("PORT", str(made.port)).replace("WORLD", str(WORLD))
    (folder / "sweep.yaml").write_text(text + more)
    done = made.call(*made.sweep_words())
    return made, done.returncode, json.loads((made.run / "run.json").read_text())


def test_with_leave_the_remedy_is_launched_and_serves(tmp_path: Path) -> None:
    folder, status, run = sweep(tmp_path, "remedies: true\nbudget: {attempts: 4}\n")
    assert status == 0
    last = list(folder.records().values())[-1]["attempt"]
    assert last["cell"]["kv-cache-dtype"] == "bf16"
    assert last["why"].startswith(
        "outside the matrix: the remedy of dsa-flashinfer-fp8-kv, from reproduced on one H200"
    )
    assert run["finish"] == f"attempt {last['number']} serves"
    assert run["forecast"]["after"] == last["number"]


@pytest.mark.parametrize(
    "more",
    [
        "",
        "remedies: true\nexclude: [{when: {kv-cache-dtype: bf16}, because: too much memory}]\n",
    ],
    ids=["without leave", "excluded"],
)
def test_where_it_may_not_be_launched_the_end_names_it(tmp_path: Path, more: str) -> None:
    folder, status, run = sweep(tmp_path, more)
    assert status == 1
    assert {r["attempt"]["cell"]["kv-cache-dtype"] for r in folder.records().values()} == {
        "fp8_e4m3"
    }
    assert "; most likely to help: kv-cache-dtype=bf16 (the catalogue's remedy; source: " in str(
        run["finish"]
    )
    (remedy,) = [one for one in run["forecast"]["helps"] if one["kind"] == "remedy"]
    assert (remedy["set"], remedy["blocks"]) == ({"kv-cache-dtype": "bf16"}, None)
