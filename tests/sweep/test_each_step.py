"""Steps that only some sweeps ask fail on demand, and the tool names them.

Those that every server is asked fail in tests/probe/test_rehearsed.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sglsweep.probe.steps import (
    KNOWN_ANSWERS,
    LADDER,
    NEED,
    QUALITY,
    REQUESTS,
    SOAK,
)
from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

SWEEP = """
name: steps
model: made/up
host: local
port: PORT
builds: {stand-in: {rehearsal: world.yaml}}
launch: {flags: {tool-call-parser: glm45}}
matrix: {attention-backend: [CASES]}
goal: map
MORE
"""
RULE = """
  - when: {{attention-backend: {at}}}
    verdict: {verdict}
    cause: {cause}
    phase: decode
    at: {at}
    blames: []"""


def sweep(path: Path, cases: list[str], world: str, more: str = "") -> Folder:
    folder = small_sweep(path)
    text = SWEEP.replace("PORT", str(folder.port)).replace("CASES", ", ".join(cases))
    (path / "sweep.yaml").write_text(text.replace("MORE", more))
    listed = ", ".join(cases)
    (path / "world.yaml").write_text(
        f"axes: {{attention-backend: [{listed}]}}\n{world}\n"
        "rehearsal: {ranks: 1, time-scale: 0.01, MISCHIEF}\n".replace(", MISCHIEF", "")
    )
    return folder


MORE = {
    "known": (
        "probe:\n  expect:\n    - prompt: What is 17 + 26? Answer with the number.\n"
        '      contains: "44"',
        KNOWN_ANSWERS,
    ),
    "own": ("probe: {requests: own.jsonl}", REQUESTS),
    "need": ("need: {context: 190000, concurrent: 64}", NEED),
    "quality": ("quality: {}", QUALITY),
    "ladder": ("workload: {input: 32, output: 16, ladder: [1, 4], tool: own}", LADDER),
    "soak": ("probe: {soak: 60s}", SOAK),
}


# Requests that a server with 8 at once has answered before the step is asked.
ASKED_BEFORE = {"own": 14, "quality": 31, "ladder": 31, "soak": 31}


@pytest.mark.parametrize("which", list(MORE))
def test_what_only_some_sweeps_ask_is_named_too(which: str, tmp_path: Path) -> None:
    more, step = MORE[which]
    rules = "rules: []"
    at = ASKED_BEFORE.get(which, 0) + 2
    if which in ASKED_BEFORE:
        rule = RULE.format(at=at, verdict="cuda-fault", cause="illegal-memory-access")
        rules = f"rules:{rule}"
    folder = sweep(tmp_path, [str(at)], rules, more)
    text = (tmp_path / "sweep.yaml").read_text()
    text = text.replace("glm45", "glm45, max-running-requests: 8")
    (tmp_path / "sweep.yaml").write_text(text)
    lines = [json.dumps({"body": {"text": "hello"}}) for _ in range(8)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    folder.call(*folder.sweep_words())
    record = folder.records()[1]
    assert record["diagnosis"]["metrics"]["proof_failed_step"] == step, record["proof"]
