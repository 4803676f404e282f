"""The stand-in's HTTP answers have the fields that real servers answered with."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehearsal.launching import READY, launched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rehearsal.launching import Json, Standin

REAL: dict[str, Json] = json.loads(
    (Path(__file__).parent / "shapes" / "answers-0.5.23.json").read_text(encoding="utf-8")
)
# What this version adds and no client needs.
_LEFT_OUT = {"embedding", "weight_versions"}


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standin]:
    folder = tmp_path_factory.mktemp("answers")
    flags = ("--sglang-version", "0.5.23", "--kv-cache-dtype", "bf16", "--api-key", "")
    with launched(folder, *flags, "--served-model-name", "glm-5") as server:
        server.await_line(READY)
        yield server


def fields_of(answer: Json) -> set[str]:
    return set(answer) - _LEFT_OUT


def test_generate_answers_text_ids_and_meta(standin: Standin) -> None:
    _, answer = standin.ask(
        "/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
    )
    assert fields_of(answer) == fields_of(REAL["/generate"])
    assert fields_of(answer["meta_info"]) == fields_of(REAL["/generate"]["meta_info"])
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 4}
    assert len(answer["output_ids"]) == 4


def test_logprobs_come_as_triples(standin: Standin) -> None:
    body = {
        "input_ids": [5, 6, 7],
        "return_logprob": True,
        "logprob_start_len": 0,
        "sampling_params": {"max_new_tokens": 2},
    }
    meta = standin.ask("/generate", body)[1]["meta_info"]
    assert meta["input_token_logprobs"][0] == [None, 5, None]
    assert len(meta["input_token_logprobs"]) == 3
    for logprob, token, text in meta["output_token_logprobs"]:
        assert logprob < 0
        assert isinstance(token, int)
        assert text is None


def test_a_batch_is_answered_with_a_list(standin: Standin) -> None:
    body = {"input_ids": [[5, 6], [7, 8]], "sampling_params": {"max_new_tokens": 2}}
    answer: object = standin.ask("/generate", body)[1]
    assert isinstance(answer, list)
    assert len(answer) == 2


def test_the_same_prompt_again_is_cached_in_whole_pages(standin: Standin) -> None:
    prompt = list(range(1000, 1200))
    standin.generate(prompt, temperature=0.0)
    again = standin.generate(prompt, temperature=0.0)["meta_info"]
    assert again["cached_tokens"] == 192
    assert again["cached_tokens_details"] == {"device": 192, "host": 0}


def test_greedy_answers_repeat_and_sampled_ones_differ(standin: Standin) -> None:
    greedy = [standin.generate(range(40), temperature=0.0)["output_ids"] for _ in range(2)]
    sampled = [standin.generate(range(40), temperature=1.0)["output_ids"] for _ in range(2)]
    assert greedy[0] == greedy[1]
    assert sampled[0] != sampled[1]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/completions", {"prompt": "hi"}),
    ],
)
def test_openai_answers_have_the_real_fields(standin: Standin, path: str, body: Json) -> None:
    status, answer = standin.ask(path, {"model": "x", "max_tokens": 4, **body})
    assert status == 200
    assert set(answer) == set(REAL[path])
    assert set(REAL[path]["choices"][0]) == set(answer["choices"][0])
    assert answer["usage"]["completion_tokens"] == 4


@pytest.mark.parametrize("path", ["/model_info", "/get_model_info", "/v1/models"])
def test_facts_have_the_real_fields(standin: Standin, path: str) -> None:
    status, answer = standin.ask(path)
    assert status == 200
    assert fields_of(answer) == fields_of(REAL[path.replace("get_", "")])


def test_server_info_is_faithful_and_says_that_it_is_a_rehearsal(standin: Standin) -> None:
    for path in ("/server_info", "/get_server_info"):
        status, answer = standin.ask(path)
        assert status == 200
        assert answer["rehearsal"] is True
        assert answer["kv_cache_dtype"] == "bfloat16"
        assert answer["version"] == "0.5.23"
        assert answer["internal_states"][0]["memory_usage"]["token_capacity"] > 0
        assert "rehearsal" not in answer["internal_states"][0]


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/flush_cache"])
def test_health_is_200_without_a_body(standin: Standin, path: str) -> None:
    assert standin.ask(path) == (200, {})


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/generate", {"sampling_params": {}}, 400, "Either text, input_ids or input_embeds"),
        ("/generate", {"input_ids": [1] * 300_000}, 400, "longer than the model's context length"),
        ("/nonsense", None, 404, "Not Found"),
    ],
)
def test_mistakes_are_answered_as_the_real_server_does(
    standin: Standin, path: str, body: Json | None, status: int, text: str
) -> None:
    found, answer = standin.ask(path, body)
    assert found == status
    assert text in json.dumps(answer)


def test_a_stream_comes_token_by_token_and_ends_with_done(standin: Standin) -> None:
    body = {"text": "x", "stream": True, "sampling_params": {"max_new_tokens": 3}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{standin.port}/generate",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
        events = [line.decode().removeprefix("data: ").strip() for line in answer if line.strip()]
    assert events[-1] == "[DONE]"
    assert [len(json.loads(event)["output_ids"]) for event in events[:-1]] == [1, 2, 3]
