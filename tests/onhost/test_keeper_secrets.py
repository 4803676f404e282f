"""Secrets: the server has them, and nothing that is written does."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from attempts import KEEPER, is_alive, wait_until
from sglsweep.onhost.keeper import Secrets, mask_options

if TYPE_CHECKING:
    from attempts import Attempts, Started

VALUE = 'hf_q7"Zz\\x!ü9'


def start(attempts: Attempts, *habits: str) -> Started:
    spec = attempts.spec(*habits)
    return attempts.start(
        port=spec.port,
        argv=(*spec.argv, "say=told ${TOKEN}", "wait"),
        env={"SECRET": "${TOKEN}"},
        secrets={"TOKEN": VALUE},
    )


def files_with(folder: Path, value: str) -> list[Path]:
    raw = value.encode()
    return [path for path in folder.rglob("*") if path.is_file() and raw in path.read_bytes()]


def test_the_value_stands_in_no_file_though_the_server_prints_it(attempts: Attempts) -> None:
    attempt = start(attempts, "calm")
    attempt.wait_for("${TOKEN}")
    wait_until(lambda: "${TOKEN}" in attempt.state.processes[0].title)

    attempt.launched.stop(is_ready=False)

    assert files_with(attempts.folder, VALUE) == []
    assert files_with(attempts.folder, "q7") == []


def test_a_value_printed_in_pieces_is_one_value(attempts: Attempts) -> None:
    attempt = start(attempts, "split-secret")
    attempt.wait_for("told")

    assert attempt.log.startswith("${TOKEN}\n")


def test_half_a_value_at_the_end_of_the_log_is_hidden_too(attempts: Attempts) -> None:
    attempt = start(attempts, "half-secret", "exit=1")

    attempt.wait_for_end()

    assert attempt.log == "then ${TOKEN}"


def test_nothing_starts_when_the_secrets_did_not_arrive(attempts: Attempts) -> None:
    spec = attempts.spec("wait", secrets={"TOKEN": VALUE})
    folder = attempts.folder / "by-hand"
    folder.mkdir()
    (folder / "spec.json").write_bytes(spec.as_json())
    words = [sys.executable, "-I", str(KEEPER), "start", str(folder)]

    said = subprocess.run(words, input=b"", capture_output=True, check=False, timeout=30)

    assert said.returncode == 5
    assert b"lacks the secrets TOKEN" in said.stdout
    assert not (folder / "state.json").exists()


def test_a_program_that_cannot_run_is_named_without_the_value(attempts: Attempts) -> None:
    try:
        attempts.start(argv=(f"/no/such/{VALUE}",), secrets={"TOKEN": VALUE})
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not tell
        said = str(error)
    else:
        said = VALUE

    assert "${TOKEN}" in said
    assert VALUE not in said


def test_the_log_goes_on_without_its_keeper(attempts: Attempts) -> None:
    attempt = start(attempts, "rest=3", "say=still here")
    keeper = attempt.state.keeper_pid
    assert keeper is not None

    os.kill(keeper, signal.SIGKILL)

    wait_until(lambda: not is_alive(keeper))
    attempt.wait_for("still here")
    attempt.wait_for("${TOKEN}")
    assert attempt.keeper("stop")["exit"] == 0


def test_a_value_that_is_an_option_is_hidden_from_later_looks() -> None:
    title = "python -m sglang.launch_server --api-key s3cret --tokenizer-path x --hf-token=abc"

    assert mask_options(title) == (
        "python -m sglang.launch_server --api-key *** --tokenizer-path x --hf-token=***"
    )


def test_the_key_that_a_load_tool_takes_within_json_is_hidden_too() -> None:
    words = 'guidellm run --backend {"target": "t", "api_key": "s3\\"cret", "model": "m"} --seed 1'
    assert mask_options(words) == (
        'guidellm run --backend {"target": "t", "api_key": "***", "model": "m"} --seed 1'
    )


def joined(secrets: Secrets, pieces: list[bytes]) -> bytes:
    written, held = b"", b""
    for piece in pieces:
        ready, held = secrets.cut(held + piece)
        written += ready
    return written + secrets.last(held)


WORDS = st.lists(st.sampled_from(["ab", "abc", "abcd", "b", "cab", "x", "\n"]), max_size=12)


@settings(max_examples=300, deadline=None)
@given(words=WORDS, cuts=st.lists(st.integers(0, 40), max_size=6))
def test_where_the_log_is_cut_changes_nothing(words: list[str], cuts: list[int]) -> None:
    secrets = Secrets({"LONG": "abcabx", "SHORT": "abca"})
    raw = "".join(words).encode() + b"."
    borders = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    pieces = [raw[a:b] for a, b in itertools.pairwise(borders)]

    written = joined(secrets, pieces)

    assert written == joined(secrets, [raw])
    assert b"abca" not in written.replace(b"${LONG}", b"~").replace(b"${SHORT}", b"~")


def test_other_spellings_of_a_value_are_hidden() -> None:
    secrets = Secrets({"TOKEN": 'a"b/c é'})

    for text in ('{"k": "a\\"b/c \\u00e9"}', "?k=a%22b%2Fc%20%C3%A9", "k=a%22b%2Fc+%C3%A9"):
        assert "${TOKEN}" in secrets.redact(text)


def test_an_empty_value_hides_nothing() -> None:
    assert Secrets({"TOKEN": ""}).redact("text") == "text"


def test_without_secrets_the_server_writes_the_log_itself(attempts: Attempts) -> None:
    attempt = attempts.start("wait")

    target = Path(f"/proc/{attempt.state.server_pid}/fd/1").readlink()

    assert target == attempt.folder / "log"
    assert sys.executable in attempt.state.processes[0].title
