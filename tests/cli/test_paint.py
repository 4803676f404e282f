"""The live view fits every terminal and says what is going on."""

from __future__ import annotations

import unicodedata

import pytest
from rich.cells import cell_len

from scenes import HOSTILE, attempt, outcome, progress, scene
from sglsweep.cli.paint import Paper, paint
from sglsweep.cli.scene import Scene, difference
from sglsweep.events import Ended, Note, Started, Stopping, Withdrawn
from sglsweep.verdict import Phase, Verdict

SIZES = [(80, 24), (200, 60), (60, 20), (40, 12), (20, 5), (8, 3), (1, 1)]


def text_of(made: Scene, width: int = 100, height: int = 30, now: float = 1101.0) -> str:
    return "\n".join(line.plain for line in paint(made, Paper(width, height), now))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("text", ["", HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("finished", [0, 3, 250])
def test_no_line_is_too_wide_and_none_too_many(
    size: tuple[int, int], text: str, finished: int
) -> None:
    made = scene(finished, text)
    made.take(Note(text=text or "a note"), 1100.0)
    for is_ascii in (False, True):
        lines = paint(made, Paper(*size, is_ascii=is_ascii), 1101.0)
        assert len(lines) <= size[1]
        for line in lines:
            assert cell_len(line.plain) <= size[0]
            assert not [c for c in line.plain if unicodedata.category(c) in {"Cc", "Cf", "Cs"}]
            assert line.plain.isascii() or not is_ascii


def test_a_person_reads_phase_limits_bars_ranks_and_what_is_next() -> None:
    text = text_of(scene())
    for part in (
        "attempt 4 running",
        "vs 3  --page-size 3 -> 99",
        "graph-capture · for 43 s of at most 20 m · 2 m 11 s in all",
        "silent for 8 s of at most 10 m · last sign: CPU at work",
        "3/12",
        "2 of 8 through with cuda graph",
        "Capturing batches",
        "1 passed  greedy",
        "vs 2: --page-size 2 -> 3",
        "oom-graph-capture",
        "if it fails: page-size=1",
    ):
        assert part in text
    assert "83/83" not in text, "weights are long done"


def test_the_smallest_screen_still_says_which_attempt_and_phase() -> None:
    text = text_of(scene(), 40, 4)
    assert "attempt 4" in text
    assert "graph-capture" in text


def test_a_host_that_does_not_answer_is_not_mistaken_for_a_silent_server() -> None:
    assert "no answer from the host for 1 m" in text_of(scene(), now=1160.0)


def test_an_onlooker_s_unknown_phase_time_is_left_out() -> None:
    made = scene(0)
    made.take(progress(attempt(1), phase=Phase.WEIGHTS, phase_s=None, limit_s=None), 1100.0)
    text = text_of(made)
    assert "phase  weights · 2 m 11 s in all" in text
    assert "silent for 8 s · last sign" in text


def test_a_verdict_stands_while_the_rest_is_being_ended_and_in_the_table_after() -> None:
    made = scene(0)
    over = outcome(attempt(1, page_size=99), Verdict.SERVING, "serving")
    made.take(Stopping(outcome=over), 1101.0)
    assert "serving in graph-capture; ending what is left" in text_of(made)
    made.take(Ended(outcome=over), 1102.0)
    text = text_of(made)
    assert "1 finished, 1 serves" in text
    assert "deciding what comes next" in text
    assert "(serving)" not in text


def test_of_equally_near_attempts_the_latest_is_compared_with() -> None:
    earlier = [outcome(attempt(n, tp=8, page_size=n)) for n in (1, 2)]
    number, changes = difference(attempt(3, tp=8, page_size=64), earlier)
    assert (number, [c.text for c in changes]) == (2, ["--page-size 2 -> 64"])


def test_a_new_attempt_starts_without_what_the_last_one_left() -> None:
    made = scene(1)
    made.take(Ended(outcome=outcome(attempt(2, tp=8, page_size=99))), 1199.0)
    made.take(Started(attempt=attempt(3), is_adopted=True), 1200.0)
    text = text_of(made)
    assert "attempt 3 taken over" in text
    assert "launching" in text
    assert "greedy" not in text


def several() -> Scene:
    """Return a scene with four attempts that run, one of them silent, one over."""
    made = scene(3)
    made.next_text = ""
    silent, new, over = (attempt(n, tp=8, page_size=n) for n in (5, 6, 7))
    for one in (silent, new, over):
        made.take(Started(attempt=one), 1090.0)
    made.take(progress(silent, phase=Phase.WEIGHTS, silent_s=400.0), 1100.0)
    made.take(progress(over), 1100.0)
    made.take(Stopping(outcome=outcome(over)), 1100.5)
    return made


def test_several_attempts_have_a_row_each_with_what_they_are_and_their_last_words() -> None:
    text = text_of(several())
    for part in (
        "4 attempts side by side",
        "#4  graph-capture for 43 s · 2 m 11 s in all · silent for 8 s of 10 m",
        "vs 3 --page-size 3 -> 99",
        "1 passed  greedy",
        "#5  weights for 43 s · 2 m 11 s in all · silent for 6 m 41 s of 10 m",
        "Capturing batches",
        "#6  launching",
        "#7  graph-capture for 43 s · 2 m 11 s in all\n",
        "oom (oom-graph-capture) in graph-capture; ending what is left",
    ):
        assert part in text


def test_on_a_small_screen_each_attempt_still_has_its_row() -> None:
    lines = text_of(several(), 40, 8).splitlines()
    assert len(lines) <= 8
    for number in (4, 5, 6, 7):
        assert any(f"#{number} " in line for line in lines)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_rows_of_several_attempts_fit_too(size: tuple[int, int]) -> None:
    for is_ascii in (False, True):
        lines = paint(several(), Paper(*size, is_ascii=is_ascii), 1101.0)
        assert len(lines) <= size[1]
        assert all(cell_len(line.plain) <= size[0] for line in lines)


def test_an_attempt_that_was_not_started_after_all_leaves_the_screen() -> None:
    made = several()
    made.take(Withdrawn(attempt=made.running[6].attempt), 1101.0)
    text = text_of(made)
    assert "3 attempts side by side" in text
    assert "launching" not in text
