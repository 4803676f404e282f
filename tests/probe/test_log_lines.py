"""What SGLang's own lines say of a load."""

from __future__ import annotations

from pathlib import Path

from sglsweep.probe.log_lines import idle_kv_share, load_numbers

CASES = Path(__file__).parent / "log_lines"
NEW, OLD, RANKS, HYBRID = (
    (CASES / f"{name}.log").read_bytes() for name in ("new", "old", "ranks", "hybrid")
)


def test_the_highest_figures_of_the_decode_lines_are_taken() -> None:
    assert load_numbers(NEW) == {
        "log_tokens_per_s": 647.7,
        "log_running": 4.0,
        "log_queued": 2.0,
        "log_kv_share": 0.04,
    }
    assert load_numbers(OLD)["log_running"] == 7.0


def test_data_parallel_ranks_are_added_up_and_the_fullest_pool_counts() -> None:
    assert load_numbers(RANKS) == {
        "log_tokens_per_s": 220.0,
        "log_running": 9.0,
        "log_queued": 1.0,
        "log_kv_share": 0.3,
    }


def test_of_several_pools_the_one_of_full_attention_counts() -> None:
    assert load_numbers(HYBRID)["log_kv_share"] == 0.05


def test_a_log_without_such_lines_says_nothing() -> None:
    assert load_numbers(b"GET /health 200\n\xff\xfe") == {}
    assert idle_kv_share(b"") is None


def test_the_idle_share_is_that_of_the_first_prefill_on_an_idle_server() -> None:
    assert idle_kv_share(NEW) == 0.01
