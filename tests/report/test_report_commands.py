"""`sglsweep report`, `status` and `diff` over stored runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from sglsweep.cli import report as commands
from sglsweep.journal import Journal, RunIdentity

if TYPE_CHECKING:
    from typer.testing import Result

    from sglsweep.report.view import StoredRun

app = typer.Typer(pretty_exceptions_enable=False)
app.command("report")(commands.report)
app.command("status")(commands.status)
app.command("diff")(commands.diff)


def store(memory: StoredRun, folder: Path) -> Path:
    """Write a history as a sweep would."""
    identity = RunIdentity(name=str(memory.facts["name"]), model=str(memory.facts["model"]))
    with Journal.create_or_resume(folder, identity) as journal:
        for outcome in memory.history():
            journal.open(outcome.attempt, outcome.facts)
            journal.append_log(outcome.attempt.number, b"line 1\n")
            journal.close(outcome)
        for attempt in memory.open_attempts():
            journal.open(attempt, {})
        journal.record(**{k: v for k, v in memory.facts.items() if k not in {"name", "model"}})
    return folder


@pytest.fixture
def folder(stored: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return store(stored, tmp_path / "runs" / stored.folder.name)


def call(*words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == status, result.output
    return result


def test_report_names_the_file_and_says_what_the_journal_says(
    folder: Path, stored: StoredRun
) -> None:
    written = call("report", folder.name).stdout.strip()
    assert Path(written) == folder / "FINDINGS.md"
    golden = (Path(__file__).parent / "golden" / f"{stored.folder.name}.md").read_text()
    assert Path(written).read_text() == golden


def test_report_prints_json_on_one_line_in_ascii(folder: Path) -> None:
    printed = call("report", folder.name, "--json").stdout
    assert printed.isascii()
    assert printed.count("\n") == 1
    assert json.loads(printed)["schema"] == 1


def test_the_page_loads_nothing_from_anywhere(folder: Path, tmp_path: Path) -> None:
    call("report", folder.name, "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"<(?:script|link|img|iframe)|src=|@import|url\(", page)
    assert str(tmp_path) not in page


def test_two_outputs_at_once_are_refused(folder: Path) -> None:
    result = CliRunner().invoke(app, ["report", folder.name, "--json", "--brief"])
    assert "different outputs" in str(result.exception)


def test_a_bug_report_for_an_attempt_that_is_not_there_names_those_that_are(folder: Path) -> None:
    result = CliRunner().invoke(app, ["report", folder.name, "--issue", "99"])
    assert "no finished attempt 99" in str(result.exception)


def test_every_finished_attempt_has_a_bug_report(folder: Path, stored: StoredRun) -> None:
    for outcome in stored.history():
        text = call("report", folder.name, "--issue", str(outcome.attempt.number)).stdout
        assert "python3 -m sglang.launch_server" in text
        assert "blackwell" not in text.replace("NVIDIA RTX PRO 6000 Blackwell", "")


def test_status_is_the_same_in_words_and_as_data(folder: Path, stored: StoredRun) -> None:
    document = json.loads(call("status", folder.name, "--json").stdout)
    text = call("status", folder.name).stdout
    assert document["finished"] == len(stored.history())
    assert f"{document['finished']} attempt" in text
    assert ("serving: nothing yet" in text) == (document["serving"] == [])
    assert len(document["running"]) == len(stored.open_attempts())


def test_status_says_what_is_left_of_the_budget(folder: Path) -> None:
    document = json.loads(call("status", folder.name, "--json").stdout)
    if folder.name == "cpu-map":
        assert document["budget_left"] == {"attempts": 4.0, "hours": 0.951}
    else:
        assert document["budget_left"] == {}


def test_a_run_differs_from_itself_in_nothing(folder: Path) -> None:
    document = json.loads(call("diff", folder.name, str(folder), "--json").stdout)
    assert document["changed"] == []
    assert document["only_before"] == document["only_after"] == document["software"] == []


def test_two_logs_are_compared_by_their_diagnoses(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("The server is fired up and ready to roll!\n")
    (tmp_path / "b.log").write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    document = json.loads(
        call("diff", str(tmp_path / "a.log"), str(tmp_path / "b.log"), "--json").stdout
    )
    assert {"what": "verdict", "before": "serving", "after": "oom"} in document["differences"]
    same = call("diff", str(tmp_path / "a.log"), str(tmp_path / "a.log")).stdout
    assert "Same diagnosis" in same
