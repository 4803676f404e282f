"""What two attempts prove, and what they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sglsweep.attempt import Attempt, Blame, Diagnosis, End, EndKind, Outcome
from sglsweep.matrix import Cell
from sglsweep.report.groups import groups
from sglsweep.report.shown import Shown, Standing, did_not_help, shown
from sglsweep.report.view import RunView
from sglsweep.verdict import Phase, Verdict

BASE = "--model-path m --tp 8"


def launched(  # noqa: PLR0913 - an outcome has this many sides
    number: int,
    flags: str,
    verdict: Verdict,
    *,
    phase: Phase = Phase.DECODE,
    blames: tuple[Blame, ...] = (),
    facts: dict[str, object] | None = None,
) -> Outcome:
    words = f"{BASE} {flags}".split()
    attempt = Attempt(
        number=number,
        cell=Cell({}),
        build="stock",
        model="m",
        python="python3",
        argv=("-m", "sglang.launch_server", *words, "--port", str(30000 + number)),
        env={},
        launch_key=flags,
        host="gpu-07",
        port=30000 + number,
        why="",
        started_at="",
        keeper_dir="",
    )
    cause = None if verdict is Verdict.SERVING else verdict.value
    return Outcome(
        attempt=attempt,
        end=End(kind=EndKind.EXITED),
        diagnosis=Diagnosis(verdict=verdict, phase=phase, cause=cause, blames=blames),
        facts=facts or {},
    )


def found(*outcomes: Outcome) -> tuple[Shown, ...]:
    run = RunView(run="r", name="r", model="m", outcomes=outcomes)
    return shown(run, groups(run)[0].outcomes)


NAN, OK, OOM = Verdict.NAN_IN_PROBS, Verdict.SERVING, Verdict.OOM


def test_a_pair_that_differs_in_one_flag_proves_it() -> None:
    (item,) = found(launched(1, "--kv fp8", NAN), launched(2, "--kv bf16", OK))
    assert item.standing is Standing.PROVEN
    assert item.pair is not None
    assert item.pair.changes[0].text == "--kv fp8 -> bf16"


def test_the_port_is_no_difference() -> None:
    assert found(launched(1, "", NAN), launched(2, "", OK)) == ()


def test_a_flag_that_was_dropped_counts_like_one_that_was_added() -> None:
    (item,) = found(launched(1, "--fast", NAN), launched(2, "", OK))
    assert item.pair is not None
    assert item.pair.changes[0].text == "- --fast"


def test_two_differences_narrow_down_and_prove_nothing() -> None:
    (item,) = found(launched(1, "--a 1 --b 1", NAN), launched(2, "--a 2 --b 2", OK))
    assert item.standing is Standing.NARROWED


def test_a_smaller_difference_makes_the_larger_one_superfluous() -> None:
    items = found(
        launched(1, "--a 1 --b 1", NAN),
        launched(2, "--a 2 --b 2", OK),
        launched(3, "--a 2 --b 1", OK),
    )
    assert [item.standing for item in items] == [Standing.PROVEN]


def test_what_all_differences_have_in_common_is_pointed_at() -> None:
    (item,) = found(
        launched(1, "--a 1 --b 1 --c 1", NAN),
        launched(2, "--a 2 --b 2 --c 1", OK),
        launched(3, "--a 2 --b 1 --c 2", OK),
    )
    assert item.standing is Standing.POINTED
    assert item.settings == (("a", "1"),)
    assert item.against == (2, 3)


def test_differences_without_anything_in_common_point_nowhere() -> None:
    items = found(
        launched(1, "--a 1 --b 1 --c 1 --d 1", NAN),
        launched(2, "--a 2 --b 2 --c 1 --d 1", OK),
        launched(3, "--a 1 --b 1 --c 2 --d 2", OK),
    )
    assert [item.standing for item in items] == [Standing.NARROWED, Standing.NARROWED]


def test_many_differences_show_nothing() -> None:
    one, two = "--a 1 --b 1 --c 1 --d 1", "--a 2 --b 2 --c 2 --d 2"
    assert found(launched(1, one, NAN), launched(2, two, OK)) == ()


def test_a_launch_that_serves_one_time_and_fails_another_proves_nothing() -> None:
    items = found(
        launched(1, "--kv fp8", NAN), launched(2, "--kv bf16", OK), launched(3, "--kv fp8", OK)
    )
    assert items == ()


@pytest.mark.parametrize(
    "verdict", [Verdict.KILLED, Verdict.HOST_LOST, Verdict.INTERRUPTED, Verdict.INCOMPLETE]
)
def test_an_attempt_that_was_ended_from_outside_is_no_evidence(verdict: Verdict) -> None:
    bad, good = launched(1, "--kv fp8", verdict), launched(2, "--kv bf16", OK)
    run = RunView(run="r", name="r", model="m", outcomes=(bad, good))
    assert run.failing == ()
    assert groups(run) == ()


def test_an_attempt_ended_for_being_equal_is_no_evidence() -> None:
    twin = replace(launched(1, "--kv fp8", NAN), end=End(kind=EndKind.EQUAL, equal_to=2))
    run = RunView(run="r", name="r", model="m", outcomes=(twin,))
    assert run.evidence == ()


def test_a_host_that_was_changed_in_between_is_a_difference() -> None:
    def facts(torch: str) -> dict[str, object]:
        return {"builds": {"stock": {"packages": {"torch": torch}}}}

    (item,) = found(
        launched(1, "--kv fp8", NAN, facts=facts("2.9.0")),
        launched(2, "--kv bf16", OK, facts=facts("2.9.1")),
    )
    assert item.standing is Standing.NARROWED
    assert item.pair is not None
    assert [c.name for c in item.pair.changes] == ["kv", "host's stock torch"]


def test_a_fact_that_only_one_attempt_knew_is_no_difference() -> None:
    facts: dict[str, object] = {"kernel": "6.1", "gpus": []}
    (item,) = found(launched(1, "--kv fp8", NAN, facts=facts), launched(2, "--kv bf16", OK))
    assert item.standing is Standing.PROVEN


def test_a_change_after_which_it_gets_further_is_shown_but_not_called_proven() -> None:
    run = RunView(
        run="r",
        name="r",
        model="m",
        outcomes=(
            launched(1, "--mem 0.95", OOM, phase=Phase.GRAPH_CAPTURE),
            launched(2, "--mem 0.88", NAN, phase=Phase.DECODE),
        ),
    )
    (item,) = shown(run, groups(run)[0].outcomes)
    assert item.standing is Standing.PASSED
    (_, nan) = groups(run)
    assert shown(run, nan.outcomes) == ()


def test_failing_alike_without_it_is_said_beside_a_proof() -> None:
    (item, *_) = found(
        launched(1, "--kv fp8", NAN),
        launched(2, "--kv auto --x", NAN),
        launched(3, "--kv bf16", OK),
    )
    assert item.standing is Standing.PROVEN
    assert item.against == (2,)


def test_a_blamed_value_that_serves_elsewhere_is_not_to_blame_alone() -> None:
    blame = (Blame("kv", "fp8"),)
    items = found(
        launched(1, "--kv fp8 --a 1 --b 1 --c 1", NAN, blames=blame),
        launched(2, "--kv fp8 --a 2 --b 2 --c 2 --d 1", OK),
    )
    assert [(i.standing, i.against) for i in items] == [(Standing.NOT_ALONE, (2,))]


def test_a_blamed_value_without_which_it_fails_alike_is_not_needed() -> None:
    blame = (Blame("kv", "fp8"),)
    items = found(launched(1, "--kv fp8", NAN, blames=blame), launched(2, "--kv bf16", NAN))
    assert [(i.standing, i.against) for i in items] == [(Standing.NOT_NEEDED, (2,))]


def test_a_blame_that_nothing_bears_out_stays_a_suspicion() -> None:
    (item,) = found(launched(1, "--kv fp8", NAN, blames=(Blame("kv", "fp8"),)))
    assert item.standing is Standing.SUSPECTED


def test_where_nothing_serves_nothing_is_called_common() -> None:
    assert found(launched(1, "--kv fp8 --a", NAN), launched(2, "--kv fp8 --b", NAN)) == ()


def test_changes_that_left_the_cause_as_it_was_did_not_help() -> None:
    outcomes = [
        launched(1, "--kv fp8", NAN),
        launched(2, "--kv fp8 --eager", NAN),
        launched(3, "--kv bf16 --x", NAN),
    ]
    assert [(c.text, n) for c, n in did_not_help(outcomes)] == [("+ --eager", 2)]
