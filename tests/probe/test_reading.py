from __future__ import annotations

import json

import pytest

from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.latency import quantile, wave_numbers
from sglsweep.probe.reading import Generation, generation
from sglsweep.probe.sanity import degenerate, language_doubt


def read(body: object) -> Generation:
    text = body if isinstance(body, str) else json.dumps(body)
    answer = generation(HttpResponse(id="x", status=200, body=text))
    assert answer is not None
    return answer


def test_ids_stand_beside_the_logprobs_where_a_version_sends_no_others() -> None:
    meta = {"output_token_logprobs": [[-1.5, 311, None], [-0.5, 207, None]]}
    assert read({"text": "mp", "meta_info": meta}).ids == (311, 207)


def test_nan_is_read_whether_it_is_written_or_left_out() -> None:
    written = '{"text": "", "meta_info": {"output_token_logprobs": [[NaN, 0, null]]}}'
    left_out = '{"text": "", "meta_info": {"output_token_logprobs": [[null, 0, null]]}}'
    infinite = '{"text": "", "meta_info": {"output_token_logprobs": [[-Infinity, 0, null]]}}'
    for body in (written, left_out, infinite):
        assert read(body).logprobs == (None,)


def test_the_first_token_of_a_prompt_has_no_logprob_and_that_is_fine() -> None:
    meta = {"input_token_logprobs": [[None, 5, None], [-6.3, 6, None]]}
    assert read({"text": "", "meta_info": meta}).input_logprobs == (-6.3,)


def test_a_stream_is_as_good_as_its_last_whole_event() -> None:
    events = [
        {"text": "a", "output_ids": [1], "meta_info": {"completion_tokens": 1}},
        {"text": "ab", "output_ids": [1, 2], "meta_info": {"completion_tokens": 2}},
    ]
    body = "".join(f"data: {json.dumps(e)}\n\n" for e in events)
    assert read(body + "data: [DONE]\n\n").completion_tokens == 2
    assert read(body + 'data: {"text": "abc", "outp').completion_tokens == 2


def test_what_a_model_thinks_counts_as_what_it_says() -> None:
    message = {"content": None, "reasoning_content": "Paris it is"}
    assert read({"choices": [{"message": message}]}).text == "Paris it is"


@pytest.mark.parametrize("body", ["", "<html>", "[]", '"text"'])
def test_what_is_no_answer_is_none(body: str) -> None:
    assert generation(HttpResponse(id="x", status=200, body=body)) is None


def test_text_of_one_letter_is_collapse_where_no_ids_can_be_had() -> None:
    answer = Generation(text="!" * 48, completion_tokens=48)
    assert degenerate(answer, pad_id=None) == "only '!' in 48 tokens"


def test_a_few_equal_tokens_are_no_collapse() -> None:
    answer = Generation(text="that that", ids=(9,) * 31, completion_tokens=31)
    assert not degenerate(answer, pad_id=None)


def test_a_character_that_is_still_incomplete_is_no_missing_text() -> None:
    assert not degenerate(Generation(ids=(420,), completion_tokens=1), pad_id=None)


VARIED = (87862, 96551, 44136, 20797, 120267, 117704, 54859, 53540, 83300, 57126, 15728, 122075)
"""SGLang 0.5.17, random weights of 128,256 ids behind a tokenizer of far fewer: no text at all."""


@pytest.mark.parametrize("text", ["", "\ufffd\ufffd"])
def test_random_weights_may_draw_tokens_that_their_tokenizer_does_not_know(text: str) -> None:
    answer = Generation(text=text, ids=VARIED * 3, completion_tokens=36)
    assert degenerate(answer, pad_id=None)
    answer = Generation(text=text, ids=(*VARIED, *range(24)), completion_tokens=36)
    assert not degenerate(answer, pad_id=None, has_random_weights=True)


@pytest.mark.parametrize("ids", [(0,) * 32, (0, 7) * 16, (9,) * 32])
def test_random_weights_excuse_no_collapse(ids: tuple[int, ...]) -> None:
    answer = Generation(text="", ids=ids, completion_tokens=32)
    assert degenerate(answer, pad_id=7, has_random_weights=True)


def test_random_weights_excuse_no_value_that_is_not_finite() -> None:
    answer = Generation(ids=tuple(range(32)), completion_tokens=32, logprobs=(None,) * 32)
    assert degenerate(answer, pad_id=None, has_random_weights=True)


@pytest.mark.parametrize(
    ("score", "vocab", "doubt"),
    [
        (-2.5, 150_000, ""),
        (-4.0, 32_000, ""),
        (-8.0, 150_000, "worse"),
        (-11.9, 150_000, "chance"),
    ],
)
def test_english_is_likely_to_a_trained_model_only(score: float, vocab: int, doubt: str) -> None:
    found = language_doubt(score, vocab)
    assert doubt in found
    assert bool(found) == bool(doubt)


def test_latency_is_told_from_arrival_times() -> None:
    responses = [
        HttpResponse(id="a", status=200, chunks=(0.2, 0.3, 0.4), started_s=0.0, elapsed_s=0.4),
        HttpResponse(id="b", status=200, chunks=(0.6, 0.8, 1.0), started_s=0.0, elapsed_s=1.0),
    ]
    numbers = wave_numbers(responses, [Generation(completion_tokens=3)] * 2)
    assert numbers == {
        "ttft_p50_s": 0.2,
        "ttft_p90_s": 0.6,
        "ttft_p99_s": 0.6,
        "tpot_p50_s": 0.1,
        "tpot_p90_s": 0.2,
        "tpot_p99_s": 0.2,
        "itl_p50_s": 0.1,
        "itl_p90_s": 0.2,
        "itl_p99_s": 0.2,
        "tokens_per_s": 6.0,
    }


def test_nothing_measured_is_nothing_said() -> None:
    assert wave_numbers([], []) == {}
    assert quantile([], 0.5) is None


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.75, 3), (0.99, 4), (1.0, 4)])
def test_a_quantile_is_one_of_the_values(share: float, value: float) -> None:
    assert quantile([4, 2, 3, 1], share) == value
