"""configs/rehearsal.yaml lives through the night of the lead case and finds the corner."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from rehearsal.launching import WORLDS, free_port

if TYPE_CHECKING:
    from pathlib import Path


def test_the_night_is_replayed_and_then_something_serves(tmp_path: Path) -> None:
    configs = tmp_path / "configs"
    shutil.copytree(WORLDS.parent, configs)
    sweep, run = configs / "rehearsal.yaml", tmp_path / "run"
    text = re.sub(r"(?m)^port: \d+$", f"port: {free_port()}", sweep.read_text(encoding="utf-8"))
    sweep.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sglsweep", "sweep", str(sweep), "--out", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    attempts = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(run.glob("attempts/*/attempt.json"))
    ]
    verdicts = [attempt["diagnosis"]["verdict"] for attempt in attempts]
    assert verdicts[:5] == ["oom", *["nan-in-probs"] * 4]
    assert verdicts[-1] == "serving"
    findings = (run / "FINDINGS.md").read_text(encoding="utf-8")
    for word in ("serving", "nan-in-probs", "oom", "graph-capture", "sglang.launch_server"):
        assert word in findings
