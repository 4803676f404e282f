from __future__ import annotations

from dataclasses import replace

from probe.waves import TEXT, answered
from sglsweep.attempt import Rung
from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.ladder import Climb
from sglsweep.probe.target import Target, Traffic
from sglsweep.verdict import Verdict

TARGET = Target(context=8192, kv_tokens=100_000, max_running=256, vocab=32_000)


def climbed(ladder: Climb, speeds: dict[int, float]) -> list[int]:
    while (step := ladder.next()) is not None:
        ladder.judge(step, answered(step, tokens_per_s=speeds.get(step.concurrency, 1000.0)))
    return [r.concurrency for r in ladder.rungs]


def test_the_climb_begins_with_a_warm_up_that_is_not_counted() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1,)))
    first = ladder.next()
    assert first is not None
    assert first.name == "ladder-warm-up"
    assert ladder.judge(first, answered(first, tokens_per_s=1.0)) is None
    assert ladder.rungs == []


def test_it_ends_where_more_at_once_brings_nothing_more() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1, 8, 32, 64, 128)))
    speeds = {1: 100.0, 8: 400.0, 32: 410.0, 64: 405.0, 128: 9999.0}
    assert climbed(ladder, speeds) == [1, 8, 32, 64]
    assert ladder.ended_because == "no more than 410 tokens/s"


def test_one_weak_rung_does_not_end_it() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1, 8, 32, 64)))
    assert climbed(ladder, {1: 100.0, 8: 90.0, 32: 400.0, 64: 800.0}) == [1, 8, 32, 64]
    assert ladder.ended_because == "every rung was climbed"


def test_the_best_rung_is_the_fastest_that_meets_the_objective() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1, 8)))
    slow = Rung(concurrency=1, requests=8, tokens_per_s=100.0, numbers={}, meets_slo=True)
    late = replace(slow, concurrency=8, tokens_per_s=400.0, meets_slo=False)
    ladder.rungs = [slow, late]
    assert ladder.ladder.best is slow


def test_an_objective_is_judged_by_its_percentile() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(8,), slo={"ttft_p99": 0.2, "tpot_p50": 0.001}))
    climbed(ladder, {8: 1000.0})
    assert ladder.rungs[0].numbers["ttft_p99_s"] == 0.1
    assert ladder.rungs[0].meets_slo is False


def test_a_server_that_dies_at_a_rung_serves_up_to_the_one_before() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1, 8, 32)))
    while (step := ladder.next()) is not None:
        asked = answered(step, tokens_per_s=1000.0)
        if step.concurrency == 32:
            broken = [HttpResponse(id=r.id, error="reset") for r in step.requests]
            asked = replace(asked, responses=broken, server_alive=False)
        ladder.judge(step, asked)
    assert [r.concurrency for r in ladder.rungs] == [1, 8]
    assert ladder.is_broken
    assert "64 requests of 1,024 + 512, 32 at once" in ladder.ended_because


def test_answers_that_turn_into_one_letter_under_load_are_garbage() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(8,), output=64))
    while (step := ladder.next()) is not None:
        text = "!" if step.concurrency == 1 else "".join("!" * 60)
        asked = answered(step, tokens_per_s=1000.0, text=TEXT if step.concurrency == 1 else text)
        body = asked.responses[0].body.replace("! ", "!")
        same = [replace(r, body=body) for r in asked.responses]
        ladder.judge(step, replace(asked, responses=same))
    assert ladder.broke is not None
    assert ladder.broke.verdict is Verdict.GARBAGE_OUTPUT
    assert "16 of 16 answers: only '!' in 64 tokens" in ladder.broke.detail


def test_too_many_errors_end_the_climb() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(8, 32)))
    full = '{"object": "error", "message": "The request queue is full.", "code": 503}'
    while (step := ladder.next()) is not None:
        asked = answered(step, tokens_per_s=1000.0)
        if step.concurrency == 8:
            refused = HttpResponse(id="x", status=503, body=full)
            asked = replace(asked, responses=[refused, refused, *asked.responses[2:]])
        ladder.judge(step, asked)
    assert ladder.ended_because == "2 of 16 requests failed"
    assert ladder.rungs[0].errors == 2


def test_an_answer_too_long_to_be_kept_whole_still_counts_its_tokens() -> None:
    ladder = Climb(TARGET, Traffic(rungs=(1,), output=512))
    while (step := ladder.next()) is not None:
        asked = answered(step, tokens_per_s=256.0)
        cut = [replace(r, body=r.body[:300], is_truncated=True) for r in asked.responses]
        ladder.judge(step, replace(asked, responses=cut))
    assert ladder.rungs[0].tokens_per_s == 256.0


def test_requests_are_made_to_fit_the_server() -> None:
    small = Target(context=1024, kv_tokens=100_000, max_running=12, vocab=32_000)
    step = Climb(small, Traffic(input=1024, output=512)).next()
    assert step is not None
    body = step.requests[0].body
    assert isinstance(body, dict)
    assert len(body["prompt"]) + body["max_tokens"] <= 1016
    assert climbed(Climb(small, Traffic(rungs=(1, 8, 32, 64))), {}) == [1, 8, 12]


def test_a_server_without_tokenizer_is_asked_in_ids() -> None:
    step = Climb(replace(TARGET, has_tokenizer=False), Traffic()).next()
    assert step is not None
    assert step.requests[0].path == "/generate"
