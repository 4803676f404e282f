from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sglsweep.attempt import Ladder, Rung, Soak
from sglsweep.report.best import best_serving
from sglsweep.report.findings import render
from sglsweep.report.record import findings_json
from sglsweep.report.sections.load import pareto
from sglsweep.report.view import StoredRun, view_of

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome


def rung(concurrency: int, speed: float, each_ms: float, *, meets: bool | None = True) -> Rung:
    numbers = {
        "ttft_p50_s": 0.042,
        "ttft_p99_s": 0.0781,
        "tpot_p50_s": each_ms / 1000,
        "tpot_p99_s": 2 * each_ms / 1000,
    }
    return Rung(
        concurrency=concurrency,
        requests=2 * concurrency,
        tokens_per_s=speed,
        numbers=numbers,
        meets_slo=meets,
    )


LADDER = Ladder(
    rungs=(rung(1, 100.0, 5.0), rung(8, 400.0, 9.0), rung(32, 410.0, 40.0, meets=False)),
    input=256,
    output=128,
    slo={"tpot_p50": 0.02},
    ended_because="every rung was climbed",
)


class Demo(StoredRun, Protocol):
    """A stored run whose outcomes a test may change."""

    outcomes: list[Outcome]


def findings(demo: Demo, ladder: Ladder | None, soak: Soak | None = None) -> str:
    demo.outcomes[1] = replace(demo.outcomes[1], ladder=ladder, soak=soak)
    return render(view_of(demo))


def test_each_rung_of_a_ladder_has_a_row_and_its_end_is_told(demo: Demo) -> None:
    text = findings(demo, LADDER)
    assert "## Under load" in text
    assert "| 2 | 8 | **400 tok/s** | 42 / 78 ms | 9.0 / 18 ms | met |" in text
    assert "Requests of 256 + 128 random tokens" in text
    assert "2: saturated from 8 at once on; objectives met up to 8 at once (400 tok/s)" in text


def test_the_first_line_tells_the_best_rung_not_the_short_load_of_the_proof(demo: Demo) -> None:
    text = findings(demo, LADDER)
    assert "400 tok/s at" in text.split("```", 1)[0]


def test_a_run_without_a_ladder_has_no_such_section(demo: Demo) -> None:
    assert "Under load" not in findings(demo, None)


def test_a_soak_says_how_long_it_was_and_what_it_saw(demo: Demo) -> None:
    soak = Soak(
        asked_s=600.0,
        lasted_s=601.0,
        concurrency=4,
        requests=1234,
        first_tokens_per_s=250.0,
        last_tokens_per_s=248.0,
    )
    said = "2 soaked for 10 min 01 s at 4 at once: 1,234 requests, 0 not answered, 250 tok/s in"
    assert said in findings(demo, None, soak)


def test_a_rung_that_is_beaten_in_both_is_not_on_the_front() -> None:
    slow, fast, worse = rung(1, 100.0, 5.0), rung(8, 400.0, 9.0), rung(32, 390.0, 40.0)
    assert pareto([slow, fast, worse]) == [slow, fast]


def test_the_record_for_machines_holds_the_ladder(demo: Demo) -> None:
    demo.outcomes[1] = replace(demo.outcomes[1], ladder=LADDER)
    attempts = findings_json(view_of(demo))["attempts"]
    assert isinstance(attempts, list)
    assert attempts[1]["ladder"]["rungs"][1]["tokens_per_s"] == 400.0
    assert attempts[0]["ladder"] is None


def test_a_winner_that_was_slower_when_repeated_is_not_recommended(demo: Demo) -> None:
    """Attempts 2 and 4 serve; 2 was faster once, and slower on the average of two launches."""
    demo.facts = {**demo.facts, "goal": ["fastest"]}  # type: ignore[misc]
    second, fourth = demo.outcomes[1], demo.outcomes[3]
    again = replace(second, attempt=replace(second.attempt, number=9, relaunch_of=2))
    one = Ladder(rungs=(rung(8, 400.0, 9.0),))
    demo.outcomes[1] = replace(second, ladder=one)
    demo.outcomes[3] = replace(fourth, ladder=Ladder(rungs=(rung(8, 380.0, 9.0),)))
    demo.outcomes.append(replace(again, ladder=Ladder(rungs=(rung(8, 300.0, 9.0),))))
    best = best_serving(view_of(demo))
    assert best is not None
    assert best.attempt.number == 4
