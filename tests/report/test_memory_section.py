"""Predicted memory beside measured: from which attempt, and where nothing can be foretold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from report.test_blame import launched, run_of
from sglsweep.plan.memory import Memory
from sglsweep.report import findings_json
from sglsweep.report.markdown import to_markdown
from sglsweep.report.memory import MemoryRow, headroom, memory_rows
from sglsweep.report.sections.memory import memory
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome

FIGURES = {"avail_before_weights_gb": 100.0, "avail_after_weights_gb": 20.0}


def tried(number: int, flags: str, fraction: float, **metrics: float) -> Outcome:
    """Return a serving attempt with memory figures."""
    outcome = launched(number, f"--mem-fraction-static {fraction} {flags}", Verdict.SERVING)
    effective = {"mem-fraction-static": fraction}
    return replace(
        outcome,
        diagnosis=replace(outcome.diagnosis, metrics={**FIGURES, **metrics}, effective=effective),
    )


FIRST = tried(1, "", 0.85, kv_gb=5.0, kv_tokens=50_000, avail_after_graphs_gb=8.0)
SECOND = tried(2, "", 0.88, kv_gb=8.1, kv_tokens=80_900, avail_after_graphs_gb=4.9)


def rows(*outcomes: Outcome) -> tuple[MemoryRow, ...]:
    return memory_rows(outcomes)


def test_the_second_attempt_is_foretold_by_the_first() -> None:
    first, second = rows(FIRST, SECOND)
    assert first.predicted is None
    assert second.predicted is not None
    assert (second.predicted.source, second.predicted.tokens) == (1, 80_000)
    assert second.predicted.left_gb == 5.0
    assert second.own_pool_gb == 8.0


def test_the_table_shows_both_and_the_margin() -> None:
    text = to_markdown(memory(run_of(FIRST, SECOND)))
    assert "| 80,000 / 80,900 |" in text
    assert "| 5.00 GB / 4.90 GB |" in text
    assert "f_max: leaves 2.5 GB after graph capture" in text


def test_figures_do_not_carry_over_to_another_kv_dtype() -> None:
    _, other = rows(FIRST, tried(2, "--kv-cache-dtype fp8_e4m3", 0.85))
    assert other.predicted is None


def test_graphs_that_may_be_larger_leave_the_rest_unforetold() -> None:
    _, other = rows(FIRST, tried(2, "--disable-cuda-graph", 0.85))
    assert other.predicted is not None
    assert (other.predicted.tokens, other.predicted.left_gb) == (50_000, None)


def test_an_attempt_without_figures_has_no_row() -> None:
    assert rows(launched(1, "--mem-fraction-static 0.9", Verdict.OOM)) == ()
    assert memory(run_of(launched(1, "", Verdict.OOM))) == []


def test_an_attempt_that_ran_out_in_capture_bounds_the_fraction_from_above() -> None:
    bad = tried(1, "", 0.95, kv_gb=15.0, kv_tokens=150_000)
    bad = replace(
        bad,
        diagnosis=replace(bad.diagnosis, verdict=Verdict.OOM, cause="oom-graph-capture"),
    )
    assert "| below 0.95 |" in to_markdown(memory(run_of(bad)))


def test_many_attempts_are_cut_to_the_last_and_said_to_be() -> None:
    many = [tried(n, "", 0.85, kv_gb=5.0, kv_tokens=50_000) for n in range(1, 20)]
    text = to_markdown(memory(run_of(*many)))
    assert "3 earlier attempts not shown" in text
    assert "\n| 19 |" in text


def test_the_json_has_every_figure() -> None:
    document = findings_json(run_of(FIRST, SECOND))["memory"]
    assert isinstance(document, dict)
    assert document["margin_gb"] == 2.5
    second = document["attempts"][1]
    assert second["predicted"] == {"from": 1, "pool_gb": 8.0, "tokens": 80_000, "left_gb": 5.0}
    assert second["tokens"] == {"measured": 80_900}
    assert second["f_min"] == 0.8


def test_a_row_is_made_of_the_memory_that_the_log_tells() -> None:
    assert rows(FIRST)[0].memory == Memory(
        fraction=0.85,
        before_weights_gb=100.0,
        after_weights_gb=20.0,
        after_graphs_gb=8.0,
        pool_gb=5.0,
        pool_tokens=50_000,
    )


def test_a_larger_fraction_that_arithmetic_allows_is_told() -> None:
    assert headroom([FIRST], FIRST) == (0.905, 105_000)


def test_nothing_is_told_where_the_fraction_is_as_large_as_it_can_be() -> None:
    full = tried(1, "", 0.9, kv_gb=5.0, kv_tokens=50_000, avail_after_graphs_gb=3.0)
    assert headroom([full], full) is None
    bare = tried(1, "", 0.9)
    assert headroom([bare], bare) is None


def test_a_fraction_that_ran_out_of_memory_is_not_offered() -> None:
    bad = tried(2, "", 0.9)
    bad = replace(bad, diagnosis=replace(bad.diagnosis, verdict=Verdict.OOM, cause="oom-runtime"))
    assert headroom([FIRST, bad], FIRST) is None


def test_a_card_that_others_held_foretells_nothing() -> None:
    held = tried(3, "", 0.9, avail_before_weights_gb=40.0)
    assert rows(FIRST, held)[1].predicted is None


def test_what_is_left_beside_others_on_the_card_is_not_foretold() -> None:
    beside = replace(SECOND, end=replace(SECOND.end, sharing=(1,)))
    predicted = rows(FIRST, beside)[1].predicted
    assert predicted is not None
    assert predicted.tokens is not None
    assert predicted.left_gb is None
