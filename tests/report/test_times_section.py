"""What passed between servers, beside the servers' own time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from report.test_blame import launched, run_of
from sglsweep.attempt import Instants, Timings
from sglsweep.report import findings_json
from sglsweep.report.markdown import to_markdown
from sglsweep.report.sections.times import times
from sglsweep.report.status import status_text
from sglsweep.report.times import time_rows
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome


def timed(number: int, *, starts: float, judged: float, call: float = 0.0) -> Outcome:
    """Return an attempt whose server ran from one instant to another."""
    outcome = launched(number, f"--a {number}", Verdict.OOM)
    timings = Timings(
        total_s=judged - starts + 3.0,
        server_s=judged - starts,
        last_words_s=2.0,
        group_gone_s=1.0,
        gpu_free_s=4.0,
        port_free_s=1.5,
        at=Instants(call_at=call, exec_at=starts, judged_at=judged),
    )
    attempt = replace(outcome.attempt, port=30000)
    return replace(outcome, attempt=attempt, timings=timings)


FIRST = timed(1, starts=100.0, judged=190.0)
SECOND = timed(2, starts=196.0, judged=206.0)


def test_times_count_from_the_last_useful_word() -> None:
    first, second = time_rows([FIRST, SECOND])
    assert (first.group_gone_s, first.memory_free_s, first.port_free_s) == (3.0, 6.0, 3.5)
    assert first.next_start_s == pytest.approx(2.0 + 6.0)
    assert second.next_start_s is None


def test_the_sums_and_the_share_stand_above_the_table() -> None:
    text = to_markdown(times(run_of(FIRST, SECOND)))
    assert (
        "Servers' own time 1 min 36 s in 2 attempts; dead time 8.0 s in 1 change of servers "
        "(8% of both)." in text
    )
    assert "| 1 | oom | 1 min 28 s | 3.0 s | 6.0 s | 3.5 s | 8.0 s |" in text


def test_what_nobody_saw_is_no_column() -> None:
    blind = replace(FIRST, timings=replace(FIRST.timings, gpu_free_s=None))
    assert "GPU memory free" not in to_markdown(times(run_of(blind)))


def test_the_hours_between_two_calls_are_nobodys() -> None:
    later = timed(2, starts=9000.0, judged=9010.0, call=8990.0)
    rows = time_rows([FIRST, later])
    assert rows[0].next_start_s is None
    assert "dead time" not in to_markdown(times(run_of(FIRST, later)))


def test_attempts_of_older_versions_have_no_table() -> None:
    assert times(run_of(launched(1, "", Verdict.OOM))) == []


def test_status_and_the_json_tell_the_sums() -> None:
    run = run_of(FIRST, SECOND)
    assert "time: servers' own time 1 min 36 s in 2 attempts; dead time 8.0 s" in status_text(
        run, [], holder=""
    )
    document = findings_json(run)["times"]
    assert isinstance(document, dict)
    assert (document["server_s"], document["dead_s"], document["between"]) == (96.0, 8.0, 1)
    assert document["attempts"][0]["next_start_s"] == pytest.approx(8.0)
