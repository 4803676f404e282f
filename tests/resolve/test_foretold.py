"""What SGLang says when it is asked, against what it prints when it is launched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from models import make_gpt2
from real_python import real_python
from sglsweep.expand.asked import Resolved, State
from sglsweep.expand.resolved import launched_otherwise
from sglsweep.triage.effective import parse_server_args, spelled
from sshd import free_port
from standin_sglang import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sglsweep.attempt import Scalar

BASE = "--device cpu --max-total-tokens 8192 --sleep-on-idle"
CELLS = (
    "--attention-backend triton --kv-cache-dtype fp8_e4m3",
    "--max-running-requests 3 --chunked-prefill-size 256 --schedule-policy lof",
    "--disable-cuda-graph --enable-metrics",
    "",
    "--context-length 1024 --mem-fraction-static 0.3",
    "--disable-radix-cache --page-size 16",
    "--enable-torch-compile --torch-compile-max-bs 2",
    "--dtype float32 --sampling-backend pytorch",
    "--enable-mixed-chunk --num-continuous-decode-steps 2",
    "--attention-backend torch_native --grammar-backend none",
)
LAUNCHES = int(os.environ.get("SGLSWEEP_REAL_LAUNCHES", "3"))
"""Launches that are made, of ten: each takes SGLang's import."""


@pytest.mark.real
@pytest.mark.timeout(900)
def test_launches_come_out_as_sglang_said_when_it_was_asked(tmp_path: Path) -> None:
    python = real_python()
    model = make_gpt2(python, tmp_path / "gpt2")
    port = free_port()
    commands = [
        [*f"--model-path {model} {BASE} --port {port}".split(), *words.split()]
        for words in CELLS[:LAUNCHES]
    ]
    answers = _asked(python, commands)
    told = [
        (_launched(python, command), answer)
        for command, answer in zip(commands, answers, strict=True)
    ]
    assert [len(printed) > 200 for printed, _ in told] == [True] * LAUNCHES
    assert [launched_otherwise(answer, printed) for printed, answer in told] == [{}] * LAUNCHES


def _asked(python: Path, commands: list[list[str]]) -> list[Resolved]:
    request = {"cells": [{"argv": command} for command in commands], "gpu": None}
    done = subprocess.run(
        [str(python), str(PROGRAM), "cells"],
        input=json.dumps(request).encode(),
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        timeout=280,
        check=False,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return [
        Resolved(state=State(c["state"]), effective={**document["base"], **c.get("changes", {})})
        for c in document["cells"]
    ]


def _launched(python: Path, command: list[str]) -> Mapping[str, Scalar]:
    """Launch until SGLang has printed its arguments, and end it there."""
    process = subprocess.Popen(
        [str(python), "-m", "sglang.launch_server", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        line = next((text for text in process.stdout if "server_args=" in text), "")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    return {spelled(name): value for name, value in parse_server_args(line.strip()).items()}
