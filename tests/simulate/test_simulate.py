"""Plays of strategies against worlds, and the command that shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from sglsweep.cli.simulate import simulate
from sglsweep.errors import ConfigError
from sglsweep.plan.goal import Goal
from sglsweep.rehearsal.whole import effective_cells
from sglsweep.rehearsal.world_file import parse_world
from sglsweep.simulate import Terms, minimal_failing, plays

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

WORLD = """
axes:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [null, bf16]
  moe-runner-backend: [cutlass, triton, deep_gemm]
rules:
- {when: {attention-backend: flashinfer}, verdict: kernel-unsupported, cause: arch,
   phase: graph-capture, blames: [attention-backend]}
- {when: {kv-cache-dtype: null, moe-runner-backend: cutlass}, verdict: nan-in-probs,
   cause: nan, phase: decode, blames: []}
"""


def run(tmp_path: Path, *arguments: str, text: str = WORLD) -> Result:
    path = tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    app = typer.Typer()
    app.command()(simulate)
    return CliRunner().invoke(app, [str(path), *arguments])


def test_json_has_the_promised_keys_and_nothing_else(tmp_path: Path) -> None:
    result = run(tmp_path, "--json", "--seeds", "2", "--strategy", "random")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert list(document) == ["schema", "strategy", "results"]
    assert (document["schema"], document["strategy"]) == (1, "random")
    assert [list(one) for one in document["results"]] == [
        ["world", "seed", "attempts_to_first_serving", "attempts", "rules_recovered"]
    ] * 2
    assert {one["world"] for one in document["results"]} == {"small"}
    assert [one["seed"] for one in document["results"]] == [0, 1]
    assert result.stdout.isascii()


def test_a_play_ends_at_the_first_serving_cell(tmp_path: Path) -> None:
    (one,) = json.loads(run(tmp_path, "--json", "--seeds", "1").stdout)["results"]
    assert one["attempts"] == one["attempts_to_first_serving"]


def test_nothing_serves_within_the_budget_is_null(tmp_path: Path) -> None:
    text = WORLD.replace("attention-backend: flashinfer}", "kv-cache-dtype: null}").replace(
        "kv-cache-dtype: null, moe-runner-backend: cutlass", "kv-cache-dtype: bf16"
    )
    result = run(tmp_path, "--json", "--seeds", "1", "--budget", "5", text=text)
    (one,) = json.loads(result.stdout)["results"]
    assert (one["attempts_to_first_serving"], one["attempts"]) == (None, 5)


def test_goal_map_goes_on_after_a_serving_cell(tmp_path: Path) -> None:
    result = run(tmp_path, "--json", "--goal", "map", "--budget", "5", "--seeds", "1")
    (one,) = json.loads(result.stdout)["results"]
    assert one["attempts"] == 5
    assert one["attempts_to_first_serving"] < 5


def test_goal_map_ends_when_the_faults_are_decided(tmp_path: Path) -> None:
    result = run(tmp_path, "--json", "--goal", "map", "--budget", "14", "--seeds", "1")
    (one,) = json.loads(result.stdout)["results"]
    assert one["attempts"] <= 14
    assert one["rules_recovered"] == 1.0


def test_without_json_a_table_is_printed(tmp_path: Path) -> None:
    result = run(tmp_path, "--seeds", "2")
    assert result.exit_code == 0
    assert "small" in result.stdout


@pytest.mark.parametrize(("option", "said"), [("--strategy", "greedy"), ("--goal", "fame")])
def test_an_unknown_name_is_refused(tmp_path: Path, option: str, said: str) -> None:
    result = run(tmp_path, option, said)
    assert isinstance(result.exception, ConfigError)
    assert said in result.exception.message


def test_a_rule_that_decides_nothing_need_not_be_recovered() -> None:
    world = parse_world(
        WORLD
        + "- {when: {attention-backend: flashinfer, kv-cache-dtype: bf16}, verdict: oom, "
        + "cause: late, phase: decode, blames: []}\n",
        name="w",
        where="w.yaml",
    )
    assert minimal_failing(world, effective_cells(world)) == {
        frozenset({("attention-backend", '"flashinfer"')}),
        frozenset({("kv-cache-dtype", "null"), ("moe-runner-backend", '"cutlass"')}),
    }


def test_the_same_seed_plays_the_same_game() -> None:
    world = parse_world(WORLD + "flake: 0.3\n", name="w", where="w.yaml")
    terms = Terms(Goal.FIRST_SERVING, 20, 3)
    first, second = plays("adaptive", world, [terms, terms])
    assert first == second
