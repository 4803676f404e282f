from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from small_sweeps import VERDICTS, Folder, end, small_sweep, wait_until_gone

if TYPE_CHECKING:
    from pathlib import Path

CAPPED = "launch: {flags: {max-total-tokens: 4096}}\n"


def several(path: Path, slots: int, *, more: str = "", gpus: str = "") -> Folder:
    """Write the small sweep for a host with slots."""
    cards = f", gpus: {gpus}" if gpus else ""
    folder = small_sweep(path, hosts=f"local: {{slots: {slots}{cards}}}\n")
    sweep = path / "sweep.yaml"
    sweep.write_text(sweep.read_text() + more)
    return folder


def attempts(folder: Folder) -> list[dict[str, Any]]:
    return [record["attempt"] for record in folder.records().values()]


def test_attempts_run_side_by_side_and_come_to_the_same_verdicts(tmp_path: Path) -> None:
    folder = several(tmp_path, 3)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert folder.verdicts() == VERDICTS
    assert {a["port"] - folder.port for a in attempts(folder)} == {0, 1, 2}
    assert all(a["port"] - folder.port == a["slot"] for a in attempts(folder))
    first = folder.records()[1]["end"]
    assert set(first["beside"]) >= {2, 3}
    assert first["sharing"] == [], "a rehearsal takes no memory of a host without a GPU"
    assert folder.processes() == []


def test_plain_lines_of_several_attempts_begin_with_their_numbers(tmp_path: Path) -> None:
    folder = several(tmp_path, 2)
    said = folder.call(*folder.sweep_words()).stderr
    assert "   1 | why: " in said
    assert "   2 |           proof " in said
    assert all(line[:2] != "  " or " | " in line[:7] for line in said.splitlines()), said


def test_the_command_line_says_how_many_for_one_call(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    done = folder.call(*folder.sweep_words(), "--slots", "2")
    assert done.returncode == 0, done.stderr
    assert {a["slot"] for a in attempts(folder)} == {0, 1}
    assert folder.call(*folder.sweep_words(), "--slots", "0").returncode == 2


@pytest.mark.parametrize("again", [3, 1])
def test_a_killed_sweep_takes_all_of_them_over(tmp_path: Path, again: int) -> None:
    folder = several(tmp_path, 3)
    process = folder.begin()
    for number in (1, 2, 3):
        folder.wait_for(f"   {number} |", process=process)
    assert end(process, signal.SIGKILL) == -signal.SIGKILL
    left = {n for n, record in folder.records().items() if record["state"] == "open"}
    done = folder.call(*folder.sweep_words(), "--slots", str(again))
    assert done.returncode == 0, done.stderr
    for number in left:
        assert f"attempt {number} taken over" in done.stderr
    assert folder.verdicts() == VERDICTS
    # The kill may come before a server was started: that attempt is made again, and no other.
    records = folder.records().values()
    told = [r for r in records if r["diagnosis"]["verdict"] != "interrupted"]
    assert len(told) == len(VERDICTS)
    assert len(records) - len(told) <= len(left)
    wait_until_gone(folder)


def test_an_interrupted_sweep_ends_and_records_all_that_runs(tmp_path: Path) -> None:
    folder = several(tmp_path, 3)
    process = folder.begin()
    for number in (1, 2, 3):
        folder.wait_for(f"   {number} |", process=process)
    assert end(process, signal.SIGINT) == 130
    assert "ending attempt" in folder.said
    wait_until_gone(folder, within_s=1.0)
    records = folder.records()
    assert all(record["state"] == "closed" for record in records.values())
    cut = [r for r in records.values() if r["diagnosis"]["verdict"] == "interrupted"]
    assert cut
    assert all(record["end"]["detail"] == "stopped by the user" for record in cut)
    assert folder.call(*folder.sweep_words()).returncode == 0
    assert folder.verdicts() == VERDICTS


def test_a_second_ctrl_c_leaves_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = several(tmp_path, 3)
    process = folder.begin()
    folder.wait_for("   3 |", process=process)
    process.send_signal(signal.SIGINT)
    folder.wait_for("ending attempt", process=process)
    assert end(process, signal.SIGINT) == 130
    assert folder.call(*folder.sweep_words()).returncode == 0
    assert folder.verdicts() == VERDICTS
    wait_until_gone(folder)


def test_a_busy_port_costs_its_slot_and_no_more(tmp_path: Path) -> None:
    folder = several(tmp_path, 3)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", folder.port + 1))
        holder.listen()
        done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert f"port {folder.port + 1} is in use by pid" in done.stderr
    assert "slot 1 stays empty" in done.stderr
    assert folder.verdicts() == VERDICTS
    assert {a["slot"] for a in attempts(folder)} == {0, 2}


def test_with_every_port_busy_nothing_is_launched(tmp_path: Path) -> None:
    folder = several(tmp_path, 2)
    with socket.socket() as one, socket.socket() as other:
        for place, holder in enumerate((one, other)):
            holder.bind(("127.0.0.1", folder.port + place))
            holder.listen()
        done = folder.call(*folder.sweep_words())
    assert done.returncode == 3
    assert "is in use by pid" in done.stderr
    assert folder.records() == {}


def test_a_budget_of_attempts_counts_what_runs(tmp_path: Path) -> None:
    folder = several(tmp_path, 4, more="budget: {attempts: 3}\n")
    done = folder.call(*folder.sweep_words())
    assert "the budget of 3 attempts is spent" in done.stdout
    assert sorted(folder.records()) == [1, 2, 3]
    assert all(r["diagnosis"]["verdict"] != "interrupted" for r in folder.records().values())


def test_each_slot_has_its_share_of_the_gpus_and_says_so(tmp_path: Path) -> None:
    folder = several(tmp_path, 2, gpus="[0, 1, 4, 5]")
    assert folder.call(*folder.sweep_words()).returncode == 0
    keys: dict[str, set[str]] = {}
    for attempt in attempts(folder):
        cards = [[0, 1], [4, 5]][attempt["slot"]]
        assert attempt["gpus"] == cards
        assert attempt["env"]["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, cards))
        keys.setdefault(attempt["launch_key"], set()).add(str(attempt["cell"]))
    assert len(keys) == len(VERDICTS), "the cards are no part of what a launch is"
    assert all(record["end"]["sharing"] == [] for record in folder.records().values())
    findings = (folder.run / "FINDINGS.md").read_text()
    assert "CUDA_VISIBLE_DEVICES=" in findings
    assert "-> 4,5" not in findings, "a slot is no change of flags"


def test_out_of_memory_beside_a_neighbour_on_the_card_is_asked_again_alone(tmp_path: Path) -> None:
    folder = several(tmp_path, 4, gpus="[0]", more=CAPPED)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert folder.verdicts() == VERDICTS
    records = folder.records().values()
    beside = [r for r in records if r["diagnosis"]["cause"] == "beside-others"]
    assert [r["diagnosis"]["verdict"] for r in beside] == ["interrupted"]
    assert "The sweep launches it again alone" in beside[0]["diagnosis"]["next_step"]
    again = [r for r in records if r["attempt"]["relaunch_of"] is not None]
    assert [r["attempt"]["relaunch_of"] for r in again] == [beside[0]["attempt"]["number"]]
    assert again[0]["diagnosis"]["verdict"] == "oom"
    assert again[0]["end"]["beside"] == []


def test_without_a_cap_cells_on_one_card_run_one_after_another(tmp_path: Path) -> None:
    folder = several(tmp_path, 2, gpus="[0]")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert "max-total-tokens" in done.stderr
    assert folder.verdicts() == VERDICTS
    assert all(record["end"]["beside"] == [] for record in folder.records().values())
