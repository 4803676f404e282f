"""Sentences that decide what somebody does next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from sglsweep.attempt import Proof, ProofStep, StepState, Suspect
from sglsweep.matrix import NO_EFFECT, Cell
from sglsweep.report import findings_json, page
from sglsweep.report.best import best_serving
from sglsweep.report.caveats import caveats
from sglsweep.report.compare import compare_outcomes, compare_runs
from sglsweep.report.document import plain
from sglsweep.report.findings import render
from sglsweep.report.grid import fold
from sglsweep.report.launches import flags_of, setting_text
from sglsweep.report.machine import gpu_words
from sglsweep.report.numbers import duration
from sglsweep.report.view import view_of
from sglsweep.report.words import remedy_options
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.matrix import Value
    from sglsweep.report.view import RunView


def changed(run: RunView, number: int, **fields: object) -> RunView:
    """Return the run with fields of one attempt's diagnosis replaced."""
    outcomes = tuple(
        replace(o, diagnosis=replace(o.diagnosis, **fields))  # type: ignore[arg-type]
        if o.attempt.number == number
        else o
        for o in run.outcomes
    )
    return replace(run, outcomes=outcomes)


def again(run: RunView, number: int, verdict: Verdict) -> RunView:
    """Return the run with one attempt repeated, with another outcome."""
    first = run.outcome(number)
    assert first is not None
    last = run.outcomes[-1].attempt.number + 1
    repeat = replace(
        first,
        attempt=replace(first.attempt, number=last),
        diagnosis=replace(first.diagnosis, verdict=verdict, cause=verdict.value),
    )
    return replace(run, outcomes=(*run.outcomes, repeat))


def said(run: RunView) -> str:
    best = best_serving(run)
    assert best is not None
    return "\n".join(plain(line) for line in caveats(run, best))


def test_a_command_that_served_once_and_failed_once_is_not_recommended_without_a_word(
    lead_case_run: RunView,
) -> None:
    run = again(lead_case_run, 6, Verdict.HANG)
    assert "served in 6 and failed in 8" in said(run)
    assert "**Proven**" not in render(run)


def test_a_repeat_that_serves_is_said(lead_case_run: RunView) -> None:
    run = again(lead_case_run, 6, Verdict.SERVING)
    assert "Attempt 6, repeated as 8" in render(run)
    assert "Launched once" not in said(run)


def test_a_pool_below_the_need_is_called_too_small(lead_case_run: RunView) -> None:
    run = changed(lead_case_run, 6, metrics={"max_total_num_tokens": 200_000})
    assert "Too small: 200,000 KV tokens, your need 4 x 65,536 = 262,144; 3.1 requests" in said(
        run
    )


def test_random_weights_are_said(lead_case_run: RunView) -> None:
    assert "Random weights" in said(changed(lead_case_run, 6, effective={"load_format": "dummy"}))


def test_a_flag_that_sglang_overrode_is_said(lead_case_run: RunView) -> None:
    effective = {"attention-backend": "triton", "kv-cache-dtype": "bfloat16", "tp-size": 8}
    text = said(changed(lead_case_run, 6, effective=effective))
    assert "SGLang overrode: --attention-backend flashinfer became triton." in text


def test_what_the_proof_found_odd_is_not_quoted_as_a_line_of_the_log(
    lead_case_run: RunView,
) -> None:
    odd = (Suspect("proof-known-answers", 0, "7 of 8"),)
    text = said(changed(lead_case_run, 6, suspects=odd))
    assert "log:0" not in text
    assert "Suspect answer: known-answers: 7 of 8" in text


def doubted(run: RunView, number: int) -> RunView:
    """Return the run with every answer of one attempt made suspect."""
    odd = Proof(
        steps=(
            ProofStep(name="answers", state=StepState.OK),
            ProofStep(name="server-info", state=StepState.OK),
            ProofStep(name="sampled", state=StepState.SUSPECT, detail="token id 0 in all of 48"),
        )
    )
    outcomes = tuple(
        replace(o, proof=odd) if o.attempt.number == number else o for o in run.outcomes
    )
    return replace(run, outcomes=outcomes)


def test_a_server_whose_answers_are_suspect_is_not_said_to_serve(lead_case_run: RunView) -> None:
    text = render(doubted(lead_case_run, 6))
    assert "**Answers, but most answers are suspect.** Attempt 6" in text
    assert "**Serves.**" not in text


def test_a_server_whose_answers_are_suspect_proves_nothing(lead_case_run: RunView) -> None:
    assert "**proven**" in render(lead_case_run)
    assert "**proven**" not in render(doubted(lead_case_run, 6))


def test_a_server_with_sound_answers_is_recommended_before_a_suspect_one(
    cpu_run: RunView,
) -> None:
    best = best_serving(doubted(cpu_run, 2))
    assert best is not None
    assert best.attempt.number == 4
    text = render(doubted(cpu_run, 2))
    assert "Also serving" not in text
    assert "- --context-length 1024`; **most answers suspect**" in text


def test_the_faster_one_is_recommended_only_where_speed_is_the_goal(cpu_run: RunView) -> None:
    best = best_serving(cpu_run)
    assert best is not None
    assert best.attempt.number == 2
    fast = best_serving(replace(cpu_run, goals=("fastest",)))
    assert fast is not None
    assert fast.attempt.number == 4


@pytest.mark.parametrize(
    ("verdict", "word"),
    [(Verdict.SERVING, "Supported"), (Verdict.OOM, "Refuted"), (Verdict.ENV_ERROR, "Open")],
)
def test_a_hypothesis_is_judged_by_the_attempts_that_tested_it(
    lead_case_run: RunView, verdict: Verdict, word: str
) -> None:
    run = changed(lead_case_run, 4, verdict=verdict)
    assert f"graph capture makes the NaN. **{word}**" in render(run)


def test_a_sweep_that_goes_on_is_not_called_ended(lead_case_run: RunView) -> None:
    run = replace(lead_case_run, running=(lead_case_run.outcomes[0].attempt,))
    assert "The sweep is not over" in render(run)
    assert "The sweep ended" not in render(run)


def test_the_json_says_how_each_blame_was_shown(lead_case_run: RunView) -> None:
    document = findings_json(lead_case_run)
    blame, causes = document["blame"], document["causes"]
    assert isinstance(blame, list)
    assert isinstance(causes, list)
    words = ["proven", "proven", "supported", "refuted"]
    assert [row["status"] for row in blame] == words
    assert causes[0]["blame"] == [blame[0], blame[1], blame[3]]
    assert blame[0]["values"] == {"kv-cache-dtype": "fp8_e4m3"}
    assert blame[0]["pairs"] == [
        {
            "failing": 7,
            "serving": 6,
            "changes": [{"name": "kv-cache-dtype", "failing": "fp8_e4m3", "serving": "bf16"}],
        }
    ]


def test_the_same_cell_with_another_verdict_is_a_change_between_runs(
    lead_case_run: RunView,
) -> None:
    later = changed(lead_case_run, 6, verdict=Verdict.HANG, cause="silent-decode")
    result = compare_runs(lead_case_run, later)
    assert [c.after.attempt.number for c in result.changed] == [6]
    assert [d.what for d in result.changed[0].differences] == ["verdict", "cause"]


def test_small_differences_of_speed_are_noise(lead_case_run: RunView) -> None:
    best = best_serving(lead_case_run)
    assert best is not None
    assert best.proof is not None

    def faster(share: float) -> Outcome:
        assert best is not None
        assert best.proof is not None
        return replace(best, proof=replace(best.proof, tokens_per_s=472.3 * share))

    assert compare_outcomes(best, faster(1.05)) == ()
    (difference,) = compare_outcomes(best, faster(1.5))
    assert difference.after.endswith("(+50%)")


def test_the_picture_marks_a_server_with_suspect_answers(cpu_run: RunView) -> None:
    assert "serves ?</text>" not in page(cpu_run)
    drawn = page(doubted(cpu_run, 2))
    assert drawn.count("serves ?</text>") == 1
    assert "?: most answers suspect." in drawn


def test_the_picture_holds_every_attempt_once(run: RunView) -> None:
    grid = fold(run)
    if grid is None:
        assert len({o.attempt.cell.key for o in run.outcomes}) == 1
        return
    drawn = sorted(o.attempt.number for found in grid.squares.values() for o in found)
    assert drawn == [o.attempt.number for o in run.outcomes]


def test_negative_values_repeated_and_listed_flags_are_read_as_written() -> None:
    argv = ("-m", "x", "--a=-0.5", "--b", "1", "2", "--c", "--d", "1", "--d", "2")
    assert flags_of(argv) == {"a": "-0.5", "b": "1 2", "c": "", "d": "2"}


@pytest.mark.parametrize(
    ("remedy", "options"),
    [
        ({"kv-cache-dtype": "bf16"}, "--set kv-cache-dtype=bf16"),
        ({"disable-cuda-graph": True}, "--set disable-cuda-graph=true"),
        ({"nsa-decode-backend": None}, "--unset nsa-decode-backend"),
        ({"env.X": "a b"}, "--set 'env.X=a b'"),
    ],
)
def test_a_remedy_is_written_as_options_to_paste(remedy: dict[str, Value], options: str) -> None:
    assert remedy_options(remedy) == options


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("tp", "8", "--tp 8"),
        ("eager", "", "--eager"),
        ("eager", None, "no --eager"),
        ("env.OMP", "2", "OMP=2"),
        ("build", "tf52", "build tf52"),
    ],
)
def test_a_setting_is_written_as_it_stands_on_a_command_line(
    name: str, value: str | None, text: str
) -> None:
    assert setting_text(name, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (9.71, "9.7 s"), (59.6, "1 min"), (61, "1 min 01 s"), (7560, "2 h 06 min")],
)
def test_durations_read_like_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_question_that_failed_is_not_taken_for_a_machine_without_gpus() -> None:
    assert gpu_words({"gpus": None, "errors": {"gpus": "no answer in 20 s"}}) == ()
    assert gpu_words({"gpus": [], "errors": {}}) == ("No GPU: everything ran on the CPU",)
    assert gpu_words({}) == ()


def test_cells_left_out_for_one_reason_are_told_together(tmp_path: Path) -> None:
    class Stored:
        folder = tmp_path
        facts: ClassVar = {
            "equal": [
                {"because": "the same launch as attempt 3", "cell": {"a": 1}},
                {"because": "the same launch as attempt 3", "cell": {"a": 2}, "count": 4},
                {"because": "the same launch as attempt 5", "cell": {"a": 3}},
            ]
        }

        def history(self) -> tuple[Outcome, ...]:
            return ()

        def open_attempts(self) -> tuple[Attempt, ...]:
            return ()

    left_out = view_of(Stored()).left_out
    assert [(e.count, e.what) for e in left_out] == [(5, ""), (1, "a=3")]


def test_a_failure_that_something_else_makes_does_not_refute_a_hypothesis(
    lead_case_run: RunView,
) -> None:
    document = findings_json(lead_case_run)["hypotheses"]
    assert isinstance(document, list)
    graphs, layout = document
    assert (graphs["state"], graphs["against"], graphs["pair"]) == ("refuted", [4], [4, 2])
    assert (layout["state"], layout["by"], layout["pair"]) == ("supported", [6], [6, 7])
    assert layout["elsewhere"] == [{"attempt": 5, "values": {"fp4-gemm-backend": None}}]


def test_an_attempt_in_which_the_flag_selects_nothing_decides_no_hypothesis(
    lead_case_run: RunView,
) -> None:
    acted = {4: Cell({"disable-cuda-graph": NO_EFFECT})}
    text = render(replace(lead_case_run, acted=acted))
    assert "graph capture makes the NaN. **Open**" in text


def test_every_table_of_the_page_scrolls_in_itself(lead_case_run: RunView) -> None:
    text = page(lead_case_run)
    assert text.count("<table") == text.count('<div class="wide"><table')
    for section in ("Memory", "Minimal failing combinations"):
        assert f"<h2>{section}</h2>" in text


def test_a_flag_that_acts_alike_with_and_without_the_value_decides_no_hypothesis(
    lead_case_run: RunView,
) -> None:
    alike = Cell({"disable-cuda-graph": "any other"})
    run = replace(lead_case_run, acted=dict.fromkeys(range(1, 8), alike))
    assert (
        "graph capture makes the NaN. **Open**: with and without it SGLang makes the same of the "
        "launches" in render(run)
    )


def test_what_serves_with_and_without_it_decides_no_hypothesis(lead_case_run: RunView) -> None:
    # 4 has graphs off, 2 has them on and fails: made to serve, both say nothing about graphs.
    run = changed(lead_case_run, 4, verdict=Verdict.SERVING)
    run = changed(run, 2, verdict=Verdict.SERVING)
    assert (
        "graph capture makes the NaN. **Open**: 4 came to serving as predicted, but 2 did so "
        "without it, the rest being equal" in render(run)
    )
    document = findings_json(run)["hypotheses"]
    assert isinstance(document, list)
    assert document[0]["alike"] == [[4, 2]]


def test_a_failure_at_a_question_that_the_twin_was_not_asked_is_no_flake(
    lead_case_run: RunView,
) -> None:
    run = again(lead_case_run, 6, Verdict.DEVICE_ASSERT)
    last = run.outcomes[-1]
    asked = Proof(
        steps=(
            ProofStep(name="sampled", state=StepState.OK),
            ProofStep(name="requests", state=StepState.FAILED),
        )
    )
    run = replace(run, outcomes=(*run.outcomes[:-1], replace(last, proof=asked)))
    assert "Not reliable" not in render(run)
    assert "8 failed at the probe `requests`, which 6, the very same launch, was" in render(run)
    known = ProofStep(name="sampled", state=StepState.FAILED)
    run = replace(run, outcomes=(*run.outcomes[:-1], replace(last, proof=Proof(steps=(known,)))))
    assert "served in 6 and failed in 8" in said(run)


def test_a_value_that_was_launched_without_evidence_is_not_called_not_launched(
    lead_case_run: RunView,
) -> None:
    run = changed(lead_case_run, 4, verdict=Verdict.KILLED)
    assert "|   | set | launched in 4, without evidence |" in render(run)


def test_several_models_are_told_apart_in_the_bottom_line(cpu_run: RunView) -> None:
    text = render(cpu_run)
    assert "**Serves.** Attempt 2 (models/gpt2-ok): " in text
    assert "- `models/gpt2-ok`: 2 of 4 attempts served, first choice 2" in text
    assert "- `models/gpt2-large`: its one attempt failed: oom-kv-pool" in text
    killed = changed(cpu_run, 2, verdict=Verdict.KILLED)
    assert (
        "- `models/gpt2-ok`: 1 of 3 attempts served, first choice 4; without evidence: 2"
        in render(killed)
    )


def test_the_bottom_line_names_the_remedy_and_clears_what_was_suspected(
    lead_case_run: RunView,
) -> None:
    text = render(lead_case_run).partition("## Hardware")[0]
    assert "- Remedy: Launch it with kv-cache-dtype bf16, or with both nsa backends trtllm" in text
    assert text.count("Remedy:") == 1
    assert (
        "- Not to blame by itself, alike in 7 and 6: `nsa-decode-backend` not passed, "
        "`disable-cuda-graph` not passed" in text
    )
    inert = {6: Cell({"nsa-decode-backend": NO_EFFECT})}
    assert "- Inert: `nsa-decode-backend` selects nothing in 6" in render(
        replace(lead_case_run, acted=inert)
    )


def test_figures_of_a_card_that_others_used_are_said_to_be_so(lead_case_run: RunView) -> None:
    assert "shared a card" not in render(lead_case_run)
    outcomes = tuple(
        replace(o, end=replace(o.end, sharing=(5,))) if o.attempt.number == 6 else o
        for o in lead_case_run.outcomes
    )
    assert "6 shared a card with other attempts" in render(
        replace(lead_case_run, outcomes=outcomes)
    )
