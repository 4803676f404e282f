"""What a right SWEEP.yaml comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglsweep.config.schema import Expect, Load, Work
from sglsweep.config.sweep import AutoFraction, Goal, Sweep, load_sweep
from sglsweep.errors import ConfigError
from sglsweep.matrix import Axis, Cell
from sglsweep.verdict import Phase

_GOOD = Path(__file__).parent / "cases" / "good"


def _load(tmp_path: Path, text: str) -> Sweep:
    path = tmp_path / "SWEEP.yaml"
    path.write_text(text)
    return load_sweep(path)


def test_every_key_of_the_contract_is_read() -> None:
    sweep = load_sweep(_GOOD / "lead-case.yaml")
    assert sweep.name == "glm5-nvfp4-sm120"
    assert sweep.host == "blackwell"
    assert (sweep.model.target, sweep.model.pin, sweep.model.revision) == (
        "lukealonso/GLM-5-NVFP4",
        True,
        None,
    )
    assert sweep.model.offline
    assert (sweep.need.context, sweep.need.concurrent) == (65536, 4)
    assert list(sweep.builds) == ["stock", "tf52", "image"]
    assert sweep.build.python == "/opt/sglang/bin/python"
    assert sweep.builds["tf52"].pip == ("transformers==5.2.0",)
    assert sweep.auto == AutoFraction(start=0.85, max=0.93)
    assert sweep.axes[-1] == Axis("mem-fraction-static", (0.85,))
    assert sweep.links == (("nsa-prefill-backend", "nsa-decode-backend"),)
    assert sweep.goal == (Goal.FIRST_SERVING, Goal.EXPLAIN, Goal.FASTEST)
    assert (sweep.budget.hours, sweep.budget.attempts, sweep.budget.keep) == (4.0, 40, 0.25)
    assert sweep.limits == {Phase.READY: 2400.0}
    assert sweep.probe.load == Load(concurrency=8, requests=32)
    assert sweep.probe.soak is None
    assert sweep.workload is not None
    assert sweep.workload.ladder == (1, 8, 32, 64)
    assert sweep.workload.slo == {"ttft_p99": 5.0, "tpot_p50": pytest.approx(0.06)}
    assert sweep.includes[0].cell == Cell(
        {"kv-cache-dtype": "bf16", "attention-backend": "flashinfer"}
    )
    assert sweep.hypotheses[0].outcome == {"verdict": ("serving",)}
    assert sweep.hypotheses[0].when == {"disable-cuda-graph": (True,)}


def test_the_file_wins_over_the_script_by_the_flag_that_a_name_means() -> None:
    sweep = load_sweep(_GOOD / "lead-case.yaml")
    assert sweep.launch.flags["tp"] == 8
    assert "tensor-parallel-size" not in sweep.launch.flags
    assert sweep.launch.flags["served-model-name"] == "glm-5"
    assert sweep.launch.env == {
        "NCCL_P2P_LEVEL": "SYS",
        "CUDA_HOME": "/usr/local/cuda",
        "OMP_NUM_THREADS": "8",
    }
    assert "host" not in sweep.launch.flags


def test_what_is_not_done_yet_is_said_with_its_line() -> None:
    sweep = load_sweep(_GOOD / "lead-case.yaml")
    told = {note.text.split(" ")[0]: note.where.rpartition(":")[2] for note in sweep.unsupported}
    assert told["builds.tf52.pip"] == "7"
    assert told["builds.image.image"] == "8"
    assert "PATH" in told


def test_places_of_axes_and_values_are_known() -> None:
    sweep = load_sweep(_GOOD / "lead-case.yaml")
    assert sweep.where["matrix.attention-backend"].endswith("lead-case.yaml:14")
    assert sweep.where["matrix.kv-cache-dtype[1]"].endswith("lead-case.yaml:15")
    assert sweep.where["launch.flags.tp"].endswith("lead-case.yaml:11")


def test_the_least_sweep_is_a_model(tmp_path: Path) -> None:
    sweep = _load(tmp_path, "model: some/model\n")
    assert sweep.name == "SWEEP"
    assert sweep.host == "local"
    assert sweep.goal == (Goal.FIRST_SERVING,)
    assert sweep.axes == ()
    assert sweep.unsupported == ()
    assert sweep.build.name == "default"


def test_a_section_with_everything_commented_out_is_as_if_absent(tmp_path: Path) -> None:
    sweep = _load(tmp_path, "model: m\nlaunch:\n  flags:\n  # tp: 8\nexclude:\n# - x\nbudget:\n")
    assert sweep.launch.flags == {}
    assert sweep.excludes == ()


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = """
model: m
x-common: &common {tp-size: 8, dtype: auto}
launch:
  flags: {<<: *common, dtype: bfloat16}
matrix: {page-size: &sizes [1, 64], schedule-conservativeness: *sizes}
"""
    sweep = _load(tmp_path, text)
    assert sweep.launch.flags == {"tp-size": 8, "dtype": "bfloat16"}
    assert sweep.axes[1].values == (1, 64)


def test_plain_true_and_false_and_quoted_traps_are_fine(tmp_path: Path) -> None:
    text = 'model: m\nmatrix: {x: [true, false, "off", "1e-3", "010", "12:30", 1.0e-3, 8.0e+2]}\n'
    values = _load(tmp_path, text).axes[0].values
    assert values == (True, False, "off", "1e-3", "010", "12:30", 0.001, 800.0)


def test_a_mapping_as_value_is_passed_as_json_text(tmp_path: Path) -> None:
    text = "model: m\nlaunch: {flags: {json-model-override-args: {rope: {factor: 4}}}}\n"
    sweep = _load(tmp_path, text)
    assert sweep.launch.flags["json-model-override-args"] == '{"rope": {"factor": 4}}'


def test_a_list_as_value_of_launch_stays_a_list(tmp_path: Path) -> None:
    sweep = _load(tmp_path, "model: m\nlaunch: {flags: {lora-paths: [a=x, b=y]}}\n")
    assert sweep.launch.flags["lora-paths"] == ("a=x", "b=y")


def test_secrets_are_read_now_and_stay_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEEP_TEST_TOKEN", "sesame")
    sweep = _load(tmp_path, "model: m\nlaunch: {env: {HF_TOKEN: '${SWEEP_TEST_TOKEN}'}}\n")
    assert sweep.secrets == {"SWEEP_TEST_TOKEN": "sesame"}
    assert sweep.launch.env == {"HF_TOKEN": "${SWEEP_TEST_TOKEN}"}
    assert "sesame" not in repr(sweep)


def test_a_model_beside_the_file_is_made_absolute_on_this_machine_only(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    assert _load(tmp_path, "model: tiny\n").model.target == str(tmp_path / "tiny")
    assert _load(tmp_path, "model: {path: ./tiny}\n").model.name == "./tiny"
    assert _load(tmp_path, "model: some/id\n").model.target == "some/id"
    assert _load(tmp_path, "model: tiny\nhost: gpu7\n").model.target == "tiny"


def test_models_of_an_axis_are_known_by_name(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    sweep = _load(tmp_path, "model: a\nmatrix: {model: [a, b]}\n")
    assert sweep.model_of(Cell({"model": "b"})).target == str(tmp_path / "b")
    assert sweep.model_of(Cell({})).name == "a"


def test_a_model_axis_alone_names_the_model(tmp_path: Path) -> None:
    assert _load(tmp_path, "matrix: {model: [a, b]}\n").model.name == "a"


def test_a_venv_names_its_python(tmp_path: Path) -> None:
    sweep = _load(tmp_path, "model: m\nbuilds: {a: {venv: /opt/sglang/}}\nmatrix: {build: [a]}\n")
    assert sweep.build.python == "/opt/sglang/bin/python"


def test_a_script_gives_model_and_python(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("/opt/s/bin/python -m sglang.launch_server --model-path x\n")
    sweep = _load(tmp_path, "launch: {from: run.sh}\n")
    assert (sweep.model.name, sweep.build.python) == ("x", "/opt/s/bin/python")


def test_a_flag_whose_variable_the_script_does_not_set_is_refused(tmp_path: Path) -> None:
    script = "export A=1\npython -m sglang.launch_server --model-path x --tp $TP\n"
    (tmp_path / "run.sh").write_text(script)
    with pytest.raises(ConfigError, match=r"run\.sh:2: --tp uses TP") as caught:
        _load(tmp_path, "launch: {from: run.sh}\n")
    assert caught.value.next_step == "Write `tp` with its value below `launch.flags`."
    assert _load(tmp_path, "launch: {from: run.sh, flags: {tp: 4}}\n").launch.flags == {"tp": 4}


def test_a_secret_that_a_script_hands_on_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "sesame")
    script = "HF_TOKEN=$HF_TOKEN python -m sglang.launch_server --model-path x\n"
    (tmp_path / "run.sh").write_text(script)
    sweep = _load(tmp_path, "launch: {from: run.sh}\n")
    assert sweep.secrets == {"HF_TOKEN": "sesame"}
    assert sweep.launch.env == {"HF_TOKEN": "${HF_TOKEN}"}


def test_a_secret_in_a_script_is_refused(tmp_path: Path) -> None:
    script = "HF_TOKEN=swordfish python -m sglang.launch_server --model-path x\n"
    (tmp_path / "run.sh").write_text(script)
    with pytest.raises(ConfigError, match="HF_TOKEN holds a secret") as caught:
        _load(tmp_path, "launch: {from: run.sh}\n")
    assert "swordfish" not in str(caught.value)


def test_what_a_server_must_answer_and_how_its_nan_is_confirmed_are_read(tmp_path: Path) -> None:
    sweep = _load(
        tmp_path,
        "model: m\n"
        "probe:\n"
        "  expect: [{prompt: The capital of France, contains: Paris}]\n"
        "  confirm-nan: true\n",
    )
    assert sweep.probe.expect == (Expect(prompt="The capital of France", contains="Paris"),)
    assert sweep.probe.confirm_nan
    assert sweep.probe.load is None


def test_compiling_and_downloading_have_limits_beside_the_phases(tmp_path: Path) -> None:
    sweep = _load(tmp_path, "model: m\nlimits: {jit: 2h, download: 90m, weights: 30m}\n")
    assert sweep.limits == {Work.JIT: 7200.0, Work.DOWNLOAD: 5400.0, Phase.WEIGHTS: 1800.0}
