from __future__ import annotations

import json

from sglsweep.probe.proof import ProbeSettings, from_launch
from sglsweep.probe.target import Target, with_server_words


def test_the_log_and_the_models_config_say_most_of_it() -> None:
    target = from_launch(
        {
            "context_length": 65536,
            "chunked_prefill_size": 8192,
            "page_size": 64,
            "dp_size": 2,
            "disable_radix_cache": True,
            "watchdog_timeout": 600,
            "tool_call_parser": "glm47",
        },
        {"vocab_size": 151_552, "eos_token_id": [151_329, 151_336], "pad_token_id": 151_329},
    )
    assert (target.context, target.chunk, target.page_size, target.dp_size) == (65536, 8192, 64, 2)
    assert not target.reuses_prefixes
    assert target.watchdog_s == 600
    assert target.special_ids == {151_329, 151_336}
    assert (target.vocab, target.pad_id, target.tool_parser) == (151_552, 151_329, "glm47")


def test_a_multimodal_models_text_part_is_looked_into() -> None:
    target = from_launch(
        {}, {"text_config": {"vocab_size": 1000, "max_position_embeddings": 4096}}
    )
    assert (target.vocab, target.context) == (1000, 4096)


def test_dummy_weights_are_known_from_the_flags_or_the_user() -> None:
    assert from_launch({"load_format": "dummy"}).has_random_weights
    assert from_launch({}, settings=ProbeSettings(has_random_weights=True)).has_random_weights
    assert not from_launch({"load_format": "auto"}).has_random_weights


def test_a_servers_own_words_come_before_the_logs() -> None:
    models = {"data": [{"max_model_len": 4096}]}
    info = {
        "max_total_num_tokens": 50_000,
        "version": "0.5.9",
        "chunked_prefill_size": 2048,
        "max_running_requests": None,
        "internal_states": [{"effective_max_running_requests_per_dp": 48}],
    }
    target = with_server_words(Target(context=8192), [json.dumps(models), json.dumps(info)])
    assert (target.context, target.kv_tokens, target.chunk) == (4096, 50_000, 2048)
    assert (target.max_running, target.version) == (48, "0.5.9")


def test_an_old_servers_internal_state_is_one_object() -> None:
    # 0.4.6 sends an object where 0.5.4 and later send a list, one for each DP rank.
    info = {"max_total_num_tokens": 5000, "internal_states": {"last_gen_throughput": 1.5}}
    target = with_server_words(Target(), [json.dumps(info)])
    assert target.kv_tokens == 5000
    assert target.words["last_gen_throughput"] == 1.5


def test_an_answer_that_was_cut_off_still_shows_its_numbers() -> None:
    info = json.dumps({"chunked_prefill_size": 512, "max_total_num_tokens": 8192, "z": "x" * 99})
    target = with_server_words(Target(), [info[:-50]])
    assert (target.kv_tokens, target.chunk) == (8192, 512)


def test_no_secret_is_kept_of_what_a_server_says() -> None:
    info = {
        "max_total_num_tokens": 1,
        "api_key": "sk-1",
        "admin_api_key": "sk-2",
        "hf_token": "sk-3",
        "launch_command": "--api-key sk-1",
        "max_prefill_tokens": 7,
    }
    words = with_server_words(Target(), [json.dumps(info)]).words
    assert "sk-" not in json.dumps(dict(words))
    assert words["max_prefill_tokens"] == 7
