"""SGLang's flags are read as SGLang reads them; the cell they stand for is the world's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.matrix import Axis
from sglsweep.rehearsal.arguments import UsageError, parse, requested_cell

if TYPE_CHECKING:
    from sglsweep.matrix import Value

MODEL = ("--model-path", "m")


def cell(words: tuple[str, ...], name: str, values: tuple[Value, ...]) -> Value:
    axes = (Axis(name, values),)
    return requested_cell(parse((*MODEL, *words), "0.5.9", axes), axes, {}).get(name)


@pytest.mark.parametrize(
    ("words", "name", "values", "expected"),
    [
        (("--kv-cache-dtype", "bf16"), "kv-cache-dtype", (None, "bf16"), "bf16"),
        ((), "kv-cache-dtype", (None, "bf16"), None),
        ((), "kv-cache-dtype", ("unset", "bf16"), "unset"),
        (("--disable-cuda-graph",), "disable-cuda-graph", (False, True), True),
        ((), "disable-cuda-graph", (False, True), False),
        (("--mem-fraction-static", "0.88"), "mem-fraction-static", (0.95, 0.88), 0.88),
        (("--mem-fraction-static=0.9",), "mem-fraction-static", (0.95, 0.88), 0.9),
        (("--fp8-gemm-backend", "cutlass"), "fp8-gemm-backend", (None, "cutlass"), "cutlass"),
        (("--tp", "8"), "tp", (4, 8), 8),
        (("--tensor-parallel-size", "8"), "tp-size", (4, 8), 8),
        (("--made-up", "x"), "made-up", ("x",), "x"),
    ],
)
def test_a_command_line_stands_for_a_cell(
    words: tuple[str, ...], name: str, values: tuple[Value, ...], expected: Value
) -> None:
    assert repr(cell(words, name, values)) == repr(expected)


def test_an_environment_axis_is_read_from_the_environment() -> None:
    axes = (Axis("env.SGLANG_X", (None, "1")),)
    arguments = parse(MODEL, "0.5.9", axes)
    assert requested_cell(arguments, axes, {"SGLANG_X": "1"}).get("env.SGLANG_X") == "1"
    assert requested_cell(arguments, axes, {}).get("env.SGLANG_X") is None


@pytest.mark.parametrize(
    ("words", "version", "says"),
    [
        (("--attenton-backend", "triton"), "0.5.9", "unrecognized arguments: --attenton-backend"),
        (("--attention-backend", "flashinfr"), "0.5.9", "invalid choice: 'flashinfr'"),
        (("--cuda-graph-max-bs", "8"), "0.5.23", "ambiguous option: --cuda-graph-max-bs"),
        (("--nsa-decode-backend", "trtllm"), "0.5.23", "unrecognized arguments"),
        (("stray",), "0.5.9", "unrecognized arguments: stray"),
    ],
)
def test_what_the_parser_of_a_version_refuses_is_refused(
    words: tuple[str, ...], version: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        parse((*words, *MODEL) if words[0] == "stray" else (*MODEL, *words), version, ())


def test_a_model_is_required() -> None:
    with pytest.raises(UsageError, match="--model-path"):
        parse((), "0.5.9", ())


def test_a_unique_beginning_of_a_flag_is_enough() -> None:
    assert parse((*MODEL, "--chunked-prefill", "64"), "0.5.9", ())["chunked_prefill_size"] == 64
