"""A flag is found by any spelling that its build takes, and a slip gets the nearest one."""

from __future__ import annotations

import pytest

from flagtables import flag_table
from sglsweep.errors import ConfigError
from sglsweep.flags import FlagTable, nearest

_NEW = flag_table("0.5.23")
_OLD = flag_table("0.5.9")


@pytest.mark.parametrize(
    ("version", "asked", "found"),
    [
        ("0.5.23", "tp-size", "tp-size"),
        ("0.5.23", "tensor-parallel-size", "tp-size"),
        ("0.5.23", "tp", "tp-size"),
        ("0.5.9", "pp", "pp-size"),
        ("0.5.23", "model", "model-path"),
        ("0.5.23", "nsa-decode-backend", "dsa-decode-backend"),
        ("0.5.9", "dsa-decode-backend", "nsa-decode-backend"),
        ("0.5.23", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
        ("0.5.9", "cuda-graph-max-bs-decode", "cuda-graph-max-bs"),
        ("0.5.15", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
        ("0.5.15", "nsa-prefill-backend", "dsa-prefill-backend"),
        ("0.5.15", "mamba-scheduler-strategy", "mamba-radix-cache-strategy"),
        ("0.5.23", "grpc-mode", "smg-grpc-mode"),
        ("0.5.23", "disable-cuda-graph", "disable-cuda-graph"),
        ("0.5.23", "enable-hicache", "enable-hierarchical-cache"),
    ],
)
def test_any_spelling_finds_the_flag(version: str, asked: str, found: str) -> None:
    flag = flag_table(version).find(asked)
    assert flag is not None
    assert flag.name == found


@pytest.mark.parametrize("asked", ["quant", "nothing-like-it", ""])
def test_an_ambiguous_or_unknown_name_finds_nothing(asked: str) -> None:
    assert _OLD.find(asked) is None


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("mem_fraction_static", "mem-fraction-static"),
        ("--atention-backend", "attention-backend"),
        ("max-runing-requests", "max-running-requests"),
        ("quant", "quantization"),
        ("disable-cudagraph", "disable-cuda-graph"),
    ],
)
def test_a_slip_gets_the_nearest_name(asked: str, near: str) -> None:
    assert _NEW.nearest(asked)[0] == near


def test_nothing_near_is_no_suggestion() -> None:
    assert nearest("zzzz", ["attention-backend"]) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attention-backend", "triton"),
        ("attention-backend", "nsa"),
        ("attention-backend", None),
        ("no-such-flag", None),
        ("tp", 8),
        ("tp", "8"),
        ("mem-fraction-static", 1),
        ("max-total-tokens", "16k"),
        ("log-requests-level", 2),
        ("cuda-graph-bs-decode", (1, 2)),
        ("cuda-graph-bs-decode", "[1, 2]"),
        ("lora-paths", ("a=x",)),
        ("enable-fused-qk-norm-rope", False),
        ("api-key", "${KEY}"),
        ("tp", "${TP}"),
    ],
)
def test_what_the_parser_takes_is_no_problem(name: str, value: object) -> None:
    assert _NEW.problem(name, value) is None  # type: ignore[arg-type]  # parametrised


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("tp", 1.5, "flag 'tp' takes a whole number, not '1.5'"),
        ("tp", (1, 2), "flag 'tp' takes one value, but a list is given"),
        ("cuda-graph-bs-decode", ("a",), "takes a whole number, not 'a'"),
        ("attention-backend", True, "needs a value, but true is given"),
        ("trust-remote-code", "yes", 'takes no value, but "yes" is given'),
        ("log-requests-level", 9, "does not take '9'"),
        ("extra-metric-labels", "{", "takes JSON text, not '{'"),
    ],
)
def test_what_the_parser_refuses_is_said(name: str, value: object, what: str) -> None:
    problem = _NEW.problem(name, value)  # type: ignore[arg-type]  # parametrised
    assert problem is not None
    assert what in problem.what
    assert problem.instead.endswith(".")


def test_a_retired_flag_is_refused_with_the_words_of_sglang() -> None:
    problem = flag_table("0.5.4").problem("enable-ep-moe", value=True)
    assert problem is not None
    assert "Please set `--ep-size` to the same value as `--tp-size` instead." in problem.what
    assert problem.instead == "Write `ep-size` with the value of tp-size instead."


def test_a_flag_that_only_warns_is_taken() -> None:
    assert _OLD.problem("prefill-round-robin-balance", value=True) is None


def test_a_flag_that_is_gone_says_what_came_instead() -> None:
    problem = _NEW.problem("disable-piecewise-cuda-graph", value=True)
    assert problem is not None
    assert problem.instead == "Write `cuda-graph-backend-prefill: disabled` instead."


@pytest.mark.parametrize("version", ["0.5.4", "0.5.9", "0.5.15", "0.5.23"])
def test_a_flag_has_one_name_in_all_versions(version: str) -> None:
    table = flag_table(version)
    for asked in ("tensor-parallel-size", "tp-size", "tp"):
        assert table.canonical(asked) == "tp-size"


def test_a_build_that_could_not_be_asked_is_an_error_with_its_reason() -> None:
    with pytest.raises(ConfigError, match="No module named 'sglang'"):
        FlagTable.from_json(
            {"ok": False, "error": "ModuleNotFoundError: No module named 'sglang'"}
        )
