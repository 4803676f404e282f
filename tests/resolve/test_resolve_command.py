"""`sglsweep resolve`, and what a sweep leaves out because SGLang was asked first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from sglsweep.catalogue.gpus import described
from sglsweep.prepare import Here, prepare
from sglsweep.sweep import ask_first
from standin_sglang import GLM

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from sglsweep.prepare import Ground
    from standin_sglang import StandIn

SWEEP = """
model: some/model
matrix:
  attention-backend: [null, flashinfer, refused]
  nsa-decode-backend: [null, flashmla_kv, tilelang]
exclude:
  - {when: {effective.attention-backend: nsa, nsa-decode-backend: tilelang}, because: not built}
  - {when: {effective.kv-cache-dtype: bf16}, because: never met}
"""


def _write(folder: Path, text: str = SWEEP) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text)
    (folder / "config.json").write_text(json.dumps(GLM))
    return path


def _settled(folder: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("PYTHONPATH", str(sglang.path))
    ground = prepare(_write(folder), here=Here(python=sys.executable))
    cache = folder / "resolved"
    return ask_first(ground, gpu=described("sm120:96GB"), configs={"some/model": GLM}, cache=cache)


def test_refused_excluded_and_equal_cells_are_not_launched(
    tmp_path: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = _settled(tmp_path, sglang, monkeypatch)
    settled = ground.settled
    assert settled is not None
    assert {r.because for r in settled.refused} == {
        "ValueError: attention refused is not supported for"
    }
    assert len(settled.refused) == 3
    assert settled.excluded == {"not built": 1}
    assert [item.rule for item in settled.merged] == ["", "", "dsa-backends-layout-only"]
    left = [
        (c.get("attention-backend"), c.get("nsa-decode-backend")) for c in ground.expanded.cells
    ]
    assert sorted(map(str, left)) == ["('flashinfer', None)", "(None, None)"]


def test_what_is_known_not_to_work_is_launched_last(
    tmp_path: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = _settled(tmp_path, sglang, monkeypatch)
    assert ground.settled is not None
    known = {s.cell.get("attention-backend"): s.issue.id for s in ground.settled.suspects}
    assert known["flashinfer"] == "dsa-flashinfer-packed-fp8"


def test_an_exclude_on_what_sglang_never_takes_is_reported(
    tmp_path: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = _settled(tmp_path, sglang, monkeypatch)
    told = [note.text for note in ground.expanded.notes]
    assert told == ["this exclude meets no cell: SGLang makes of kv-cache-dtype: fp8_e4m3"]


def test_the_same_question_is_asked_once(
    tmp_path: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _settled(tmp_path, sglang, monkeypatch)
    (kept,) = (tmp_path / "resolved").iterdir()
    # Had the build been asked again, it would have refused nothing now.
    arguments = sglang.path / "sglang" / "srt" / "server_args.py"
    arguments.write_text(arguments.read_text().replace('== "refused"', '== "nothing"'))
    second = _settled(tmp_path, sglang, monkeypatch)
    assert first.settled is not None
    assert second.settled is not None
    assert second.settled.refused == first.settled.refused
    kept.unlink()
    third = _settled(tmp_path, sglang, monkeypatch)
    assert third.settled is not None
    assert third.settled.refused == ()


def test_a_build_that_cannot_resolve_is_swept_as_before(
    tmp_path: Path, sglang: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = sglang.path / "sglang" / "srt" / "server_args.py"
    text = arguments.read_text().replace("def prepare_server_args", "def gone")
    arguments.write_text(text + "\nif torch.cuda.is_available(): raise SystemExit('no luck')\n")
    ground = _settled(tmp_path, sglang, monkeypatch)
    assert ground.settled is None
    assert len(ground.expanded.cells) == 9
    assert "could not be asked" in ground.expanded.notes[-1].text


def _run(
    folder: Path, sglang: StandIn, *words: str, command: str = "resolve"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sglsweep", command, str(_write(folder)), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(sglang.path)},
        timeout=120,
        check=False,
    )


def test_the_command_tells_counts_and_reasons(tmp_path: Path, sglang: StandIn) -> None:
    config = str(tmp_path / "config.json")
    words = ["--gpu", "sm120:96GB", "--python", sys.executable, "--model-config", config]
    done = _run(tmp_path, sglang, *words)
    assert done.returncode == 0, done.stderr
    assert "SGLang 0.5.9, NVIDIA RTX PRO 6000 Blackwell Server Edition (sm120)" in done.stdout
    assert (
        "refused 3, unknown 0, equal to another 3 (1 of them by a dependency rule)" in done.stdout
    )
    assert "refused 3 cells: ValueError: attention refused is not supported for" in done.stdout
    assert "kv-cache-dtype: fp8_e4m3 in all cells" in done.stdout
    document: dict[str, Any] = json.loads(_run(tmp_path, sglang, *words, "--json").stdout)
    assert document["schema"] == 1
    assert document["counts"]["left"] == 2
    states = [cell["state"] for cell in document["cells"]]
    assert (states.count("refused"), states.count("resolved")) == (3, 5)
    assert document["counts"]["refused_by_verdict"] == {"bad-config": 3}
    assert (document["counts"]["configurations"], document["counts"]["groups"]) == (3, 2)
    refused = next(cell for cell in document["cells"] if cell["state"] == "refused")
    assert (refused["refused"]["verdict"], refused["refused"]["phase"]) == ("bad-config", "args")
    assert refused["acts_as"] is None
    own = next(cell for cell in document["cells"] if cell["cell"]["attention-backend"] is None)
    assert own["acts_as"]["attention-backend"] == "nsa"


def test_an_unknown_gpu_is_refused(tmp_path: Path, sglang: StandIn) -> None:
    done = _run(tmp_path, sglang, "--gpu", "h2000")
    assert done.returncode == 2
    assert "no GPU 'h2000' is known" in done.stderr


def test_the_plan_for_a_described_gpu_shows_what_is_left_to_launch(
    tmp_path: Path, sglang: StandIn
) -> None:
    config = str(_write(tmp_path).parent)
    words = ["--gpu", "sm120:96GB", "--python", sys.executable, "--model-config", config]
    done = _run(tmp_path, sglang, *words, command="plan")
    assert done.returncode == 0, done.stderr
    assert "refused: 3 cells: ValueError: attention refused" in done.stdout
    assert "cells: 2 to launch" in done.stdout
