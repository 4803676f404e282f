"""`sglsweep export`: files that start what was proven, and say what was."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml
from typer.testing import CliRunner

from cli_more.made import ARGV, PLACE, make_run, outcome
from sglsweep.cli.app import program
from sglsweep.export import compose, deployment_of, sbatch, shell
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.attempt import Outcome

TEMPLATE = ("--chat-template", "/srv/it's $here.jinja")
ENV = {"HF_TOKEN": "${HF_TOKEN}", "NOTE": "two words; $HOME `id`", "CUDA_VISIBLE_DEVICES": "2,3"}
PRINTER = "import os, sys; print([*sys.argv[1:], os.environ['HF_TOKEN'], os.environ['NOTE']])"


def odd(*more: str) -> Outcome:
    """An attempt whose words would break a careless quote."""
    return outcome(3, argv=(*ARGV, *TEMPLATE, *more, *PLACE), env=ENV)


def run_script(folder: Path, text: str, **programs: str) -> list[str]:
    """Run a script with stand-ins on the PATH; return the words that the server was given."""
    python = f'#!/bin/sh\nexec {sys.executable} -c "{PRINTER}" "$@"\n'
    for name, content in {"python3": python, **programs}.items():
        path = folder / name
        path.write_text(content)
        path.chmod(0o755)
    script = folder / "script"
    script.write_text(text)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HF_TOKEN": "se cret"}
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    words: list[str] = yaml.safe_load(done.stdout)
    return words


def on_path(one: Outcome) -> Outcome:
    return replace(one, attempt=replace(one.attempt, python="python3"))


def test_a_slot_s_cards_are_nobody_s_wish() -> None:
    made = odd()
    of_a_slot = replace(made, attempt=replace(made.attempt, gpus=(2, 3)))
    assert "CUDA_VISIBLE_DEVICES" in deployment_of(made, "made").env
    assert "CUDA_VISIBLE_DEVICES" not in deployment_of(of_a_slot, "made").env


def test_the_script_starts_the_very_same_launch(tmp_path: Path) -> None:
    text = shell(deployment_of(on_path(odd()), "made"))
    assert "# Serving on 2026-11-29" in text
    assert "se cret" not in text
    words = run_script(tmp_path, text)
    assert words == [*ARGV, *TEMPLATE, *PLACE, "se cret", ENV["NOTE"]]


def test_the_script_refuses_to_start_without_a_secret(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(shell(deployment_of(odd(), "made")))
    env = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"}
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode != 0
    assert "HF_TOKEN: set it before you start this" in done.stderr


def test_a_path_below_home_is_written_out() -> None:
    one = outcome(3, argv=(*ARGV[:3], "~/models/m", *PLACE), facts={"user": {"home": "/home/al"}})
    one = replace(one, attempt=replace(one.attempt, python="~/venv/bin/python"))
    deployment = deployment_of(one, "made")
    assert "exec /home/al/venv/bin/python -m sglang.launch_server" in shell(deployment)
    service = yaml.safe_load(compose(deployment))["services"]["sglang"]
    assert service["volumes"] == ["/home/al/models/m:/home/al/models/m:ro"]


def test_the_compose_file_is_open_to_this_machine_alone() -> None:
    text = compose(deployment_of(odd(), "made"))
    service = yaml.safe_load(text)["services"]["sglang"]
    assert service["image"] == "lmsysorg/sglang:v0.5.9"
    assert service["ports"] == ["127.0.0.1:30000:30000"]
    assert service["command"][:5] == ["python3", *ARGV[:4]]
    assert service["command"][-4::2] == ["--host", "--port"]
    assert "/srv/it's $$here.jinja" in service["command"]
    assert "${HF_TOKEN:?set it before you start this}" in service["environment"].values()
    assert service["environment"]["NOTE"] == "two words; $$HOME `id`"
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device["device_ids"] == ["2", "3"]
    assert "health_generate" in service["healthcheck"]["test"][-1]


def test_a_job_over_two_nodes_gives_each_its_rank(tmp_path: Path) -> None:
    one = on_path(odd("--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "10.0.0.1:5000"))
    text = sbatch(deployment_of(one, "made"))
    assert "#SBATCH --nodes=2\n" in text
    assert "#SBATCH --gpus-per-node=1\n" in text
    srun = '#!/bin/sh\nshift\nexport SLURM_NODEID=1\nexec "$@"\n'
    scontrol = "#!/bin/sh\necho node-a\necho node-b\n"
    words = run_script(
        tmp_path, text.replace("set -euo", "SLURM_JOB_NODELIST=x\nset -euo"), srun=srun,
        scontrol=scontrol,
    )  # fmt: skip
    ranked = ["--nnodes", "2", "--node-rank", "1", "--dist-init-addr", "node-a:20000"]
    assert words[:-2] == [*ARGV, *TEMPLATE, *PLACE, *ranked]


def test_what_does_not_serve_says_so_in_every_form(tmp_path: Path) -> None:
    bad = outcome(1, Verdict.OOM, phase=Phase.GRAPH_CAPTURE, cause="oom-graph-capture")
    run = make_run(tmp_path, bad)
    for form in ("shell", "compose", "sbatch"):
        out = tmp_path / form
        words = ["export", str(run), "1", "--to", form, "--out", str(out)]
        done = CliRunner().invoke(program(["export"]), words)
        assert done.exit_code == 0, done.output
        written = out.read_text()
        assert "# DOES NOT SERVE: oom in graph-capture (oom-graph-capture)" in written
        assert "attempt 1 of the run made" in written
