"""The folder of a run: what survives, what is refused, and in which words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sglsweep.attempt import Attempt, Diagnosis, End, EndKind, Outcome
from sglsweep.errors import ConfigError, StorageError
from sglsweep.journal import Journal, RunIdentity, find_run
from sglsweep.matrix import Cell
from sglsweep.verdict import Phase, Verdict

IDENTITY = RunIdentity(
    name="glm5",
    model="lukealonso/GLM-5-NVFP4",
    launch={"flags": {"tp": 8, "trust-remote-code": True}, "env": {"HF_TOKEN": "${HF_TOKEN}"}},
    sweep_text="name: glm5\n",
    catalogue="2026.11",
)


def attempt(number: int, **values: bool | int | float | str | None) -> Attempt:
    return Attempt(
        number=number,
        cell=Cell(values),
        build="stock",
        model="lukealonso/GLM-5-NVFP4",
        python="/opt/sglang/bin/python",
        argv=("-m", "sglang.launch_server", "--tp", "8"),
        env={},
        launch_key=f"key-{number}",
        host="blackwell",
        port=30000,
        why="first in the matrix",
        started_at="2026-02-19T01:00:00+00:00",
        keeper_dir="/home/me/.sglsweep/1",
    )


def outcome(number: int) -> Outcome:
    return Outcome(
        attempt=attempt(number),
        end=End(kind=EndKind.EXITED, exit_status=-9),
        diagnosis=Diagnosis(verdict=Verdict.OOM, phase=Phase.KV_CACHE, cause="oom-kv-pool"),
    )


def test_an_attempt_is_open_until_it_is_closed(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path / "run", IDENTITY) as journal:
        assert journal.next_number() == 1
        journal.open(attempt(1), {"gpus": []})
        assert [a.number for a in journal.open_attempts()] == [1]
        assert journal.history() == ()
        journal.close(outcome(1))
        assert journal.open_attempts() == ()
        assert journal.history() == (outcome(1),)
        assert journal.next_number() == 2


def test_another_process_s_changes_are_seen(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        reader = Journal.read(tmp_path)
        for number in (1, 2):
            journal.open(attempt(number), {})
        assert len(reader.open_attempts()) == 2
        journal.close(outcome(1))
        assert reader.history() == (outcome(1),)
        journal.stopping(outcome(2))
        assert reader.stopping_outcomes() == (outcome(2),)
        newer = replace(outcome(1), ended_at="later")
        journal.close(newer)
        assert reader.history() == (newer,)
        journal.withdraw(2)
        assert not reader.open_attempts()
        assert not reader.stopping_outcomes()


def test_values_that_python_holds_equal_stay_apart(tmp_path: Path) -> None:
    values = {"a": True, "b": 1, "c": 1.0, "d": None, "e": "1", "f": False, "g": 0}
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1, **values), {})
        (read,) = journal.open_attempts()
    assert read.cell.key == Cell(values).key


def test_the_log_is_stored_by_offset_byte_for_byte(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        assert journal.log_size(1) == 0
        assert journal.read_log(1) == b""
        journal.append_log(1, b"half a li")
        journal.append_log(1, b"ne\r\xff\x00\n")
        assert journal.log_size(1) == 15
        assert journal.read_log(1) == b"half a line\r\xff\x00\n"
        assert journal.read_log(1, limit=4) == b"half"


def test_the_same_sweep_resumes_also_with_a_larger_matrix(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        journal.close(outcome(1))
        journal.record(finish="budget spent")
        run_id = journal.run_id
    larger = replace(IDENTITY, sweep_text="name: glm5\nmatrix: {}\n")
    with Journal.create_or_resume(tmp_path, larger) as journal:
        assert journal.run_id == run_id
        assert len(run_id) == 12
        assert journal.facts["finish"] == "budget spent"
        assert journal.next_number() == 2
        assert journal.sweep_text == larger.sweep_text


def test_the_order_of_flags_makes_no_other_run(tmp_path: Path) -> None:
    Journal.create_or_resume(tmp_path, IDENTITY).release()
    launch = {"env": {"HF_TOKEN": "${HF_TOKEN}"}, "flags": {"trust-remote-code": True, "tp": 8}}
    Journal.create_or_resume(tmp_path, replace(IDENTITY, launch=launch)).release()


def test_another_launch_is_refused_and_named(tmp_path: Path) -> None:
    Journal.create_or_resume(tmp_path, IDENTITY).release()
    other = replace(IDENTITY, launch={"flags": {"tp": 4, "trust-remote-code": True}})
    with pytest.raises(ConfigError, match=r"flags\.tp: 8 -> 4") as caught:
        Journal.create_or_resume(tmp_path, other)
    assert "--out" in caught.value.next_step


def test_another_model_is_refused_and_named(tmp_path: Path) -> None:
    Journal.create_or_resume(tmp_path, IDENTITY).release()
    with pytest.raises(ConfigError, match=r'model: "lukealonso/GLM-5-NVFP4" -> "other/model"'):
        Journal.create_or_resume(tmp_path, replace(IDENTITY, model="other/model"))


def test_a_folder_with_other_files_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match=r"holds thesis\.tex and no run"):
        Journal.create_or_resume(tmp_path, IDENTITY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex"]


def test_what_a_crash_before_the_first_record_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1 gone\n")
    (tmp_path / ".run.json.77.tmp").write_text("{")
    (tmp_path / "attempts").mkdir()
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        assert journal.next_number() == 1


_HOLD = """
import sys
from pathlib import Path
from sglsweep.journal import Journal, RunIdentity
journal = Journal.create_or_resume(Path(sys.argv[1]), RunIdentity(name="glm5", model="m"))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_told_who_holds_the_run_and_death_frees_it(tmp_path: Path) -> None:
    identity = RunIdentity(name="glm5", model="m")
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=f"written by pid {holder.pid} ") as caught:
            Journal.create_or_resume(tmp_path, identity)
        assert f"kill {holder.pid}" in caught.value.next_step
        assert Journal.read(tmp_path).history() == ()
        assert Journal.read(tmp_path).holder == f"pid {holder.pid}"
        holder.kill()
    assert Journal.read(tmp_path).holder == ""
    Journal.create_or_resume(tmp_path, identity).release()


def test_a_journal_opened_to_be_read_does_not_write(tmp_path: Path) -> None:
    Journal.create_or_resume(tmp_path, IDENTITY).release()
    journal = Journal.read(tmp_path)
    with pytest.raises(RuntimeError, match="to be read"):
        journal.close(outcome(1))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not valid JSON"),
        ('{"schema": 1, "state": "clos', "is not valid JSON"),
        ("[1, 2]", "is not a JSON object"),
        ('{"hello": "world"}', "not written by sglsweep"),
        ('{"schema": 99, "state": "closed"}', "written by a newer sglsweep"),
        ('{"schema": 1, "state": "melted"}', "state is 'melted'"),
        ('{"schema": 1, "state": "closed"}', "damaged: attempt: missing"),
        ('{"schema": 1, "state": "closed", "attempt": 7}', "damaged: attempt: 7 is not an object"),
        ("\x00\x00\x00\x00", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_a_damaged_record_is_named_with_the_way_out(
    tmp_path: Path, content: str, words: str
) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
    path = tmp_path / "attempts" / "0001" / "attempt.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        Journal.read(tmp_path).history()
    assert str(path) in caught.value.message
    assert caught.value.next_step


def test_a_verdict_that_does_not_exist_is_named_where_it_stands(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        journal.close(outcome(1))
    path = tmp_path / "attempts" / "0001" / "attempt.json"
    path.write_text(path.read_text().replace('"verdict": "oom"', '"verdict": "tired"'))
    with pytest.raises(ConfigError, match=r"diagnosis\.verdict: 'tired' is no Verdict"):
        Journal.read(tmp_path).history()


def test_keys_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        journal.close(outcome(1))
    path = tmp_path / "attempts" / "0001" / "attempt.json"
    document = json.loads(path.read_text())
    document["moon"] = "full"
    document["diagnosis"]["mood"] = {"a": [1]}
    path.write_text(json.dumps(document))
    assert Journal.read(tmp_path).history() == (outcome(1),)


def test_a_withdrawn_attempt_leaves_nothing(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        journal.append_log(1, b"bind failed")
        journal.withdraw(1)
        assert journal.open_attempts() == ()
        assert journal.next_number() == 1
        assert list((tmp_path / "attempts").iterdir()) == []


def test_a_number_whose_record_is_missing_is_not_used_again(tmp_path: Path) -> None:
    with Journal.create_or_resume(tmp_path, IDENTITY) as journal:
        journal.open(attempt(1), {})
        (tmp_path / "attempts" / "0002").mkdir()
        assert journal.next_number() == 3
        assert journal.history() == ()


def test_run_is_found_as_a_folder_or_by_name(tmp_path: Path) -> None:
    Journal.create_or_resume(tmp_path / "runs" / "demo", IDENTITY).release()
    assert find_run("demo", tmp_path) == tmp_path / "runs" / "demo"
    assert find_run("runs/demo", tmp_path) == tmp_path / "runs" / "demo"
    assert find_run(str(tmp_path / "runs" / "demo"), Path("/")) == tmp_path / "runs" / "demo"
    with pytest.raises(ConfigError, match="no run at") as caught:
        find_run("nightly", tmp_path)
    assert "demo" in caught.value.next_step


_FILL = """
import resource, signal, sys
from pathlib import Path
from sglsweep.errors import StorageError
from sglsweep.journal import Journal, RunIdentity
journal = Journal.create_or_resume(Path(sys.argv[1]), RunIdentity(name="glm5", model="m"))
journal.record(note="small")
(journal.folder / "attempts" / "0001").mkdir()
journal.append_log(1, b"x" * 3000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for write in (lambda: journal.append_log(1, b"y" * 3000), lambda: journal.record(note="b" * 9000)):
    try:
        write()
    except StorageError as error:
        print(error.message, "|", error.next_step)
"""


def test_a_disk_that_refuses_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("cannot write: File too large | ") == 2
    journal = Journal.read(tmp_path)
    assert journal.read_log(1) == b"x" * 3000
    assert journal.facts["note"] == "small"
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        with Journal.create_or_resume(tmp_path / "run", IDENTITY) as journal:
            journal.open(attempt(1), {})
            with pytest.raises(StorageError, match="No space left on device") as caught:
                journal.append_log(1, b"z" * 100_000)
            assert caught.value.exit_code == 2
            assert "Free some space" in caught.value.next_step
            assert journal.log_size(1) == 0
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        Journal.create_or_resume(tmp_path / "run", IDENTITY)


def test_threads_never_get_the_same_number(tmp_path: Path) -> None:
    with (
        Journal.create_or_resume(tmp_path / "run", IDENTITY) as journal,
        ThreadPoolExecutor(8) as pool,
    ):
        numbers = list(pool.map(lambda _: journal.take_number(), range(40)))
        assert sorted(numbers) == list(range(1, 41))
        journal.open(attempt(40), {})
        journal.withdraw(40)
        assert journal.take_number() == 40, "nothing was started under it"


def test_threads_may_write_withdraw_and_read_at_once(tmp_path: Path) -> None:
    def live(number: int) -> int:
        journal.open(attempt(number), {})
        journal.append_log(number, b"line\n")
        if number % 3 == 0:
            journal.withdraw(number)
        else:
            journal.stopping(outcome(number))
            journal.close(outcome(number))
        journal.record(last=number)
        return len(journal.history()) + len(journal.open_attempts())

    with Journal.create_or_resume(tmp_path / "run", IDENTITY) as journal:
        with ThreadPoolExecutor(8) as pool:
            assert all(seen >= 0 for seen in pool.map(live, range(1, 31)))
        closed = [o.attempt.number for o in journal.history()]
        assert closed == [n for n in range(1, 31) if n % 3]
        assert journal.open_attempts() == ()
