"""`sglsweep triage` and `sglsweep signatures`, as somebody types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(sys.executable).with_name("sglsweep")
LOADING = b"[2026-02-10 10:01:00 TP0] Load weight begin. avail mem=90.00 GB\n"
CRASH = (
    b"[2026-02-10 10:01:00 TP3] Load weight begin. avail mem=90.00 GB\n"
    b"[2026-02-10 10:01:09 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/s/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
    b"    scheduler = Scheduler()\n"
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3: 1 \xc3\xa9\n"
    b"\n"
    b"[2026-02-10 10:01:10] Received sigquit from a child process. It usually means the child "
    b"failed.\n"
)
KEYS = [
    "schema", "catalogue", "log", "verdict", "phase", "cause", "rank", "line", "evidence",
    "blames", "suspects", "next_step", "remedy", "known_issues", "sglang_version", "requested",
    "effective", "milestones", "metrics", "confidence",
]  # fmt: skip


def sglsweep(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [TOOL, *map(str, words)], input=stdin, capture_output=True, check=False, timeout=60
    )


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(CRASH)
    return path


def test_json_is_one_ascii_object_a_line_with_the_documented_keys(crash: Path) -> None:
    done = sglsweep("triage", "--json", crash, "-", stdin=LOADING)
    assert done.returncode == 0
    first, second = (json.loads(line) for line in done.stdout.decode("ascii").splitlines())
    assert list(first) == KEYS
    assert (first["verdict"], first["phase"], first["rank"], first["line"]) == (
        "oom", "weights", "TP3", 5,
    )  # fmt: skip
    assert first["log"] == str(crash)
    assert first["milestones"]["weights"] == "failed"
    assert (second["log"], second["verdict"], second["cause"]) == ("-", "incomplete", None)


def test_person_reads_verdict_place_context_and_next_step(crash: Path) -> None:
    text = sglsweep("triage", crash).stdout.decode()
    head, *rest = text.splitlines()
    assert head.startswith(f"{crash}: oom (oom-weights) in weights on TP3")
    assert "  >      5  torch.OutOfMemoryError: CUDA out of memory." in text
    assert [line.split()[0] for line in rest[:2]] == ["3", "4"]
    assert "not: line 7 [child-failed] only says that another process died" in text
    assert " next: " in text


def test_explain_lists_the_candidates_that_lost(crash: Path) -> None:
    text = sglsweep("triage", "--explain", crash).stdout.decode()
    assert "line 7 [child-failed]" in text


@pytest.mark.parametrize("status", ["-9", "137"])
def test_exit_status_may_be_negative_or_a_shell_s(status: str) -> None:
    done = sglsweep("triage", "-", "--json", "--exit-status", status, stdin=LOADING)
    assert json.loads(done.stdout)["verdict"] == "killed"


def test_silence_makes_a_hang() -> None:
    done = sglsweep("triage", "-", "--json", "--silence-s", "3600", stdin=LOADING)
    said = json.loads(done.stdout)
    assert (said["verdict"], said["phase"]) == ("hang", "weights")


def test_folder_means_the_logs_in_it(tmp_path: Path) -> None:
    for name in ("b.log", "a/attempt.txt", "notes.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(LOADING)
    done = sglsweep("triage", "--json", tmp_path)
    logs = [json.loads(line)["log"] for line in done.stdout.splitlines()]
    assert logs == [str(tmp_path / "a/attempt.txt"), str(tmp_path / "b.log")]


@pytest.mark.parametrize("name", ["missing.log", "empty-folder"])
def test_wrong_input_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty-folder").mkdir()
    done = sglsweep("triage", tmp_path / name)
    assert done.returncode == 2
    assert done.stdout == b""
    error, step = done.stderr.decode().splitlines()
    assert error.startswith("error: ")
    assert step.startswith(" next: ")


def test_empty_log_is_incomplete() -> None:
    done = sglsweep("triage", "--json", "-")
    said = json.loads(done.stdout)
    assert (said["verdict"], said["phase"], said["line"]) == ("incomplete", "start", None)


def test_signature_is_explained_like_a_rule() -> None:
    text = sglsweep("signatures", "oom-kv-pool").stdout.decode()
    for part in (
        "oom-kv-pool: ",
        "verdict oom",
        "What to do next",
        "Lines that show it",
        "Source",
    ):
        assert part in text


def test_signatures_are_listed_for_machines() -> None:
    said = json.loads(sglsweep("signatures", "--json").stdout)
    assert {"child-failed", "oom-weights"} <= {entry["id"] for entry in said["signatures"]}


def test_unknown_signature_is_answered_with_the_nearest() -> None:
    done = sglsweep("signatures", "oom-wieghts")
    assert done.returncode == 2
    assert "oom-weights" in done.stderr.decode()
