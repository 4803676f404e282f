"""The file FINDINGS.md: what is the tool's and what stays the user's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglsweep.errors import StorageError
from sglsweep.report import replace_file, write
from sglsweep.report.findings import BEGIN, END, merge, render
from sglsweep.report.view import RunView, StoredRun

if TYPE_CHECKING:
    from pathlib import Path

GENERATED = f"{BEGIN}\nnew findings\n{END}\n"
PIECES = st.lists(
    st.sampled_from(["mine", "\n", "\r\n", " ", BEGIN, END, "<!--", "-->", "\udcff", "| a |"]),
    max_size=8,
).map("".join)


class InMemory(StoredRun, Protocol):
    folder: Path


def test_the_tool_s_part_has_both_markers_on_lines_of_their_own(run: RunView) -> None:
    lines = render(run).splitlines()
    assert lines.count(BEGIN) == 1
    assert lines.count(END) == 1


def test_what_stands_around_the_markers_stays(run: RunView) -> None:
    before, after = "# My notes\r\n\n", "\nCall Ann about the PSU.\n"
    file = before + merge(None, GENERATED) + after
    again = merge(file, render(run))
    assert again.startswith(before)
    assert again.endswith(after)
    assert "new findings" not in again


def test_a_file_without_markers_is_the_user_s() -> None:
    assert merge("# Mine\n", GENERATED) == f"{GENERATED}\n# Mine\n"


def test_a_lost_end_marker_loses_no_text() -> None:
    file = f"before\n{BEGIN}\nold\n"
    assert merge(file, GENERATED).endswith(file)
    assert merge(merge(file, GENERATED), GENERATED) == merge(file, GENERATED)


def test_a_marker_quoted_in_a_sentence_is_no_marker() -> None:
    file = f"Between {BEGIN} and {END} the tool writes.\n{GENERATED}after\n"
    assert merge(file, GENERATED) == file


@given(PIECES, PIECES)
def test_nothing_outside_the_first_part_is_ever_lost(before: str, after: str) -> None:
    merged = merge(before + "\n" + after, GENERATED)
    assert merge(merged, GENERATED) == merged
    assert GENERATED.strip() in merged


@given(PIECES.filter(lambda t: BEGIN not in t and END not in t))
def test_text_before_and_after_survives_byte_for_byte(text: str) -> None:
    file = f"{text}\n{GENERATED}{text}"
    assert merge(file, f"{BEGIN}\nnewer\n{END}\n") == file.replace("new findings", "newer")


def test_writing_twice_changes_nothing_and_leaves_no_temporary_file(stored: InMemory) -> None:
    stored.folder.mkdir()
    write(stored)
    first = (stored.folder / "FINDINGS.md").read_bytes()
    write(stored)
    assert (stored.folder / "FINDINGS.md").read_bytes() == first
    assert sorted(p.name for p in stored.folder.iterdir()) == ["FINDINGS.md", "findings.json"]


def test_bytes_of_another_encoding_survive(stored: InMemory) -> None:
    stored.folder.mkdir()
    (stored.folder / "FINDINGS.md").write_bytes(b"caf\xe9\r\n")
    write(stored)
    assert (stored.folder / "FINDINGS.md").read_bytes().endswith(b"\ncaf\xe9\r\n")


def test_the_json_is_strict_and_has_every_attempt(stored: InMemory) -> None:
    stored.folder.mkdir()
    run = write(stored)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = (stored.folder / "findings.json").read_text("ascii")
    document = json.loads(text, parse_constant=refuse)
    assert document["schema"] == 1
    assert [a["number"] for a in document["attempts"]] == [o.attempt.number for o in run.outcomes]


def test_no_path_of_this_machine_is_written(stored: InMemory) -> None:
    stored.folder.mkdir()
    write(stored)
    for name in ("FINDINGS.md", "findings.json"):
        assert str(stored.folder.parent) not in (stored.folder / name).read_text()


def test_a_file_that_cannot_be_read_is_not_overwritten(stored: InMemory) -> None:
    (stored.folder / "FINDINGS.md").mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot read") as caught:
        write(stored)
    assert "must not be lost" in caught.value.next_step


def test_a_page_in_a_folder_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file") as caught:
        replace_file(tmp_path / "pages" / "demo.html", b"")
    assert caught.value.next_step == f"Make the folder {tmp_path / 'pages'} first."
