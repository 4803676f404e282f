"""`init` writes a file that loads, whatever works today."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sglsweep.cli.init import init
from sglsweep.config.sweep import load_sweep
from sglsweep.config.template import template
from sglsweep.errors import ConfigError
from sglsweep.flags import parse_command

_SCRIPTS = sorted((Path(__file__).parents[1] / "flags" / "cases").glob("*.sh"))


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(init)
    return app


def test_a_file_from_nothing_loads(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_text(template("x"))
    sweep = load_sweep(path)
    assert sweep.unsupported == ()
    assert len(sweep.axes) == 3


@pytest.mark.parametrize("script", _SCRIPTS, ids=lambda script: script.stem)
def test_a_file_from_any_script_loads_and_keeps_its_flags(script: Path, tmp_path: Path) -> None:
    parsed = parse_command(script.read_text())
    path = tmp_path / "SWEEP.yaml"
    if "${" in str(parsed.model):
        with pytest.raises(ConfigError, match="which is not set in it"):
            template("x", parsed, environ={})
        return
    path.write_text(template("x", parsed, environ={}))
    sweep = load_sweep(path)
    assert sweep.model.name == (parsed.model or "Qwen/Qwen2.5-0.5B-Instruct")
    known = {name: value for name, value in parsed.flags.items() if name not in parsed.unset}
    assert sweep.launch.flags == known


def test_what_works_today_stands_first_on_each_axis(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    text = "python -m sglang.launch_server --model m --attention-backend fa3 --disable-cuda-graph"
    path.write_text(template("x", parse_command(text)))
    axes = {axis.name: axis.values for axis in load_sweep(path).axes}
    assert axes["attention-backend"] == ("fa3", "flashinfer", "triton")
    assert axes["disable-cuda-graph"] == (True, False)
    assert axes["kv-cache-dtype"] == (None, "bf16")


def test_a_secret_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "HF_TOKEN=swordfish python -m sglang.launch_server --model m --api-key swordfish"
    text = template("x", parse_command(command), environ={"HF_TOKEN": "swordfish"})
    assert "swordfish" not in text
    monkeypatch.setenv("HF_TOKEN", "swordfish")
    path = tmp_path / "SWEEP.yaml"
    path.write_text(text)
    sweep = load_sweep(path)
    assert sweep.launch.env == {"HF_TOKEN": "${HF_TOKEN}"}
    assert sweep.launch.flags == {}


def test_the_command_writes_the_file_and_says_what_is_next(tmp_path: Path) -> None:
    path = tmp_path / "glm.yaml"
    command = "python3 -m sglang.launch_server --model-path m --tp 8"
    done = CliRunner().invoke(_app(), [str(path), "--from-command", command])
    assert done.exit_code == 0
    assert f"wrote {path}" in done.stdout
    assert load_sweep(path).name == "glm"
    assert load_sweep(path).launch.flags == {"tp": 8}


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_text("mine")
    done = CliRunner().invoke(_app(), [str(path)])
    assert isinstance(done.exception, ConfigError)
    assert path.read_text() == "mine"


def test_two_sources_are_refused(tmp_path: Path) -> None:
    options = ["--from-command", "x", "--from-script", "y"]
    done = CliRunner().invoke(_app(), [str(tmp_path / "a.yaml"), *options])
    assert isinstance(done.exception, ConfigError)
    assert not (tmp_path / "a.yaml").exists()
