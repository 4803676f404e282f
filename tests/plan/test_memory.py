"""Memory fractions: figures of real logs, and steps after a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sglsweep.attempt import Attempt, Diagnosis, End, EndKind, Outcome
from sglsweep.matrix import Cell
from sglsweep.plan.memory import (
    MARGIN_GB,
    Memory,
    Side,
    binding_ranks,
    memory_of,
    next_fraction,
    side_of,
)
from sglsweep.verdict import Phase, Verdict

# Kimi K2 NVFP4 on 8x RTX PRO 6000: the pool was 5.90 GB in the log.
K2 = Memory(fraction=0.848, before_weights_gb=94.08, after_weights_gb=20.21)


def oom(fraction: float, cause: str, **metrics: float) -> Outcome:
    return outcome(fraction, Verdict.OOM, cause, **metrics)


def outcome(fraction: float | None, verdict: Verdict, cause: str, **metrics: float) -> Outcome:
    attempt = Attempt(
        number=1,
        cell=Cell({"mem-fraction-static": fraction}),
        build="stock",
        model="m",
        python="python3",
        argv=(),
        env={},
        launch_key="k",
        host="h",
        port=30000,
        why="",
        started_at="",
        keeper_dir="d",
    )
    return Outcome(
        attempt=attempt,
        end=End(kind=EndKind.FATAL_LINE),
        diagnosis=Diagnosis(
            verdict=verdict, phase=Phase.GRAPH_CAPTURE, cause=cause, metrics=metrics
        ),
    )


NUMBERS = {"avail_before_weights_gb": 94.0, "avail_after_weights_gb": 20.0}


def test_the_pool_of_a_real_log_is_reproduced() -> None:
    assert K2.pool_gb_at(0.848) == pytest.approx(5.90, abs=0.02)


def test_the_smallest_fraction_of_a_real_log_is_reproduced() -> None:
    k25 = Memory(fraction=0.771, before_weights_gb=94.08, after_weights_gb=21.82)
    assert k25.smallest == pytest.approx(0.768, abs=0.0005)
    assert k25.pool_gb_at(0.76) == 0.0


def test_tokens_scale_with_the_pool() -> None:
    memory = Memory(
        fraction=0.85,
        before_weights_gb=100.0,
        after_weights_gb=20.0,
        pool_gb=5.0,
        pool_tokens=50_000,
    )
    assert memory.tokens_at(0.85) == pytest.approx(50_000, abs=1)
    assert memory.tokens_at(0.90) == pytest.approx(100_000, abs=1)
    assert memory.fraction_for(100_000) == pytest.approx(0.90)


def test_the_largest_fraction_leaves_the_margin() -> None:
    memory = Memory(fraction=0.85, before_weights_gb=100.0, after_graphs_gb=7.5)
    assert memory.largest() == pytest.approx(0.85 + (7.5 - MARGIN_GB) / 100)


def test_numbers_the_log_does_not_have_make_no_estimate() -> None:
    bare = Memory(fraction=0.85)
    assert bare.smallest is bare.largest() is bare.tokens_at(0.9) is bare.fraction_for(1) is None


def test_what_sglang_made_of_the_fraction_counts() -> None:
    made = outcome(None, Verdict.OOM, "oom-runtime")
    assert memory_of(made) is None


def test_too_high_steps_down_by_the_margin() -> None:
    step = next_fraction([oom(0.95, "oom-graph-capture", **NUMBERS)])
    assert step == pytest.approx(0.95 - MARGIN_GB / 94, abs=0.001)


def test_too_low_steps_up_beyond_the_empty_pool() -> None:
    step = next_fraction([oom(0.70, "oom-kv-pool", **NUMBERS)], most=0.93)
    assert step is not None
    assert 1 - 20 / 94 < step <= 0.93


def test_too_low_steps_up_to_where_the_wanted_context_fits() -> None:
    seen = oom(0.80, "oom-kv-pool", **NUMBERS, kv_gb=1.2, kv_tokens=10_000)
    step = next_fraction([seen], tokens=60_000)
    assert step is not None
    memory = memory_of(seen)
    assert memory is not None
    assert 60_000 <= (memory.tokens_at(step) or 0) < 70_000


def test_a_pool_below_what_is_needed_steps_up_to_where_it_fits() -> None:
    small = oom(0.85, "kv-pool-below-need", **NUMBERS, kv_gb=5.9, kv_tokens=49_000)
    step = next_fraction([small], tokens=80_000)
    memory = memory_of(small)
    assert step is not None
    assert memory is not None
    assert 80_000 <= (memory.tokens_at(step) or 0) < 90_000


def test_a_second_failure_the_other_way_is_bracketed() -> None:
    outcomes = [oom(0.95, "oom-graph-capture"), oom(0.80, "oom-kv-pool")]
    step = next_fraction(outcomes)
    assert step is not None
    assert 0.80 < step < 0.95


def test_steps_never_go_below_what_leaves_no_pool() -> None:
    step = next_fraction([oom(0.80, "oom-runtime", **NUMBERS)])
    assert step is not None
    assert 1 - 20 / 94 < step < 0.80


def test_no_room_between_too_low_and_too_high_ends_the_search() -> None:
    outcomes = [oom(0.801, "oom-kv-pool"), oom(0.809, "oom-graph-capture")]
    assert next_fraction(outcomes) is None


def test_without_numbers_a_plain_step_is_taken() -> None:
    assert next_fraction([oom(0.90, "oom-runtime")]) == pytest.approx(0.86)


@pytest.mark.parametrize("cause", ["oom-host", "oom-weights"])
def test_memory_that_the_fraction_cannot_help_is_left_alone(cause: str) -> None:
    assert next_fraction([oom(0.9, cause, **NUMBERS)]) is None


def test_another_failure_is_no_question_of_memory() -> None:
    assert next_fraction([outcome(0.9, Verdict.NAN_IN_PROBS, "nan-in-probs")]) is None


# -- what other ranks, other names and other fractions change -----------------------------------


SEEN = Memory(
    fraction=0.85,
    before_weights_gb=100.0,
    after_weights_gb=20.0,
    after_graphs_gb=8.0,
    pool_gb=5.0,
    pool_tokens=50_000,
)


def test_what_is_left_shrinks_by_what_the_pool_grows() -> None:
    assert SEEN.left_gb_at(0.88) == pytest.approx(5.0)
    assert SEEN.left_gb_at(0.70) == pytest.approx(13.0)


def test_a_limit_of_tokens_bounds_the_pool_at_every_fraction() -> None:
    memory = replace(SEEN, most_tokens=60_000)
    assert not memory.is_capped
    assert memory.tokens_at(0.95) == 60_000
    assert memory.tokens_at(0.82) == 20_000


@pytest.mark.parametrize("name", ["mem-fraction-static", "mem_fraction_static"])
def test_what_sglang_resolved_counts_however_the_log_spells_it(name: str) -> None:
    seen = outcome(0.9, Verdict.OOM, "oom-runtime")
    seen = replace(seen, diagnosis=replace(seen.diagnosis, effective={name: 0.848}))
    memory = memory_of(seen)
    assert memory is not None
    assert memory.fraction == 0.848


def test_the_rank_that_sets_each_limit_is_named_where_ranks_differ() -> None:
    metrics = {
        "TP0/avail_after_weights_gb": 20.0,
        "TP1/avail_after_weights_gb": 19.0,
        "PP0 TP0/kv_gb": 4.9,
        "PP1 TP0/kv_gb": 5.3,
        "TP0/avail_after_graphs_gb": 6.60,
        "TP1/avail_after_graphs_gb": 6.62,
    }
    found = binding_ranks(outcome(0.9, Verdict.OOM, "oom-runtime", **metrics))
    assert found == {"weights": "TP1", "pool": "PP1 TP0"}


def test_torch_out_of_memory_in_the_pool_steps_down_and_not_up() -> None:
    seen = oom(0.95, "oom-kv-pool", **NUMBERS)
    evidence = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.94 GiB."
    seen = replace(seen, diagnosis=replace(seen.diagnosis, evidence=evidence))
    assert side_of(seen) is Side.TOO_HIGH
    step = next_fraction([seen])
    assert step is not None
    assert step < 0.95


def test_a_limit_of_tokens_that_is_no_multiple_of_a_page_caps_all_the_same() -> None:
    assert replace(SEEN, most_tokens=50_040).is_capped
    assert not replace(SEEN, most_tokens=49_990).is_capped
