"""`sglsweep changed`: what is different on the host, likeliest first."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cli_more.made import make_run, outcome
from sglsweep.changed import differences, ranked
from sglsweep.cli.app import program
from sglsweep.verdict import Verdict
from small_sweeps import small_sweep

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Outcome

GIB = 1024**3
CARD = {"index": 0, "uuid": "GPU-a", "name": "NVIDIA H200", "memory_total_mib": 143771}
WAS: dict[str, Any] = {
    "kernel": "6.8.0-51",
    "driver": "570.86",
    "cuda": "12.8",
    "boot_id": "one",
    "gpus": [{**CARD, "memory_free_mib": 143000, "power_limit_w": 700.0}],
    "gpu_processes": [],
    "memory": {"total_mib": 500_000, "available_mib": 480_000},
    "disks": [
        {"path": "/scratch", "exists": True, "total": 900 * GIB, "free": 500 * GIB,
         "inodes_free": 10**6, "is_writable": True},
    ],
    "environment": {"NCCL_DEBUG": "WARN"},
    "limits": {"memlock": ["unlimited", "unlimited"]},
    "builds": {"stock": {"packages": {"sglang": "0.5.9", "transformers": "4.57.1"}}},
    "models": {
        "org/model": {
            "found": True, "commit": "abc", "missing": [],
            "files": [{"name": "config.json", "size": 9, "mtime": 1}],
        }
    },
}  # fmt: skip


def later() -> dict[str, Any]:
    """The same host after an upgrade, with a stranger on its GPU."""
    facts = copy.deepcopy(WAS)
    facts["boot_id"] = "two"
    facts["driver"] = "580.65"
    facts["builds"]["stock"]["packages"]["transformers"] = "5.2.0"
    facts["gpus"][0]["memory_free_mib"] = 43000
    facts["gpu_processes"] = [
        {"gpu_uuid": "GPU-a", "pid": 4121, "memory_mib": 100_000, "user": "bob",
         "name": "python", "command": "python train.py"},
    ]  # fmt: skip
    facts["models"]["org/model"]["files"][0]["size"] = 10
    facts["disks"][0]["free"] = 499 * GIB
    return facts


def failing(number: int, verdict: Verdict, evidence: str) -> Outcome:
    one = outcome(number, verdict, facts=later())
    return replace(one, diagnosis=replace(one.diagnosis, evidence=evidence))


@pytest.mark.parametrize(
    ("verdict", "evidence", "first"),
    [
        (Verdict.OOM, "torch.OutOfMemoryError: CUDA out of memory", "pid 4121 (bob: python"),
        (Verdict.ENV_ERROR, "ImportError: from transformers import X", "transformers is 5.2.0"),
        (Verdict.LOAD_ERROR, "KeyError: in config.json", "files of org/model have another size"),
        (Verdict.COLLECTIVE_ERROR, "NCCL error", "the NVIDIA driver is 580.65, was 570.86"),
    ],
)
def test_how_it_failed_says_what_comes_first(
    tmp_path: Path, verdict: Verdict, evidence: str, first: str
) -> None:
    run = make_run(tmp_path, outcome(1, facts=WAS), failing(2, verdict, evidence))
    done = CliRunner().invoke(program(["changed"]), ["changed", str(run), "2"])
    assert done.exit_code == 0, done.output
    heading, top, *_ = done.output.splitlines()
    assert "attempt 1 served" in heading
    assert f"attempt 2 failed of {verdict.value}" in heading
    assert first in top
    assert top.startswith("1. likely: ")
    assert "unlikely: the machine was started anew" in done.output


def test_what_is_as_it_was_or_hardly_moved_is_not_told() -> None:
    facts = copy.deepcopy(WAS)
    facts["disks"][0]["free"] -= GIB
    facts["memory"]["available_mib"] -= 1000
    facts["gpus"][0]["memory_free_mib"] -= 100
    assert differences(WAS, facts, build="stock", model="org/model") == []


def test_the_json_form_holds_the_same_and_what_could_not_be_compared(tmp_path: Path) -> None:
    facts = later()
    facts |= {"gpus": None, "errors": {"gpus": "no answer in 20 s"}}
    bad = replace(failing(2, Verdict.HANG, ""), facts=facts)
    run = make_run(tmp_path, outcome(1, facts=WAS), bad)
    done = CliRunner().invoke(program(["changed"]), ["changed", str(run), "2", "--json"])
    answer = json.loads(done.output)
    assert (answer["served"], answer["failed"], answer["same_launch"]) == (1, 2, True)
    kinds = [item["kind"] for item in answer["differences"]]
    assert kinds[0] == "gpu"
    assert "gpus (no answer in 20 s)" in answer["not_compared"]
    chances = [item["chance"] for item in answer["differences"]]
    assert chances == sorted(chances, reverse=True)


def test_without_a_serving_attempt_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    run = make_run(tmp_path, failing(1, Verdict.OOM, ""))
    done = CliRunner().invoke(program(["changed"]), ["changed", str(run), "1"])
    assert done.exit_code == 1
    assert "no attempt has served" in done.output


def test_a_package_of_every_traceback_is_not_named_by_it() -> None:
    facts = copy.deepcopy(WAS)
    facts["builds"]["stock"]["packages"] |= {"torch": "2.9.1"}
    found = differences(WAS, facts, build="stock", model="org/model")
    oom = failing(2, Verdict.OOM, "torch.OutOfMemoryError: CUDA out of memory").diagnosis
    assert [item.is_named for item in ranked(found, oom)] == [False]


def test_today_is_asked_of_the_host_itself(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    run = make_run(tmp_path, outcome(1, facts=WAS), sweep=tmp_path / "sweep.yaml")
    done = folder.call("changed", str(run))
    assert done.returncode == 0, done.stderr
    assert "the kernel is " in done.stdout
    assert "was 6.8.0-51" in done.stdout
