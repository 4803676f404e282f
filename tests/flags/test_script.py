"""What people already launch with is read as it stands: commands, scripts, containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sglsweep.errors import ConfigError
from sglsweep.flags import parse_command, parse_log

_CASES = sorted((Path(__file__).parent / "cases").glob("*.sh"))


def _split(case: Path) -> tuple[str, dict[str, Any]]:
    """A case is a script; the comment lines that begin with `#=` hold what is read from it."""
    lines = case.read_text("utf-8").split("\n")
    expected = "\n".join(line[2:] for line in lines if line.startswith("#="))
    wanted: dict[str, Any] = yaml.safe_load(expected)
    return "\n".join(line for line in lines if not line.startswith("#=")), wanted


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.stem)
def test_script_is_read_as_its_case_says(case: Path) -> None:
    text, wanted = _split(case)
    parsed = parse_command(text)
    found = {
        "flags": {n: list(v) if isinstance(v, tuple) else v for n, v in parsed.flags.items()},
        "env": dict(parsed.env),
        "python": parsed.python,
        "model": parsed.model,
        "line": parsed.line,
        "unset": {name: list(used) for name, used in parsed.unset.items()},
        "host": parsed.host,
        "port": parsed.port,
        "image": parsed.image,
        "mounts": list(parsed.mounts),
        "notes": [f"{note.line}: {note.what}" for note in parsed.notes],
    }
    assert {key: found[key] for key in wanted} == wanted


def test_there_are_scripts() -> None:
    assert len(_CASES) > 10


@pytest.mark.parametrize("text", ["", "ls -l", "# python -m sglang.launch_server --tp 8", "'"])
def test_a_text_without_a_launch_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.sh: no SGLang launch in it"):
        parse_command(text, where="run.sh")


def test_a_log_shows_what_was_launched() -> None:
    text = (
        "[2026-01-01 00:00:00] server_args=ServerArgs(model_path='m', tp_size=8, dp_size=1, "
        "quantization='modelopt_fp4', mem_fraction_static=0.88, disable_cuda_graph=True, "
        "kv_cache_dtype='auto', served_model_name='m', api_key='sesame', device=<D.x: 1>)"
    )
    parsed = parse_log(text)
    assert parsed.model == "m"
    assert parsed.flags == {
        "tp-size": 8,
        "quantization": "modelopt_fp4",
        "mem-fraction-static": 0.88,
        "disable-cuda-graph": True,
    }


def test_a_log_of_a_newer_sglang_shows_it_as_a_mapping() -> None:
    parsed = parse_log("INFO server_args={'model_path': 'm', 'tp_size': 2, 'page_size': 1}\n")
    assert (parsed.model, parsed.flags) == ("m", {"tp-size": 2})


def test_a_log_that_begins_with_the_command_shows_it() -> None:
    parsed = parse_log("+ python3 -m sglang.launch_server --model-path m --tp 2\nmore\n")
    assert (parsed.model, parsed.flags) == ("m", {"tp": 2})


def test_a_log_that_shows_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a launch command nor a server_args line"):
        parse_log("nothing\nhere\n")
