"""World files: what they say, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.errors import ConfigError
from sglsweep.matrix import Cell
from sglsweep.rehearsal.whole import deciding_rules, effective_cells
from sglsweep.rehearsal.world import evaluate
from sglsweep.rehearsal.world_file import load_world, parse_world
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
axes:
  attention-backend: [flashinfer, triton]
  kv-cache-dtype: [null, fp8_e4m3, bf16]
resolve:
- {when: {attention-backend: triton, kv-cache-dtype: null}, set: {kv-cache-dtype: fp8_e5m2}}
- {when: {kv-cache-dtype: null}, set: {kv-cache-dtype: bf16}}
rules:
- {when: {attention-backend: triton, kv-cache-dtype: fp8_e5m2}, verdict: crash, cause: first,
   phase: weights, blames: [kv-cache-dtype]}
- {when: {attention-backend: triton}, verdict: oom, cause: second, phase: warmup, blames: []}
"""


def test_the_first_rule_that_holds_decides() -> None:
    made = parse_world(GOOD, name="w", where="w.yaml")
    first = evaluate(made, Cell({"attention-backend": "triton", "kv-cache-dtype": "fp8_e5m2"}))
    assert (first.verdict, first.cause, first.phase) == (Verdict.CRASH, "first", Phase.WEIGHTS)
    assert first.blames == ("kv-cache-dtype",)
    second = evaluate(made, Cell({"attention-backend": "triton", "kv-cache-dtype": "bf16"}))
    assert second.cause == "second"


def test_what_no_rule_holds_for_serves() -> None:
    made = parse_world(GOOD, name="w", where="w.yaml")
    truth = evaluate(made, Cell({"attention-backend": "flashinfer", "kv-cache-dtype": "bf16"}))
    assert truth.verdict is Verdict.SERVING


def test_the_first_rewrite_that_holds_makes_the_effective_cell() -> None:
    made = parse_world(GOOD, name="w", where="w.yaml")
    requested = Cell({"attention-backend": "triton", "kv-cache-dtype": None})
    assert made.effective(requested).get("kv-cache-dtype") == "fp8_e5m2"


def test_effective_cells_are_listed_once() -> None:
    made = parse_world(GOOD, name="w", where="w.yaml")
    keys = [cell.key for cell in effective_cells(made)]
    assert len(keys) == len(set(keys)) == 5
    assert not any("null" in key for key in keys)


def test_deciding_rules_agree_with_single_evaluations() -> None:
    made = parse_world(GOOD, name="w", where="w.yaml")
    cells = effective_cells(made)
    for cell, place in zip(cells, deciding_rules(made, cells), strict=True):
        cause = made.rules[place].cause if place >= 0 else None
        assert evaluate(made, cell).cause == cause


def test_a_flake_hits_only_the_first_launch_of_a_serving_cell() -> None:
    made = parse_world(GOOD + "flake: 1.0\n", name="w", where="w.yaml")
    cell = Cell({"attention-backend": "flashinfer", "kv-cache-dtype": "bf16"})
    once = evaluate(made, cell, launch=1)
    assert (once.verdict, once.cause, once.phase) == (Verdict.CRASH, "flake", Phase.DECODE)
    assert once.blames == ()
    assert evaluate(made, cell, launch=2).verdict is Verdict.SERVING


def test_the_share_of_flakes_is_the_stated_one() -> None:
    text = "axes: {a: [" + ", ".join(map(str, range(2000))) + "]}\nflake: 0.05\n"
    made = parse_world(text, name="w", where="w.yaml")
    flaked = sum(evaluate(made, cell).cause == "flake" for cell in effective_cells(made))
    assert 60 <= flaked <= 140


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "w.yaml: [] is not a mapping"),
        ("axes: {}", "axes"),
        ("axes: {a: []}", "axis 'a' has no list of values"),
        ("axes: {a: [on, off]}", "w.yaml:1: YAML reads a bare on as a truth value"),
        ("axes: {a: [1, 1]}", "1 stands twice"),
        ("axes: {a: [1]}\naxes: {b: [1]}", "w.yaml:2: 'axes' stands twice"),
        ("axes: {a: [1]\n", "not YAML"),
        ("axes: {a: [[1]]}", "[1] is not a single value"),
        ("axes: {a: [1]}\nrulez: []", "unknown key 'rulez' (did you mean rules?)"),
        ("axes: {a: [1]}\nrules: {}", "rules: {} is not a list"),
        (
            "axes: {abc: [1]}\nrules: [{when: {abd: 1}, verdict: oom, cause: c, phase: args}]",
            "rules[0]: when: 'abd' is no axis (did you mean abc?)",
        ),
        (
            "axes: {a: [1]}\nrules: [{when: {a: '1'}, verdict: oom, cause: c, phase: args}]",
            '"1" is no value of a',
        ),
        (
            "axes: {a: [1]}\nrules: [{when: {a: 1}, verdict: oomm, cause: c, phase: args}]",
            "'oomm' is none (did you mean oom?)",
        ),
        (
            "axes: {a: [1]}\nrules: [{when: {a: 1}, verdict: serving, cause: c, phase: args}]",
            "a rule says how cells fail",
        ),
        (
            "axes: {a: [1]}\n"
            "rules: [{when: {a: 1}, verdict: oom, cause: c, phase: args, blames: [b]}]",
            "blames ['b'] names what is no axis",
        ),
        ("axes: {a: [1]}\nrules: [{when: {a: 1}, verdict: oom, phase: args}]", "no cause"),
        ("axes: {a: [1]}\nflake: 2", "flake: 2 is not a chance"),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_world(text, name="w", where="w.yaml")
    assert said in refused.value.message
    assert refused.value.next_step


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_world(tmp_path / "none.yaml")
