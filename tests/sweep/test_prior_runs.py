"""Earlier runs named in SWEEP.yaml: used from the first launch on, and refused with their line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sglsweep.config.sweep import load_sweep
from sglsweep.errors import ConfigError
from sglsweep.priors import read_priors
from small_sweeps import Folder, small_sweep

if TYPE_CHECKING:
    from pathlib import Path


def ask_first_serving(folder: Folder, prior: str) -> None:
    path = folder.path / "sweep.yaml"
    text = path.read_text().replace("goal: map", "goal: first-serving")
    path.write_text(f"{text.rstrip()}\nprior: [{prior}]\n")


def test_a_run_that_found_it_before_saves_the_search_as_folder_and_as_file(
    tmp_path: Path,
) -> None:
    folder = small_sweep(tmp_path)
    first = folder.command("sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "k1"))
    assert folder.call(*first[3:]).returncode == 0
    exported = folder.call("report", str(tmp_path / "k1"), "--json").stdout
    (tmp_path / "k1.json").write_text(exported)
    assert set(json.loads(exported)["setting"]) == {"arch", "architecture"}
    ask_first_serving(folder, "k1, k1.json")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    (record,) = folder.records().values()
    assert record["attempt"]["why"].startswith("known from run k1, attempt ")
    assert record["diagnosis"]["verdict"] == "serving"
    run = json.loads((folder.run / "run.json").read_text())
    assert [entry["taken"] for entry in run["priors"]] == [4, 0]
    assert "4 of 4 attempts of run k1 count here" in done.stderr
    assert "not taken: 4 counted already" in (folder.run / "FINDINGS.md").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such folder or file"),
        ("{", "is no JSON: "),
        ("[]", "holds no findings (no list of attempts)"),
        ('{"schema": 9, "attempts": []}', "has schema 9, this version reads 1"),
        ('{"schema": 1, "attempts": [7]}', "attempts[0] is no object"),
        (
            '{"schema": 1, "attempts": [{"number": 1, "cell": {}, "verdict": "fine"}]}',
            "attempts[0].verdict: 'fine' is no Verdict",
        ),
    ],
)
def test_a_prior_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, content: str | None, said: str
) -> None:
    folder = small_sweep(tmp_path)
    ask_first_serving(folder, "old.json")
    if content is not None:
        (tmp_path / "old.json").write_text(content)
    sweep = load_sweep(tmp_path / "sweep.yaml")
    line = len((tmp_path / "sweep.yaml").read_text().splitlines())
    with pytest.raises(ConfigError) as caught:
        read_priors(sweep)
    assert caught.value.message.startswith(f"{tmp_path / 'sweep.yaml'}:{line}: prior '")
    assert said in caught.value.message
    assert caught.value.next_step


def test_a_folder_that_is_no_run_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    (tmp_path / "empty").mkdir()
    ask_first_serving(folder, "empty")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 2
    assert "no run there (neither run.json nor findings.json)" in done.stderr
    assert not folder.run.exists() or not folder.records()
    planned = folder.call("plan", str(tmp_path / "sweep.yaml"))
    assert planned.returncode == 2
    assert "no run there" in planned.stderr
