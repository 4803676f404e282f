"""A stand-in that is asked first: what it refuses or makes the same is not launched."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from small_sweeps import Folder
from sshd import free_port

if TYPE_CHECKING:
    from pathlib import Path

# As SGLang 0.5.9 has it with a DSA model, but for what is refused, which is made up.
WORLD = """
axes: {attention-backend: [flashinfer, triton, fa3], kv-cache-dtype: [null, fp8_e4m3, bf16]}
resolve:
  - {when: {kv-cache-dtype: null}, set: {kv-cache-dtype: fp8_e4m3}}
rules:
  - {when: {attention-backend: fa3}, verdict: bad-config, cause: bad-config, phase: args}
  - when: {attention-backend: triton, kv-cache-dtype: fp8_e4m3}
    verdict: bad-config
    cause: bad-config
    phase: args
  - when: {attention-backend: flashinfer, kv-cache-dtype: fp8_e4m3}
    verdict: nan-in-probs
    cause: nan-probability-tensor
    phase: decode
    blames: [kv-cache-dtype]
rehearsal: {ranks: 2, time-scale: 0.01}
"""
SWEEP = """
name: asked
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
matrix:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [null, fp8_e4m3, bf16]
goal: map
"""
Done = subprocess.CompletedProcess[str]
REFUSAL = "AssertionError: DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype"


def _folder(path: Path, extra: str = "") -> Folder:
    port = free_port()
    (path / "world.yaml").write_text(WORLD)
    (path / "sweep.yaml").write_text(SWEEP.replace("PORT", str(port)) + extra)
    home = path / "home"
    home.mkdir(exist_ok=True)
    return Folder(path, port, {**os.environ, "HOME": str(home)})


def _run(folder: Folder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder.run / "run.json").read_text())
    return found


def _attempt(folder: Folder, *words: str, command: str = "attempt") -> Done:
    target = (
        (str(folder.path / "sweep.yaml"), "--out", str(folder.run))
        if command == "attempt"
        else (str(folder.run),)
    )
    return folder.call(command, *target, *words)


def test_one_launch_a_configuration_and_none_for_what_is_refused(tmp_path: Path) -> None:
    swept = _folder(tmp_path)
    done = swept.call(*swept.sweep_words())
    assert done.returncode == 0, done.stderr
    cells = [
        (a["attempt"]["cell"]["attention-backend"], a["attempt"]["cell"]["kv-cache-dtype"])
        for a in swept.records().values()
    ]
    assert sorted(map(str, cells)) == [
        "('flashinfer', 'bf16')",
        "('flashinfer', None)",
        "('triton', 'bf16')",
    ]
    stored = _run(swept)
    assert [
        (r["because"], r["count"], r["verdict"], r["phase"], r["cause"]) for r in stored["refused"]
    ] == [(REFUSAL, 5, "bad-config", "args", "dsa-backend-kv-dtype-conflict")]
    assert sum(entry["count"] for entry in stored["equal"]) == 1
    acted = {tuple(e["values"].values()) for e in stored["effective"]}
    assert ("flashinfer", "fp8_e4m3") in acted
    told = (swept.run / "FINDINGS.md").read_text()
    judged = "(bad-config, dsa-backend-kv-dtype-conflict)"
    assert f"5 cells refused by SGLang itself {judged}: {REFUSAL}" in told
    assert "| `fp8_e4m3` | not asked for, but SGLang takes it in" in told


def test_a_refused_attempt_is_not_launched_unless_that_is_wanted(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    done = _attempt(folder, "--set", "attention-backend=fa3")
    assert done.returncode == 1
    assert done.stdout.startswith("bad-config in args, not launched: SGLang refuses this cell:\n")
    assert f"  {REFUSAL}\nnext: Change one side" in done.stdout
    assert folder.records() == {}
    told = json.loads(_attempt(folder, "--set", "attention-backend=fa3", "--json").stdout)
    assert told["outcome"] is None
    assert told["refused"]["cause"] == "dsa-backend-kv-dtype-conflict"
    anyway = _attempt(folder, "--set", "attention-backend=fa3", "--anyway")
    assert anyway.returncode == 1
    assert anyway.stdout.startswith("bad-config in args")
    assert len(folder.records()) == 1


def test_who_does_not_want_sglang_asked_launches_what_it_refuses(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "resolve: false\n")
    assert _attempt(folder, "--set", "attention-backend=fa3").returncode == 1
    assert len(folder.records()) == 1


def test_an_equal_finished_attempt_is_named(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    _attempt(folder, "--set", "attention-backend=flashinfer")
    words = ("--set", "attention-backend=flashinfer", "--set", "kv-cache-dtype=fp8_e4m3")
    said = "note: SGLang resolves this to the configuration of attempt 1 (nan-in-probs)"
    assert said in _attempt(folder, *words).stderr
    # A relaunch as it was equals what it repeats: nobody needs to be told that.
    again = _attempt(folder, "2", command="relaunch")
    assert "configuration of attempt 2" not in again.stderr
    refused = _attempt(folder, "1", "--set", "attention-backend=fa3", command="relaunch")
    assert refused.returncode == 1
    assert REFUSAL in refused.stdout


def test_bisect_launches_nothing_that_sglang_refuses(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    _attempt(folder, "--set", "attention-backend=flashinfer", "--set", "kv-cache-dtype=fp8_e4m3")
    _attempt(folder, "--set", "attention-backend=triton", "--set", "kv-cache-dtype=bf16")
    done = folder.call("bisect", str(folder.run), "1", "2", "--json")
    assert "not launched, SGLang refuses it (kv-cache-dtype=fp8_e4m3)" in done.stderr
    found = json.loads(done.stdout)
    launched = [folder.records()[n]["attempt"]["cell"] for n in found["launched"]]
    assert launched == [{"attention-backend": "flashinfer", "kv-cache-dtype": "bf16"}]
    # What is refused fails, but not as attempt 1 does: it does not prove that triton would not.
    assert found["values"] == {"attention-backend": "flashinfer", "kv-cache-dtype": "fp8_e4m3"}
    assert not found["is_proven"]
