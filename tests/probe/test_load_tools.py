"""Load tools: called so that they need no network, read as they write."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sglsweep.probe.ladder import collapsed
from sglsweep.probe.load_result import read_wave, rung_of
from sglsweep.probe.load_tool import LoadTool, Shot, command, tool_of, why_not
from sglsweep.probe.steps import ProofStepPlan
from sglsweep.probe.target import Target, Traffic
from sglsweep.verdict import Verdict

CASES = Path(__file__).parent / "load_tools"
TARGET = Target(words={"model_path": "/models/glm", "tokenizer_path": "/models/glm"})
TRAFFIC = Traffic(input=1024, output=512)
SHOT = Shot(url="http://127.0.0.1:30000", at_once=8, count=16, seed=9, within_s=300.0)
NEW = frozenset(
    [
        *("--backend", "--base-url", "--dataset-name", "--model", "--tokenizer", "--seed"),
        *("--random-input-len", "--random-output-len", "--random-range-ratio", "--num-prompts"),
        *("--max-concurrency", "--output-file", "--warmup-requests", "--tokenize-prompt"),
        *("--flush-cache", "--disable-tqdm", "--output-details"),
    ]
)
FOUND = {
    "bench_serving": {
        "module": "sglang.benchmark.serving",
        "options": sorted(NEW),
        "has_random_ids": True,
    },
    "programs": {"guidellm": "/opt/guide/bin/guidellm"},
}
FILES = {
    "bench_serving": {"result.jsonl": "bench_serving-0.5.23.jsonl"},
    "guidellm": {"result.json": "guidellm-0.8.1.json"},
    "aiperf": {
        "profile_export.jsonl": "aiperf-0.13.0.jsonl",
        "profile_export_aiperf.json": "aiperf-0.13.0.json",
    },
}


def option(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize(("name", "speed", "first_s"), [
    ("bench_serving", 172.4, 0.34941),
    ("guidellm", 232.0, 0.04863),
    ("aiperf", 65.2, 0.11595),
])  # fmt: skip
def test_what_real_runs_wrote_is_read(name: str, speed: float, first_s: float) -> None:
    wave = read_wave(name, {as_: (CASES / f).read_text() for as_, f in FILES[name].items()})
    assert wave is not None
    rung = rung_of(wave, at_once=4, asked=6, also=("e2e_p95",))
    assert (rung.requests, rung.errors, rung.tokens_per_s) == (6, 0, speed)
    assert rung.numbers["ttft_p50_s"] == first_s
    assert rung.numbers["tpot_p50_s"] < rung.numbers["tpot_p99_s"]
    assert rung.numbers["e2e_p95_s"] > rung.numbers["ttft_p50_s"]


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_that_is_cut_off_or_missing_is_no_measurement(name: str) -> None:
    assert read_wave(name, dict.fromkeys(FILES[name])) is None
    assert read_wave(name, dict.fromkeys(FILES[name], '{"duration": 1.0')) is None


def test_requests_that_failed_are_errors_and_have_no_times() -> None:
    said = json.loads((CASES / "bench_serving-0.5.23.jsonl").read_text())
    said.update(completed=5, total_output_tokens=160)
    said["errors"][2], said["ttfts"][2], said["itls"][2] = "Service Unavailable", 0.0, []
    wave = read_wave("bench_serving", {"result.jsonl": json.dumps(said)})
    assert wave is not None
    assert wave.complaint == "Service Unavailable"
    assert len(wave.samples.ttft) == 5
    assert rung_of(wave, at_once=4, asked=6).errors == 1


def test_a_version_that_writes_only_sums_is_read_too() -> None:
    said = json.loads((CASES / "bench_serving-0.5.23.jsonl").read_text())
    for name in ("ttfts", "itls", "errors", "generated_texts", "output_lens", "input_lens"):
        del said[name]
    wave = read_wave("bench_serving", {"result.jsonl": json.dumps(said)})
    assert wave is not None
    assert rung_of(wave, at_once=4, asked=6).numbers["ttft_p99_s"] == 0.48633


def test_sglangs_own_is_asked_for_random_ids_of_one_length_and_downloads_nothing() -> None:
    made = command(tool_of("bench_serving", FOUND, "/py"), TARGET, TRAFFIC, SHOT)
    assert made.argv[:3] == ("/py", "-m", "sglang.benchmark.serving")
    assert option(made.argv, "--dataset-name") == "random-ids"
    assert option(made.argv, "--random-range-ratio") == "1.0"
    assert option(made.argv, "--random-input-len") == "1024"
    assert option(made.argv, "--max-concurrency") == "8"
    assert option(made.argv, "--tokenizer") == "/models/glm"
    assert "--tokenize-prompt" in made.argv
    assert made.env["HF_HUB_OFFLINE"] == "1"
    assert made.timeout_s > SHOT.within_s


def test_an_older_one_gets_only_options_that_it_has() -> None:
    old = LoadTool(
        name="bench_serving",
        argv=("/py", "-m", "sglang.bench_serving"),
        options=NEW - {"--tokenize-prompt", "--flush-cache"},
    )
    made = command(old, TARGET, TRAFFIC, SHOT)
    assert {w for w in made.argv if w.startswith("--")} <= old.options


@pytest.mark.parametrize("name", list(FILES))
def test_a_key_is_named_and_a_key_of_the_users_own_is_not_sent(name: str) -> None:
    tool = LoadTool(name=name, argv=("x",), options=NEW)
    keyed = command(tool, replace(TARGET, api_key="${KEY}"), TRAFFIC, SHOT)
    assert keyed.env["OPENAI_API_KEY"] == "${KEY}"
    assert command(tool, TARGET, TRAFFIC, SHOT).env["OPENAI_API_KEY"] == ""


def test_a_program_of_its_own_gets_none_of_the_launchs_packages() -> None:
    tool = LoadTool(name="guidellm", argv=("guidellm",))
    assert command(tool, TARGET, TRAFFIC, SHOT).env["PYTHONPATH"] == ""


@pytest.mark.parametrize(("name", "found", "target", "why"), [
    ("bench_serving", FOUND, TARGET, ""),
    ("guidellm", FOUND, TARGET, ""),
    ("aiperf", {"programs": {"aiperf": None}}, TARGET, "aiperf is not installed on the host"),
    ("bench_serving", {"bench_serving": None}, TARGET, "the build has no bench_serving"),
    ("bench_serving", {}, TARGET, "the build has no bench_serving"),
    (
        "bench_serving",
        {"bench_serving": {"module": "m", "options": [], "has_random_ids": False}},
        TARGET,
        "too old",
    ),
    ("bench_serving", FOUND, replace(TARGET, has_tokenizer=False), "the server has none"),
])  # fmt: skip
def test_why_a_tool_cannot_be_used_is_said(
    name: str, found: dict[str, object], target: Target, why: str
) -> None:
    said = why_not(name, found, target)
    assert why in said
    assert bool(said) == bool(why)


def test_answers_of_one_letter_are_garbage_also_where_a_tool_asked() -> None:
    step = ProofStepPlan(name="ladder-8", says="16 requests, 8 at once")
    broke = collapsed(step, [("!" * 64, 64)] * 5 + [("the sea", 64)] * 3, TARGET)
    assert broke is not None
    assert broke.verdict is Verdict.GARBAGE_OUTPUT
    assert "5 of 8 answers: only '!' in 64 tokens" in broke.detail
    assert collapsed(step, [("!" * 64, 64)] * 3 + [("the sea", 64)] * 5, TARGET) is None
    assert collapsed(step, [("!" * 64, 64)], replace(TARGET, has_random_weights=True)) is None
