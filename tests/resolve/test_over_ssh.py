"""SGLang is asked where it is: on a host that is reached by SSH alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from models import make_gpt2
from real_python import real_python
from sshd import Sshd, running_sshd
from standin_sglang import GLM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from standin_sglang import StandIn

SWEEP = """
model: MODEL
host: gpu-01
builds: {main: {python: PYTHON}}
"""
DSA = """
matrix:
  kv-cache-dtype: [null, bf16]
  attention-backend: [null, nsa, refused]
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def _write(path: Path, sshd: Sshd, *, model: Path, python: Path, matrix: str) -> None:
    text = SWEEP.replace("MODEL", str(model)).replace("PYTHON", str(python))
    (path / "sweep.yaml").write_text(text + matrix)
    (path / "hosts.yaml").write_text(sshd.hosts_yaml(path))


def _run(path: Path, command: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sglsweep", command, str(path / "sweep.yaml"), *words],
        capture_output=True,
        text=True,
        # Nothing of the stand-in is on this side: only the host's Python knows where it lies.
        env={**os.environ, "HOME": str(path / "home")},
        timeout=280,
        check=False,
    )


def _resolved(path: Path) -> dict[str, Any]:
    done = _run(path, "resolve", "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_build_on_the_host_is_asked_and_nothing_is_left_there(
    tmp_path: Path, sshd: Sshd, sglang: StandIn
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(GLM))
    python = tmp_path / "host-python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={sglang.path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    _write(tmp_path, sshd, model=model, python=python, matrix=DSA)
    before = {p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts}
    document = _resolved(tmp_path)
    assert document["builds"]["main"]["version"] == "0.5.9"
    counts = document["counts"]
    assert (counts["asked"], counts["refused"], counts["equal"], counts["left"]) == (6, 2, 2, 2)
    assert counts["refused_by_verdict"] == {"bad-config": 2}
    left = {p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts} - before
    assert not [p for p in left if p.is_file()]
    planned = _run(tmp_path, "plan", "--probe")
    assert "refused: 2 cells: ValueError: attention refused is not supported for" in planned.stdout
    assert "cells: 2 to launch" in planned.stdout


@pytest.mark.real
def test_a_real_sglang_on_the_host_answers_over_ssh(tmp_path: Path, sshd: Sshd) -> None:
    matrix = (
        "launch: {flags: {device: cpu, max-total-tokens: 8192}}\n"
        "matrix: {page-size: [null, 1], context-length: [1024, 999999]}\n"
    )
    model = make_gpt2(real_python(), tmp_path / "gpt2")
    _write(tmp_path, sshd, model=model, python=real_python(), matrix=matrix)
    document = _resolved(tmp_path)
    assert document["counts"]["refused"] == 2
    assert document["counts"]["asked"] == 4
    refused = [c for c in document["cells"] if c["state"] == "refused"]
    assert all("greater than the derived context_length" in c["error"] for c in refused)
    assert {c["refused"]["cause"] for c in refused} == {"context-length-too-long"}
