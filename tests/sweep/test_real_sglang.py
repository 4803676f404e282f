"""The whole tool against real SGLang on this machine's CPU."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from models import make_gpt2
from real_python import real_python
from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(420)]

SWEEP = """
name: real
model: MODEL
host: local
port: PORT
builds: {cpu: {python: PYTHON}}
launch:
  flags: {device: cpu, max-total-tokens: 8192, chunked-prefill-size: 512, sleep-on-idle: true}
  env: {OMP_NUM_THREADS: "2", PYTHONPATH: PACKAGES}
matrix: {attention-backend: [null]}
goal: first-serving
budget: {attempts: 1}
resolve: false
"""
MEASURED = """
workload: {input: 32, output: 16, ladder: [2], slo: {e2e_p90: 600s}}
quality:
  questions: [{prompt: "What is 2 + 2", contains: "4"}]
  tokens: 16
  needle: {context: 512}
"""


@pytest.fixture(scope="module")
def sglang() -> Path:
    return real_python()


def real(path: Path, python: Path, more: str = "") -> Folder:
    """Write a sweep of one real launch; its benchmark finds the package that it imports."""
    folder = small_sweep(path)
    packages = path / "packages"
    packages.mkdir()
    (packages / "datasets.py").write_text("def load_dataset(*_, **__):\n    raise OSError\n")
    text = SWEEP.replace("MODEL", str(make_gpt2(python, path / "ok", "ok")))
    text = text.replace("PORT", str(folder.port))
    text = text.replace("{python: PYTHON}", f"{{python: {python}}}")
    (path / "sweep.yaml").write_text(text.replace("PACKAGES", str(packages)) + more)
    return folder


def test_a_real_build_is_measured_by_its_own_benchmark_and_asked_for_sense(
    sglang: Path, tmp_path: Path
) -> None:
    folder = real(tmp_path, sglang, MEASURED)
    sweep = folder.begin()
    assert sweep.wait(280) == 0, folder.said
    record = folder.records()[1]
    ladder = record["ladder"]
    assert (ladder["tool"], ladder["note"]) == ("sglang.benchmark.serving", "")
    (rung,) = ladder["rungs"]
    assert (rung["concurrency"], rung["requests"], rung["errors"]) == (2, 4, 0)
    assert rung["meets_slo"] is True
    assert rung["tokens_per_s"] > 0
    assert {"ttft_p99_s", "tpot_p50_s", "itl_p90_s", "e2e_p90_s"} <= set(rung["numbers"])
    answers = record["quality"]["answers"]
    assert {a["right"] for a in answers} <= {False, None}
    findings = (folder.run / "FINDINGS.md").read_text()
    assert "measured with sglang.benchmark.serving" in findings
    assert "## The same model?" in findings


class Stranger(BaseHTTPRequestHandler):
    """Answers everything, as a server that is not ours does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815 - http.server names it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_port_that_is_taken_while_it_loads_is_no_serving(sglang: Path, tmp_path: Path) -> None:
    folder = real(tmp_path, sglang)
    sweep = folder.begin()
    folder.wait_for("attempt 1", process=sweep)
    log = folder.run / "attempts" / "0001" / "log"
    while not (log.exists() and log.stat().st_size):
        threading.Event().wait(0.05)
    stranger = ThreadingHTTPServer(("127.0.0.1", folder.port), Stranger)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    try:
        sweep.wait(180)
    finally:
        stranger.shutdown()
        stranger.server_close()
    record = folder.records()[1]
    assert record["diagnosis"]["verdict"] == "env-error", record["diagnosis"]
    assert "port" in record["diagnosis"]["cause"]
