"""`resolve.py cells`: what SGLang itself makes of every cell, and what a bad cell may cost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from standin_sglang import GLM, SM120, make_standin

if TYPE_CHECKING:
    from pathlib import Path

    from standin_sglang import StandIn


def _cells(*words: str, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    return [{"argv": ["--model-path", "some/model", *w.split()], "env": env or {}} for w in words]


def _asked(
    sglang: StandIn,
    cells: list[dict[str, Any]],
    *,
    gpu: dict[str, Any] | None = SM120,
    limit_s: float = 20,
) -> list[dict[str, Any]]:
    """Return each cell's answer with its effective flags in whole."""
    request = {"cells": cells, "gpu": gpu, "configs": {"some/model": GLM}, "limit_s": limit_s}
    # A machine's own GPU is asked for by name of its tool: none is on this path.
    status, document = sglang.ask(request, {**os.environ, "PATH": "/nowhere"})
    assert status == 0, document.get("error")
    answers: list[dict[str, Any]] = document["cells"]
    for answer in answers:
        if answer["state"] == "resolved":
            answer["effective"] = {**document["base"], **answer["changes"]}
    return answers


def test_each_cell_is_told_as_sglang_resolves_it_on_that_gpu(sglang: StandIn) -> None:
    first, second = _asked(sglang, _cells("", "--attention-backend triton --kv-cache-dtype bf16"))
    assert first["effective"]["attention_backend"] == "nsa"
    assert first["effective"]["kv_cache_dtype"] == "fp8_e4m3"
    assert first["effective"]["model_path"] == "some/model"
    assert first["lines"] == [
        {
            "level": "WARNING",
            "text": "Setting KV cache dtype to fp8_e4m3 for GlmMoeDsaForCausalLM.",
        }
    ]
    assert second["effective"]["attention_backend"] == "triton"
    assert second["effective"]["kv_cache_dtype"] == "bf16"


def test_without_a_gpu_nothing_of_one_is_told(sglang: StandIn) -> None:
    (only,) = _asked(sglang, _cells(""), gpu=None)
    assert only["effective"]["kv_cache_dtype"] == "auto"
    assert only["lines"] == []


def test_what_had_to_be_guessed_is_marked(sglang: StandIn) -> None:
    guessed, known = _asked(sglang, _cells("", "--mem-fraction-static 0.9"))
    assert guessed["unknown"] == ["free GPU memory"]
    assert "unknown" not in known


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("--attention-backend refused", "ValueError", "attention refused is not supported for"),
        ("--nsa-decode-backend checked", "AssertionError", "'checked' is checked late"),
        ("--kv-cache-dtype fp7", "argparse", "argument --kv-cache-dtype: invalid choice: 'fp7'"),
        ("--no-such-flag", "argparse", "unrecognized arguments: --no-such-flag"),
    ],
)
def test_a_refusal_is_told_in_sglangs_own_words(
    sglang: StandIn, words: str, kind: str, said: str
) -> None:
    refused, fine = _asked(sglang, _cells(words, ""))
    assert (refused["state"], refused["kind"]) == ("refused", kind)
    assert said in refused["error"]
    assert fine["state"] == "resolved"


def test_a_slip_on_the_way_is_no_refusal(sglang: StandIn) -> None:
    (slip,) = _asked(sglang, _cells("--attention-backend slip"))
    assert (slip["state"], slip["kind"]) == ("unknown", "KeyError")


@pytest.mark.parametrize(
    ("place", "word", "said"),
    [
        (0, "crash", "died of signal 6"),
        (1, "crash", "died of signal 6"),
        (3, "crash", "died of signal 6"),
        (1, "exit", "exit status 3"),
        (1, "hang", "no answer within 1 s"),
        (3, "hang", "no answer within 1 s"),
    ],
)
def test_a_cell_that_crashes_or_hangs_costs_only_itself(
    sglang: StandIn, word: str, said: str, place: int
) -> None:
    words = ["", "--kv-cache-dtype bf16", "--nsa-decode-backend a", "--nsa-decode-backend b"]
    words[place] = f"--attention-backend {word}"
    answers = _asked(sglang, _cells(*words), limit_s=1)
    assert answers[place]["state"] == "unknown"
    assert said in answers[place]["error"]
    others = [a for i, a in enumerate(answers) if i != place]
    assert [a["state"] for a in others] == ["resolved"] * 3


def test_many_cells_are_resolved_side_by_side_and_each_gets_its_own_answer(
    sglang: StandIn,
) -> None:
    words = [f"--mem-fraction-static 0.{place:03d}" for place in range(1, 140)]
    words[70] = "--attention-backend crash"
    answers = _asked(sglang, _cells(*words))
    told = [
        a["effective"]["mem_fraction_static"] if "effective" in a else a["state"] for a in answers
    ]
    wanted: list[object] = [place / 1000 for place in range(1, 140)]
    wanted[70] = "unknown"
    assert told == wanted


def test_what_a_cell_does_to_the_environment_ends_with_it(sglang: StandIn) -> None:
    answers = _asked(
        sglang, _cells("", "--attention-backend environment", "--mem-fraction-static 1")
    )
    assert [a["effective"]["note"] for a in answers] == [None, "leaked", None]


def test_a_cell_that_leaves_a_trace_in_the_process_changes_no_other(sglang: StandIn) -> None:
    words = [
        "",
        "--attention-backend leaves",
        "--mem-fraction-static 1",
        "--mem-fraction-static 2",
    ]
    answers = _asked(sglang, _cells(*words))
    assert [a["effective"]["note"] for a in answers] == [None, "is first", None, None]


def test_cells_of_two_environments_are_resolved_in_their_own(sglang: StandIn) -> None:
    cells = [*_cells(""), *_cells("", env={"DEFAULT_ATTENTION": "triton"}), *_cells("")]
    found = [a["effective"]["attention_backend"] for a in _asked(sglang, cells)]
    assert found == ["nsa", "triton", "nsa"]


def test_without_the_models_config_nothing_is_guessed(sglang: StandIn) -> None:
    cell = {"argv": ["--model-path", "other/model"], "env": {}}
    (answer,) = _asked(sglang, [cell])
    assert answer["state"] == "unknown"
    assert "no config.json of other/model" in answer["error"]


def test_the_models_config_is_found_in_the_hubs_cache(sglang: StandIn, tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--other--model" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    request = {"cells": [{"argv": ["--model-path", "other/model"]}], "gpu": SM120}
    _, document = sglang.ask(request, {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub")})
    assert document["cells"][0]["state"] == "resolved"
    assert document["base"]["model_path"] == "other/model"
    assert document["architectures"] == {"other/model": "LlamaForCausalLM"}


def test_a_build_that_cannot_be_imported_says_why(tmp_path: Path) -> None:
    broken = make_standin(tmp_path, on_import="import no_such_module_at_all")
    request = {"cells": _cells(""), "gpu": SM120, "configs": {"some/model": GLM}}
    status, document = broken.ask(request, dict(os.environ))
    assert status == 1
    assert "No module named 'no_such_module_at_all'" in document["error"]


def test_what_is_not_installed_is_said_to_be_taken_for_granted(sglang: StandIn) -> None:
    request = {"cells": _cells(""), "gpu": SM120, "configs": {"some/model": GLM}}
    _, document = sglang.ask(request, dict(os.environ))
    assert document["assumed"] == ["a torch with CUDA", "sgl_kernel"]
    assert document["sglang_version"] == "0.5.9"


def test_an_environment_variable_that_nothing_reads_is_named(sglang: StandIn) -> None:
    (sglang.path / "sglang" / "srt" / "environ.py").write_text("SGLANG_ENABLE_NAN_CHECK = 1\n")
    env = {"SGLANG_ENABLE_NAN_CHEKC": "1", "SGLANG_ENABLE_NAN_CHECK": "1", "NCCL_X": "1"}
    cells = [*_cells("", env=env), *_cells("", env={"SGL_ALIEN": "1"})]
    request = {"cells": cells, "gpu": SM120, "configs": {"some/model": GLM}}
    _, document = sglang.ask(request, dict(os.environ))
    assert document["unread_env"] == {
        "SGLANG_ENABLE_NAN_CHEKC": ["SGLANG_ENABLE_NAN_CHECK"],
        "SGL_ALIEN": [],
    }
