"""What two attempts prove, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from report.conftest import Stored
from sglsweep.attempt import Attempt, Blame, Diagnosis, End, EndKind, Outcome
from sglsweep.matrix import NO_EFFECT, Axis, Cell
from sglsweep.plan.blame import Status
from sglsweep.report.blamed import Combination, combinations, flaky_attempts
from sglsweep.report.document import plain
from sglsweep.report.findings import render
from sglsweep.report.groups import groups
from sglsweep.report.held import did_not_help
from sglsweep.report.markdown import to_markdown
from sglsweep.report.sections.blame import minimal_failing
from sglsweep.report.tell import tell, tell_all
from sglsweep.report.view import Bisected, RunView, view_of
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Scalar
    from sglsweep.matrix import Value

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


def run_of(*outcomes: Outcome, **more: object) -> RunView:
    return RunView(run="r", name="r", model="m", outcomes=outcomes, **more)  # type: ignore[arg-type]


def found(*outcomes: Outcome, **more: object) -> tuple[Combination, ...]:
    return combinations(run_of(*outcomes, **more))


def words(run: RunView) -> str:
    return to_markdown(minimal_failing(run))


NAN, OK, OOM = Verdict.NAN_IN_PROBS, Verdict.SERVING, Verdict.OOM


def test_a_pair_that_differs_in_one_flag_proves_it() -> None:
    (row,) = found(launched(1, "--kv fp8", NAN), launched(2, "--kv bf16", OK))
    assert (row.status, row.chance, row.values) == (Status.PROVEN, 1.0, {"kv": "fp8"})
    assert row.proofs[0].changes[0].text == "--kv fp8 -> bf16"


def test_the_port_is_no_difference() -> None:
    assert found(launched(1, "", NAN), launched(2, "", OK)) == ()


def test_a_flag_that_was_dropped_counts_like_one_that_was_added() -> None:
    (row,) = found(launched(1, "--fast", NAN), launched(2, "", OK))
    assert row.proofs[0].changes[0].text == "- --fast"
    (row,) = found(launched(1, "", NAN), launched(2, "--safe", OK))
    assert row.values == {"safe": None}
    assert "`--safe` not passed" in words(run_of(launched(1, "", NAN), launched(2, "--safe", OK)))


def test_two_differences_support_and_prove_nothing() -> None:
    run = run_of(launched(1, "--a 1 --b 1", NAN), launched(2, "--a 2 --b 2", OK))
    (row,) = combinations(run)
    assert row.status is Status.SUPPORTED
    assert "2 serves and differs from 1 in `--a 1 -> 2`, `--b 1 -> 2`" in words(run)
    assert "`sglsweep bisect r 1` settles it" in words(run)


def test_where_nothing_stands_out_nothing_is_called_to_blame() -> None:
    run = run_of(launched(1, "--a 1 --b 1", NAN), launched(2, "--a 2 --b 2", OK))
    (row,) = combinations(run)
    assert not row.is_named
    assert "not decided: `--a 1` (" in words(run)
    assert ", or `--b 1` (" in words(run)
    assert "Blamed" not in plain(tell(run, row))


def test_a_smaller_difference_makes_the_larger_one_superfluous() -> None:
    (row,) = found(
        launched(1, "--a 1 --b 1", NAN),
        launched(2, "--a 2 --b 2", OK),
        launched(3, "--a 2 --b 1", OK),
    )
    assert (row.status, row.values) == (Status.PROVEN, {"a": "1"})


def test_two_settings_that_fail_only_together_are_proven_by_a_pair_each() -> None:
    (row,) = found(
        launched(1, "--a 1 --b 1", NAN),
        launched(2, "--a 2 --b 1", OK),
        launched(3, "--a 1 --b 2", OK),
    )
    assert (row.status, row.values) == (Status.PROVEN, {"a": "1", "b": "1"})
    assert [p.better.attempt.number for p in row.proofs] == [2, 3]


def test_a_launch_that_serves_one_time_and_fails_another_proves_nothing() -> None:
    run = run_of(
        launched(1, "--kv fp8", NAN), launched(2, "--kv bf16", OK), launched(3, "--kv fp8", OK)
    )
    assert combinations(run) == ()
    assert flaky_attempts(run) == (1,)
    assert "Did not repeat: 1." in words(run)


def test_a_serving_attempt_whose_launch_failed_another_time_proves_nothing() -> None:
    rows = found(
        launched(1, "--kv fp8", NAN), launched(2, "--kv bf16", OK), launched(3, "--kv bf16", NAN)
    )
    assert not any(row.is_proven for row in rows)


@pytest.mark.parametrize(
    "verdict", [Verdict.KILLED, Verdict.HOST_LOST, Verdict.INTERRUPTED, Verdict.INCOMPLETE]
)
def test_an_attempt_that_was_ended_from_outside_is_no_evidence(verdict: Verdict) -> None:
    run = run_of(launched(1, "--kv fp8", verdict), launched(2, "--kv bf16", OK))
    assert run.failing == ()
    assert groups(run) == ()
    assert combinations(run) == ()


def test_an_attempt_ended_for_being_equal_is_no_evidence() -> None:
    twin = replace(launched(1, "--kv fp8", NAN), end=End(kind=EndKind.EQUAL, equal_to=2))
    assert run_of(twin).evidence == ()


def test_a_host_that_was_changed_in_between_is_a_difference() -> None:
    def facts(torch: str) -> dict[str, object]:
        return {"builds": {"stock": {"packages": {"torch": torch}}}}

    (row,) = found(
        launched(1, "--kv fp8", NAN, facts=facts("2.9.0")),
        launched(2, "--kv bf16", OK, facts=facts("2.9.1")),
    )
    assert not row.is_proven
    named = {name for values in (row.values, *(v for v, _ in row.rivals)) for name in values}
    assert named == {"kv", "host's stock torch"}


def test_a_fact_that_only_one_attempt_knew_is_no_difference() -> None:
    facts: dict[str, object] = {"kernel": "6.1", "gpus": []}
    (row,) = found(launched(1, "--kv fp8", NAN, facts=facts), launched(2, "--kv bf16", OK))
    assert row.is_proven


def test_a_change_after_which_it_gets_further_is_shown_but_not_called_proven() -> None:
    run = run_of(
        launched(1, "--mem 0.95", OOM, phase=Phase.GRAPH_CAPTURE),
        launched(2, "--mem 0.88", NAN, phase=Phase.DECODE),
    )
    (row,) = (r for r in combinations(run) if r.cause == "oom")
    assert (row.status, row.values) == (Status.SUPPORTED, {"mem": "0.95"})
    assert "2 gets on to decode (nan-in-probs) with `--mem 0.88`" in words(run)


def test_failing_alike_without_it_is_said_beside_a_proof() -> None:
    run = run_of(
        launched(1, "--kv fp8", NAN),
        launched(2, "--kv auto --x", NAN),
        launched(3, "--kv bf16", OK),
    )
    (row, *_) = combinations(run)
    assert row.is_proven
    assert [o.attempt.number for o in row.without] == [2]
    assert "not the only one: 2 fails alike without it" in plain(tell(run, row))


def test_a_blamed_value_that_serves_elsewhere_is_refuted() -> None:
    blame = (Blame("kv", "fp8"),)
    run = run_of(
        launched(1, "--kv fp8 --a 1 --b 1 --c 1", NAN, blames=blame),
        launched(2, "--kv fp8 --a 2 --b 2 --c 2 --d 1", OK),
        launched(3, "--kv bf16 --a 2 --b 2 --c 2 --d 1", OK),
    )
    (row,) = (r for r in combinations(run) if r.is_refuted)
    assert row.values == {"kv": "fp8"}
    assert "named by the signature in 1; 2 serves with it" in words(run)


def test_a_blame_of_a_value_that_the_attempt_did_not_have_blames_no_other() -> None:
    blame = (Blame("kv", "fp8"),)
    rows = found(
        launched(1, "--kv bf16 --a 1 --b 1", NAN, blames=blame),
        launched(2, "--kv bf16 --a 2 --b 2", OK),
        launched(3, "--kv fp8 --a 2 --b 2", OK),
    )
    assert not any("kv" in row.values for row in rows)


def test_a_blamed_value_without_which_it_fails_alike_is_not_needed() -> None:
    blame = (Blame("kv", "fp8"),)
    run = run_of(launched(1, "--kv fp8", NAN, blames=blame), launched(2, "--kv bf16", NAN))
    said = [plain(line) for line in tell_all(run, groups(run)[0])]
    assert said[-1] == (
        "Named by the signature, but not needed for it: kv=fp8 (2 fails alike without it)"
    )


def test_a_blame_that_no_attempt_varied_stays_a_suspicion() -> None:
    run = run_of(launched(1, "--kv fp8", NAN, blames=(Blame("kv", "fp8"),)))
    assert combinations(run) == ()
    (line,) = tell_all(run, groups(run)[0])
    assert plain(line) == "Suspected, by the signature alone: kv=fp8"


def test_a_blame_that_no_attempt_varied_and_one_serves_with_is_not_to_blame_by_itself() -> None:
    blame = (Blame("attention-backend", "flashinfer"),)
    run = run_of(
        launched(1, "--attention-backend flashinfer --kv fp8", NAN, blames=blame),
        launched(2, "--attention-backend flashinfer --kv bf16", OK),
    )
    assert plain(tell_all(run, groups(run)[0])[-1]) == (
        "Named by the signature, but not to blame by itself: attention-backend=flashinfer "
        "(2 serves with it)"
    )


def test_what_the_matrix_varies_can_be_to_blame_though_no_attempt_varied_it_yet() -> None:
    axes = (Axis("kv", ("fp8", "bf16")), Axis("a", ("1", "2")))
    run = run_of(launched(1, "--kv fp8 --a 1", NAN), launched(2, "--kv fp8 --a 2", NAN), axes=axes)
    (row,) = combinations(run)
    assert row.values == {"kv": "fp8"}
    assert "both have it, no attempt serves yet" in words(run)


def test_not_passed_and_the_value_sglang_chose_are_one() -> None:
    def made(outcome: Outcome, value: str) -> Outcome:
        diagnosis = replace(outcome.diagnosis, effective={"kv_cache_dtype": value})
        return replace(outcome, diagnosis=diagnosis)

    run = run_of(
        made(launched(1, "", NAN), "fp8_e4m3"),
        made(launched(2, "--kv-cache-dtype fp8_e4m3 --a", NAN), "fp8_e4m3"),
        made(launched(3, "--kv-cache-dtype bf16", OK), "bfloat16"),
    )
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"kv-cache-dtype": None})
    assert [o.attempt.number for o in row.failing] == [1, 2]
    assert "`--kv-cache-dtype` not passed (SGLang chose fp8_e4m3)" in words(run)


def test_a_check_that_only_looks_on_is_not_to_blame_for_what_it_shows() -> None:
    check = "--enable-nan-detection"
    garbage = Verdict.GARBAGE_OUTPUT
    run = run_of(
        launched(1, "--kv fp8", garbage),
        launched(2, f"--kv fp8 {check}", NAN, phase=Phase.WARMUP),
        launched(3, "--kv bf16", OK),
    )
    assert [row.values for row in combinations(run)] == [{"kv": "fp8"}]
    nan = next(g for g in groups(run) if g.verdict is NAN)
    assert [plain(line) for line in tell_all(run, nan)] == [
        "2 is the launch of 1 with a check that only looks on: who is to blame stands at "
        "garbage-output"
    ]


def test_a_check_with_which_a_server_dies_that_serves_without_is_blamed() -> None:
    run = run_of(launched(1, "", OK), launched(2, "--enable-nan-detection", NAN))
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"enable-nan-detection": ""})


def test_changes_that_left_the_cause_as_it_was_did_not_help() -> None:
    outcomes = [
        launched(1, "--kv fp8", NAN),
        launched(2, "--kv fp8 --eager", NAN),
        launched(3, "--kv bf16 --x", NAN),
    ]
    assert [(c.text, n) for c, n in did_not_help(outcomes)] == [("+ --eager", 2)]


# -- what `sglsweep bisect` named --------------------------------------------------------------


FAR = (launched(1, "--a 1 --b 1", NAN), launched(2, "--a 2 --b 2", OK))


def test_what_bisect_proved_takes_the_place_of_a_guess() -> None:
    bisected = Bisected(bad=1, values={"a": 1, "b": 1}, is_proven=True, failing=1, serving=2)
    run = run_of(*FAR, bisections=(bisected,))
    (row,) = combinations(run)
    assert (row.status, row.values, row.is_bisected) == (
        Status.PROVEN,
        {"a": "1", "b": "1"},
        True,
    )
    assert "1 fails, 2 serves and differs in just these (bisect)" in words(run)


def test_what_bisect_could_not_prove_is_supported() -> None:
    run = run_of(*FAR, bisections=(Bisected(bad=1, values={"a": 1}),))
    (row,) = combinations(run)
    assert (row.status, row.chance, row.is_named) == (Status.SUPPORTED, None, True)
    assert "settles it" not in words(run)


def test_a_later_attempt_that_serves_with_it_refutes_what_bisect_named() -> None:
    bisected = Bisected(bad=1, values={"a": 1}, is_proven=True, failing=1, serving=2)
    run = run_of(*FAR, launched(3, "--a 1 --b 2", OK), bisections=(bisected,))
    proven, refuted = combinations(run)
    assert (proven.status, proven.values) == (Status.PROVEN, {"b": "1"})
    assert (refuted.status, refuted.values) == (Status.REFUTED, {"a": "1"})
    assert "named by bisect in 1; 3 serves with it" in words(run)


def test_what_bisect_called_a_flake_is_blamed_on_nothing() -> None:
    again = launched(3, "--a 1 --b 1", OK)
    flake = Bisected(bad=1, is_proven=True, is_flake=True, failing=1, serving=3)
    run = run_of(*FAR, again, bisections=(flake,))
    assert combinations(run) == ()
    assert flaky_attempts(run) == (1,)


def test_a_run_file_of_bisections_is_read(tmp_path: Path) -> None:
    facts = {
        "bisections": [
            {"bad": 1, "good": 2, "is_named": True, "values": {"a": 1}, "is_proven": True},
            {"bad": 1, "good": 3, "is_named": False},
            "rubbish",
        ]
    }
    run = view_of(Stored(tmp_path, facts, list(FAR)))
    assert [(b.bad, b.values, b.is_proven) for b in run.bisections] == [(1, {"a": 1}, True)]


def test_sections_tell_one_story_about_a_flag(lead_case_run: RunView) -> None:
    said = {name for row in combinations(lead_case_run) if row.is_named for name in row.values}
    refuted = {n for row in combinations(lead_case_run) if row.is_refuted for n in row.values}
    assert said == {"kv-cache-dtype", "fp4-gemm-backend", "mem-fraction-static"}
    assert refuted == {"nsa-decode-backend"}
    text = render(lead_case_run)
    for line in text.splitlines():
        if line.startswith(("- Blamed", "- **Proven**")):
            assert "nsa-decode-backend" not in line


# -- what SGLang makes of a cell, where it was asked first --------------------------------------


def acting(number: int, **values: Value) -> tuple[int, Cell]:
    return number, Cell({name.replace("_", "-"): value for name, value in values.items()})


def test_a_flag_that_selects_nothing_is_neither_blamed_nor_cleared() -> None:
    axes = (Axis("kv", ("fp8", "bf16")), Axis("nsa", (None, "sparse")))
    run = run_of(
        launched(1, "--kv fp8 --nsa sparse", NAN, blames=(Blame("nsa", "sparse"),)),
        launched(2, "--kv bf16", OK),
        launched(3, "--kv bf16 --nsa sparse", OK),
        axes=axes,
        acted=dict(
            acting(n, kv=kv, nsa=NO_EFFECT) for n, kv in enumerate(("fp8", "bf16", "bf16"), 1)
        ),
    )
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"kv": "fp8"})
    assert plain(tell_all(run, groups(run)[0])[-1]) == (
        "Named by the signature, but without effect: nsa=sparse (it selects nothing in 1)"
    )


def test_a_pair_that_differs_too_in_a_flag_without_effect_proves_and_says_so() -> None:
    run = run_of(
        launched(1, "--kv fp8 --nsa sparse", NAN),
        launched(2, "--kv bf16", OK),
        axes=(Axis("kv", ("fp8", "bf16")), Axis("nsa", (None, "sparse"))),
        acted=dict([acting(1, kv="fp8", nsa=NO_EFFECT), acting(2, kv="bf16", nsa=NO_EFFECT)]),
    )
    (row,) = combinations(run)
    assert row.is_proven
    assert "the rest being equal but for --nsa, which has no effect there" in words(run)
    assert [c.name for c in row.telling(row.proofs[0])] == ["kv"]


def test_a_value_that_was_chosen_by_sglang_is_told_as_it_was_passed() -> None:
    run = run_of(
        launched(1, "", NAN),
        launched(2, "--kv bf16", OK),
        axes=(Axis("kv", (None, "fp8", "bf16")),),
        acted=dict([acting(1, kv="fp8"), acting(2, kv="bf16")]),
    )
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"kv": None})


def test_what_acted_is_read_from_the_run_file(tmp_path: Path) -> None:
    facts = {"effective": [{"attempt": 1, "values": {"a": NO_EFFECT}}]}
    run = view_of(Stored(tmp_path, facts, list(FAR)))
    assert run.acted == {1: Cell({"a": NO_EFFECT})}


def test_a_long_table_is_cut_to_what_a_reader_can_use() -> None:
    outcomes = [launched(n, f"--kv fp8 --a {n}", NAN) for n in range(1, 30)]
    outcomes += [
        launched(n, f"--kv bf16 --a {n}", OOM, phase=Phase.KV_CACHE) for n in range(30, 60)
    ]
    text = words(run_of(*outcomes, launched(60, "--kv none", OK)))
    assert "| 1, 2, 3, 4, 5, 6, 7, 8 and 21 more |" in text
    assert len(text.splitlines()) < 30


def test_one_flag_by_two_names_is_named_once() -> None:
    blames = (Blame("nsa-decode-backend"), Blame("dsa-decode-backend", "trtllm"))
    flags = "--dsa-decode-backend trtllm"
    run = run_of(launched(1, flags, NAN, blames=blames))
    (line,) = tell_all(run, groups(run)[0])
    assert plain(line) == "Suspected, by the signature alone: dsa-decode-backend=trtllm"


def test_the_model_that_a_signature_names_is_the_axis() -> None:
    blames = (Blame("model-path", "broken"),)
    bad = launched(1, "", NAN, blames=blames)
    bad = replace(bad, attempt=replace(bad.attempt, model="broken"))
    run = run_of(bad, launched(2, "", OK))
    assert [row.values for row in combinations(run)] == [{"model": "broken"}]
    assert len(tell_all(run, groups(run)[0])) == 1


def test_an_error_of_the_machine_is_guessed_on_no_flag() -> None:
    busy = Verdict.ENV_ERROR
    run = run_of(launched(1, "--a 1 --b 1", busy), launched(2, "--a 2 --b 2", OK))
    assert combinations(run) == ()
    assert plain(tell_all(run, groups(run)[0])[0]) == (
        "No flag is blamed: an error of the machine, not of the launch"
    )


def test_an_error_of_the_machine_that_one_flag_avoids_is_proven_all_the_same() -> None:
    run = run_of(launched(1, "--a 1", Verdict.ENV_ERROR), launched(2, "--a 2", OK))
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"a": "1"})


def test_an_error_of_the_machine_whose_signature_names_a_flag_has_a_row() -> None:
    blames = (Blame("attention-backend", "triton"),)
    run = run_of(
        launched(1, "--attention-backend triton --b 1", Verdict.ENV_ERROR, blames=blames),
        launched(2, "--attention-backend fa3 --b 2", OK),
    )
    (row,) = combinations(run)
    assert row.status is Status.SUPPORTED


def test_what_a_server_is_called_makes_nothing_fail() -> None:
    run = run_of(
        launched(1, "--served-model-name x --a 1", NAN),
        launched(2, "--served-model-name y --a 2", OK),
    )
    (row,) = combinations(run)
    assert (row.status, row.values) == (Status.PROVEN, {"a": "1"})


def test_where_anything_may_be_behind_it_nothing_is_named() -> None:
    axes = tuple(Axis(name, ("1", "2", "3")) for name in "abcdefgh")
    flags = " ".join(f"--{axis.name} 1" for axis in axes)
    run = run_of(launched(1, flags, NAN), axes=axes)
    text = words(run)
    assert "| not narrowed down | nan-in-probs | open | 1 | no attempt serves yet |" in text
    (line,) = tell_all(run, groups(run)[0])
    assert plain(line) == "Nothing narrows it down yet: no attempt serves yet"


def test_of_pairs_that_show_the_same_the_plainest_is_told() -> None:
    check = "--enable-nan-detection"
    run = run_of(
        launched(1, "--kv fp8", NAN),
        launched(2, f"--kv bf16 {check}", OK),
        launched(3, "--kv bf16", OK),
    )
    (row,) = combinations(run)
    (pair,) = row.proofs
    assert pair.better.attempt.number == 3


@pytest.mark.parametrize("cause", ["oom-gpu-held", "port-in-use", "dist-port-in-use"])
def test_no_flag_is_blamed_where_somebody_else_held_the_card_or_the_port(cause: str) -> None:
    held = launched(1, "--frac 0.9", OOM)
    held = replace(held, diagnosis=replace(held.diagnosis, cause=cause))
    assert found(held, launched(2, "--frac 0.5", OK)) == ()
    text = render(run_of(held, launched(2, "--frac 0.5", OK)))
    assert "## What fails" not in text
    assert f"- 1 oom in decode ({cause})" in text


def test_a_flag_left_out_is_not_cleared_by_launches_in_which_it_became_another_value() -> None:
    blames = (Blame("prefill", "packed"),)
    bad = launched(1, "--kv fp8 --decode flat", NAN, blames=blames)
    good = launched(2, "", OK)
    told = replace(bad.diagnosis, effective={"prefill": "packed"})
    bad = replace(bad, diagnosis=told)
    axes = tuple(
        Axis(name, (None, value))
        for name, value in (("prefill", "sparse"), ("kv", "fp8"), ("decode", "flat"))
    )

    def refuted(effective: dict[str, Scalar]) -> list[Combination]:
        other = replace(good, diagnosis=replace(good.diagnosis, effective=effective))
        third = launched(3, "--prefill sparse", NAN)
        return [c for c in found(bad, other, third, axes=axes) if c.is_refuted]

    assert [row.values for row in refuted({"prefill": "packed"})] == [{"prefill": None}]
    assert refuted({"prefill": "sparse"}) == []
