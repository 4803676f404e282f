"""Every case file gets the answer that its head marks."""

from __future__ import annotations

import os

import pytest

from sglsweep import catalogue
from sglsweep.triage.ending import Ending
from sglsweep.triage.follow import Follower
from sglsweep.verdict import Phase, Verdict
from triage.cases import EVIDENCE, HEALTHY, LogCase, cases, marked, write_case

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_log_gets_the_marked_diagnosis(case: LogCase) -> None:
    answer = case.diagnosed()
    if os.environ.get("SGLSWEEP_BLESS"):
        write_case(LogCase(case.path, {**case.head, **marked(answer)}, case.log))
        return
    assert not case.wrong(answer)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_head_says_what_can_be_checked(case: LogCase) -> None:
    head = case.head
    assert head["evidence"] in EVIDENCE
    assert head["source"]
    assert Verdict(head["verdict"])
    assert Phase(head["phase"])
    if head["verdict"] not in HEALTHY and head["cause"] != "killed-sigterm":
        assert "line-text" in head or "exit-status" in head or "silence-s" in head


@pytest.mark.parametrize("case", [c for c in CASES if c.is_healthy], ids=str)
def test_healthy_log_never_ends_a_wait(case: LogCase) -> None:
    follower = Follower(catalogue.load())
    for start in range(0, len(case.log), 1000):
        follower.feed(case.log[start : start + 1000])
        assert follower.terminal is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fed_in_odd_cuts_the_diagnosis_is_the_same(case: LogCase) -> None:
    follower = Follower(catalogue.load())
    cuts = [7, 1, 4096, 33, 500, 2, 64000]
    start = number = 0
    while start < len(case.log):
        size = cuts[number % len(cuts)]
        follower.feed(case.log[start : start + size])
        start, number = start + size, number + 1
    assert follower.diagnose(case.ending) == case.diagnosed()


@pytest.mark.parametrize("case", [c for c in CASES if len(c.log) < 30_000], ids=str)
def test_asking_in_between_changes_nothing(case: LogCase) -> None:
    follower = Follower(catalogue.load())
    lines = case.log.splitlines(keepends=True)
    for number, line in enumerate(lines):
        follower.feed(line)
        if number % 10 == 0:
            follower.diagnose(Ending(silence_s=10_000.0))
            assert isinstance(follower.last_text, str)
    assert follower.diagnose(case.ending) == case.diagnosed()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_evidence_stands_in_the_line_that_is_named(case: LogCase) -> None:
    answer = case.diagnosed()
    if answer.line is None:
        return
    lines = case.log.split(b"\n")
    assert 1 <= answer.line <= len(lines)


@pytest.mark.parametrize("case", [c for c in CASES if c.is_healthy], ids=str)
def test_silence_is_a_hang_only_from_the_phase_s_limit_on(case: LogCase) -> None:
    follower = Follower(catalogue.load())
    follower.feed(case.log)
    assert follower.diagnose(Ending(silence_s=1.0)).verdict is not Verdict.HANG
    if case.head["verdict"] == "serving":
        assert follower.diagnose(Ending(silence_s=1e9)).verdict is Verdict.SERVING
