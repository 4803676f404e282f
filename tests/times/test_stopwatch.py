from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scenes import attempt, outcome
from sglsweep.attempt import Instants, Outcome, Timings
from sglsweep.deadtime import next_start_s, sums
from sglsweep.keeper_files import KeeperState, RunState, StopReport
from sglsweep.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence


def state(started_at: float, beat_at: float) -> KeeperState:
    return KeeperState(state=RunState.RUNNING, started_at=started_at, beat_at=beat_at)


def run_through(host_ahead_s: float, *, has_gpu: bool = True) -> Timings:
    """Time an attempt on a host whose clock is that much ahead of ours."""
    watch = Stopwatch(100.0, call_at=90.0)
    for beat_at, read_at in ((101.0, 101.9), (102.0, 102.05), (103.0, 103.7)):
        watch.beat(state(100.5 + host_ahead_s, beat_at + host_ahead_s), read_at)
    watch.ready(150.0)
    watch.fatal(160.0)
    watch.fatal(161.0)
    watch.judged(162.0)
    report = StopReport(
        asked_at=162.1 + host_ahead_s,
        tree_gone_s=4.0,
        gpu_free_s=4.5 if has_gpu else None,
        port_free_s=4.2,
    )
    watch.stopped(report, 167.0)
    return watch.timings(closed_at=167.1)


@pytest.mark.parametrize("host_ahead_s", [0.0, 3600.0, -86400.0])
def test_the_hosts_clock_may_be_any_other(host_ahead_s: float) -> None:
    timings = run_through(host_ahead_s)
    assert timings.launch_s == pytest.approx(0.55)
    assert timings.server_s == pytest.approx(61.45)
    assert timings.last_words_s == pytest.approx(2.0)
    assert timings.group_gone_s == pytest.approx(4.15)
    assert timings.gpu_free_s == pytest.approx(4.65)
    assert timings.port_free_s == pytest.approx(4.35)
    assert timings.total_s == pytest.approx(67.0)
    assert timings.dead_s == pytest.approx(5.55)
    assert timings.at.fatal_at == 160.0
    assert timings.at.closed_at == 167.1


def test_without_a_gpu_no_time_is_made_up_for_its_memory() -> None:
    timings = run_through(0.0, has_gpu=False)
    assert timings.gpu_free_s is None
    assert timings.at.gpu_free_at is None


def test_a_server_that_ended_by_itself_was_gone_before_it_was_judged() -> None:
    watch = Stopwatch(100.0)
    watch.beat(state(100.1, 101.0), 101.0)
    watch.judged(105.0)
    watch.stopped(StopReport(asked_at=104.0, tree_gone_s=0.2, port_free_s=0.2), 105.3)
    timings = watch.timings()
    assert timings.group_gone_s == 0.0
    assert timings.at.group_gone_at == pytest.approx(104.2)


def test_an_adopted_attempt_has_no_decision_of_ours() -> None:
    watch = Stopwatch(100.0, call_at=120.0, is_adopted=True)
    watch.beat(state(99.9, 121.0), 121.0)
    watch.judged(130.0)
    watch.stopped(StopReport(asked_at=130.0, tree_gone_s=1.0), 131.5)
    timings = watch.timings()
    assert timings.launch_s is None
    assert timings.at.decided_at is None
    assert timings.total_s == pytest.approx(31.6)


def timed(number: int, exec_at: float, judged_at: float, *, call: float, port: int = 1) -> Outcome:
    of = replace(attempt(number), port=port)
    at = Instants(call_at=call, exec_at=exec_at, judged_at=judged_at)
    return replace(outcome(of), timings=Timings(server_s=judged_at - exec_at, at=at))


def with_words(of: Outcome, seconds: float) -> Outcome:
    return replace(of, timings=replace(of.timings, last_words_s=seconds))


def test_only_attempts_of_one_call_and_one_port_follow_each_other() -> None:
    outcomes: Sequence[Outcome] = (
        timed(1, 10.0, 50.0, call=5.0),
        timed(2, 11.0, 70.0, call=5.0, port=2),
        timed(3, 55.0, 90.0, call=5.0),
        timed(4, 1000.0, 1040.0, call=990.0),
        with_words(timed(5, 1044.0, 1050.0, call=990.0), 2.0),
        timed(7, 1051.0, 1052.0, call=990.0),
        replace(outcome(attempt(6)), timings=Timings(total_s=3.0)),
    )
    assert next_start_s(outcomes) == {3: 5.0, 5: 4.0, 7: 1.0}
    added = sums(outcomes)
    assert (added.attempts, added.server_s, added.dead_s, added.between) == (6, 179.0, 12.0, 3)


def test_a_slot_that_waited_for_an_attempt_that_ran_alone_counts_nothing() -> None:
    outcomes = (
        timed(1, 10.0, 50.0, call=5.0),
        timed(2, 11.0, 60.0, call=5.0, port=2),
        timed(3, 62.0, 90.0, call=5.0, port=2),
        timed(4, 95.0, 120.0, call=5.0),
    )
    assert next_start_s(outcomes) == {3: 2.0}
    assert sums(outcomes).between == 1
