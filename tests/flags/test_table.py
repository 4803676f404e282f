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


def test_a_removed_flag_is_refused_with_the_words_of_sglang() -> None:
    entry = {"name": "--enable-ep-moe", "takes_value": False, "nargs": 0, "removed": "use --ep"}
    table = FlagTable.from_json({"ok": True, "flags": [entry], "sglang_version": "0.5.4"})
    problem = table.problem("enable-ep-moe", value=True)
    assert problem is not None
    assert problem.what == "flag 'enable-ep-moe' was removed: use --ep"


def test_a_build_that_could_not_be_asked_is_an_error_with_its_reason() -> None:
    with pytest.raises(ConfigError, match="No module named 'sglang'"):
        FlagTable.from_json(
            {"ok": False, "error": "ModuleNotFoundError: No module named 'sglang'"}
        )
