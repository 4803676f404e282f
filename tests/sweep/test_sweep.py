from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

from small_sweeps import VERDICTS, end, small_sweep, wait_until_gone

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sweep_maps_its_cells_and_writes_findings(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert folder.verdicts() == VERDICTS
    findings = (folder.run / "FINDINGS.md").read_text()
    assert "**Serves.**" in findings
    assert "--attention-backend triton" in findings
    assert "Rehearsal" in findings
    assert str(tmp_path) not in findings
    assert folder.processes() == []


def test_every_record_says_when_what_happened(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    assert folder.call(*folder.sweep_words()).returncode == 0
    order = ("call_at", "decided_at", "exec_at", "judged_at", "closed_at")
    for record in folder.records().values():
        timings = record["timings"]
        instants = [timings["at"][name] for name in order]
        assert instants == sorted(instants), instants
        # One that ends by itself is gone before anybody has judged it.
        assert instants[2] < timings["at"]["group_gone_at"] <= instants[-1]
        assert timings["at"]["gpu_free_at"] is None
        assert timings["launch_s"] + timings["server_s"] <= timings["total_s"] + 0.05
        if record["diagnosis"]["verdict"] != "serving":
            assert timings["at"]["fatal_at"] <= timings["at"]["judged_at"]


def test_the_same_command_again_launches_nothing(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    assert folder.call(*folder.sweep_words()).returncode == 0
    before = (folder.run / "FINDINGS.md").read_text()
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0
    assert "started" not in done.stderr
    assert (folder.run / "FINDINGS.md").read_text() == before


def test_what_the_user_wrote_around_the_findings_stays(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    assert folder.call(*folder.sweep_words()).returncode == 0
    path = folder.run / "FINDINGS.md"
    path.write_text(f"# My own words\n\n{path.read_text()}\nand after it\n")
    before = path.read_text()
    assert folder.call("report", str(folder.run)).returncode == 0
    assert path.read_text() == before


def test_a_killed_sweep_repeats_nothing_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    process = folder.begin()
    folder.wait_for("attempt 2 started", process=process)
    assert end(process, signal.SIGKILL) == -signal.SIGKILL
    numbers = set(folder.records())
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 0, done.stderr
    assert "attempt 2 taken over" in done.stderr
    assert folder.verdicts() == VERDICTS
    records = folder.records()
    assert numbers <= set(records)
    # The kill may come before the server was started: then that attempt is made again.
    told = [n for n, r in records.items() if r["diagnosis"]["verdict"] != "interrupted"]
    assert len(told) == len(VERDICTS)
    assert set(records) - set(told) <= {2}
    wait_until_gone(folder)


def test_an_interrupted_sweep_ends_its_server_and_goes_on_later(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    process = folder.begin()
    folder.wait_for("attempt 2 started", process=process)
    assert end(process, signal.SIGINT) == 130
    wait_until_gone(folder)
    records = folder.records()
    assert records[2]["diagnosis"]["verdict"] in {"interrupted", *VERDICTS.values()}
    assert folder.call(*folder.sweep_words()).returncode == 0
    assert folder.verdicts() == VERDICTS


def test_a_busy_port_is_told_and_nothing_is_launched(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", folder.port))
        holder.listen()
        done = folder.call(*folder.sweep_words())
    assert done.returncode == 3
    assert f"port {folder.port} is in use by pid" in done.stderr
    assert "next:" in done.stderr
    assert folder.records() == {}


def test_another_sweep_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    process = folder.begin()
    folder.wait_for("attempt 1 started", process=process)
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 2
    assert str(process.pid) in done.stderr
    assert end(process, signal.SIGINT) == 130
    wait_until_gone(folder)


def test_a_run_with_another_launch_is_refused(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    assert folder.call(*folder.sweep_words()).returncode == 0
    path = tmp_path / "sweep.yaml"
    path.write_text(path.read_text() + "launch: {flags: {tp: 4}}\n")
    done = folder.call(*folder.sweep_words())
    assert done.returncode == 2
    assert "--out" in done.stderr


def test_one_attempt_by_hand_and_its_relaunch(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    sweep = str(tmp_path / "sweep.yaml")
    flags = ("--set", "attention-backend=flashinfer", "--set", "disable-cuda-graph")
    done = folder.call("attempt", sweep, *flags, "--out", str(folder.run), "--json")
    assert done.returncode == 1, done.stderr
    again = folder.call("relaunch", str(folder.run), "1", "--set", "attention-backend=triton")
    assert again.returncode == 0, again.stderr
    assert "flag --attention-backend: flashinfer -> triton" in again.stdout
    assert "verdict: nan-in-probs -> serving" in again.stdout
    assert folder.records()[2]["attempt"]["relaunch_of"] == 1


def test_an_attempt_with_a_model_that_the_file_does_not_name_is_refused(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    sweep = str(tmp_path / "sweep.yaml")
    done = folder.call("attempt", sweep, "--set", "model=other/one", "--out", str(folder.run))
    assert done.returncode == 2
    assert "does not name 'other/one'" in done.stderr
    assert "It names made/up" in done.stderr
    assert folder.records() == {}


def test_retriage_of_an_unchanged_catalogue_changes_nothing(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    assert folder.call(*folder.sweep_words()).returncode == 0
    before = folder.records()
    done = folder.call("retriage", str(folder.run))
    assert done.returncode == 0
    assert done.stdout.strip() == "0 of 4 diagnoses changed"
    assert folder.records() == before
