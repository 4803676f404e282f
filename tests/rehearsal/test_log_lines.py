"""What a stand-in prints is shaped as the real thing's lines are."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehearsal.launching import READY, launched

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPES = Path(__file__).parent / "shapes"
BF16 = ("--kv-cache-dtype", "bf16", "--attention-backend", "flashinfer")
FITS = ("--mem-fraction-static", "0.88", "--max-running-requests", "64")
_GLUED = re.compile(r"(?<=.)(?=\[(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|Gloo))")


def shape_of(line: str) -> str:
    """Return a line with everything that may differ between launches taken out."""
    line = re.sub(r"^\[[\d-]{10} [\d:]{8}(?: \w+\d)*\] ", "[T] ", line)
    line = re.sub(r"^(/[\w./-]+/)", "/", line)
    line = re.sub(r"\|[ █▏▎▍▌▋▊▉]*\|", "||", line)
    line = re.sub(r"\[(?:\d+, )+\d+\]", "[L]", line)
    line = re.sub(r"-?\d[\d.:]*", "N", line)
    line = re.sub(r"(-?N|\?)(it/s|s/it)", "R", line)
    line = re.sub(r"<(\?|N)", "<N", line)
    line = re.sub(r"(type|prefill|decode)=\w+", r"\1=W", line)
    line = re.sub(r"\b(True|False|bfloatN|bfN|fpN_\w+|floatN_\w+)\b", "V", line)
    return re.sub(r" +", " ", line).strip()


def known_shapes(version: str) -> set[str]:
    lines = (SHAPES / f"{version}.txt").read_text(encoding="utf-8").splitlines()
    return {shape_of(line) for line in lines if not line.startswith("#")}


def pieces(log: str) -> Iterator[str]:
    """Split a log at newlines, carriage returns and where a record is glued to a bar."""
    for line in re.split(r"[\r\n]", log):
        yield from (piece for piece in _GLUED.split(line) if piece.strip())


@pytest.fixture(scope="module", params=["0.5.9", "0.5.23"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the version and the log of a launch that served, was asked and was stopped."""
    folder = tmp_path_factory.mktemp("served")
    with launched(folder, "--sglang-version", request.param, *BF16, *FITS, ranks=8) as standin:
        standin.await_line(READY)
        standin.generate(range(100), temperature=1.0, tokens=60)
        standin.process.terminate()
        standin.await_end()
        return f"{request.param}\n{standin.log}"


def test_every_line_has_the_shape_of_a_real_one(served: str) -> None:
    version, _, log = served.partition("\n")
    known = known_shapes(version)
    strange = [
        piece
        for piece in pieces(log)
        if "server_args=" not in piece
        and not piece.startswith("=== sglsweep rehearsal")
        and shape_of(piece) not in known
    ]
    assert strange == []


def test_all_kinds_of_lines_of_a_launch_are_there(served: str) -> None:
    version, _, log = served.partition("\n")
    printed = {shape_of(piece) for piece in pieces(log)}
    begin = "Init torch distributed begin." if version == "0.5.9" else "Init parallel begin."
    for text in (begin, "KV Cache is allocated", "Memory pool end", "Decode batch", READY):
        assert any(text in shape for shape in printed), text


def test_every_rank_speaks_with_its_prefix(served: str) -> None:
    for rank in range(8):
        assert f" TP{rank}] Load weight end." in served
        assert f" TP{rank}] KV Cache is allocated." in served


def test_server_args_can_be_read_back(served: str) -> None:
    version, _, log = served.partition("\n")
    shown = re.search(r"server_args=(.*)", log)
    assert shown is not None
    if version == "0.5.9":
        call = ast.parse(shown[1], mode="eval").body
        assert isinstance(call, ast.Call)
        args = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    else:
        args = ast.literal_eval(shown[1])
    assert args["kv_cache_dtype"] == "bfloat16"
    assert args["tp_size"] == 8
    assert args["mem_fraction_static"] == 0.88
    assert args["max_running_requests"] == 64


def test_the_first_line_says_that_it_is_a_rehearsal(served: str) -> None:
    assert "rehearsal" in served.split("\n")[1]


def test_stamps_and_durations_tell_the_same_story(served: str) -> None:
    stamps = re.findall(
        r"\[\d{4}-\d\d-\d\d (\d\d):(\d\d):(\d\d) TP0\] Load weight (?:begin|end)", served
    )
    begin, end = (int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in stamps[:2])
    elapsed = re.search(r"TP0\] Load weight end\. elapsed=([\d.]+)", served)
    assert elapsed is not None
    assert (end - begin) % 86400 >= float(elapsed[1]) * 0.9
