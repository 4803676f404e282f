"""`facts.py` says what a machine is, and nothing it cannot learn costs the rest."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from sglsweep.onhost import facts

_PROGRAM = Path(facts.__file__)

# Two cards as nvidia-smi prints them; an older driver refuses a field that it does not know.
_SMI = """#!/bin/sh
case "$*" in
  *compute-apps*)
    echo "GPU-aa, {pid}, python3, a name, 70112"
    echo "GPU-bb, 999999999, [Not Found], [N/A]"
    exit 0;;
  *vbios_version*)
    echo 'Field "vbios_version" is not a valid field to query.'
    exit 2;;
esac
python3 - "$@" <<'EOF'
import sys
fields = next(a for a in sys.argv if a.startswith("--query-gpu=")).split("=")[1].split(",")
for index, uuid in enumerate(("GPU-aa", "GPU-bb")):
    known = {{"index": str(index), "uuid": uuid, "name": "NVIDIA H200", "memory.total": "143771",
             "memory.used": "70112", "compute_cap": "9.0", "driver_version": "570.86.15",
             "power.limit": "700.00", "pcie.link.gen.current": "5"}}
    print(", ".join(known.get(field, "[N/A]") for field in fields))
EOF
"""


def _ask(*arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-", *arguments],
        input=_PROGRAM.read_bytes(),
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_machine_without_a_gpu_says_so() -> None:
    said = _ask(env={"PATH": "/nowhere"})
    assert (said["gpus"], said["gpu_processes"], said["driver"]) == ([], [], None)
    assert said["kernel"] == os.uname().release
    assert said["cpu"]["count"] == os.cpu_count()
    assert said["memory"]["total_mib"] > 0
    assert said["limits"]["nofile"]
    assert {disk["path"] for disk in said["disks"]} >= {"/tmp", "/dev/shm"}  # noqa: S108 - facts
    assert said["errors"] == {}
    assert (said["python"], said["model"]) == (None, None)


def test_gpus_and_who_holds_them_are_told(tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(_SMI.format(pid=os.getpid()))
    smi.chmod(0o755)
    said = _ask(env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert said["errors"] == {}
    assert len(said["gpus"]) == 2
    first = said["gpus"][0]
    assert (first["index"], first["name"], first["memory_total_mib"]) == (0, "NVIDIA H200", 143771)
    assert (first["compute_capability"], first["power_limit_w"]) == ("9.0", 700.0)
    assert first["vbios_version"] is None
    assert first["temperature_c"] is None
    assert said["driver"] == "570.86.15"
    ours, other = said["gpu_processes"]
    assert (ours["pid"], ours["name"], ours["memory_mib"]) == (
        os.getpid(),
        "python3, a name",
        70112,
    )
    assert "python" in ours["command"]
    assert (other["command"], other["user"], other["memory_mib"]) == (None, None, None)


def test_an_nvidia_smi_that_fails_is_a_null_with_its_words(tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed: no driver'\nexit 9\n")
    smi.chmod(0o755)
    said = _ask(env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert said["gpus"] is None
    assert "ended with 9: NVIDIA-SMI has failed: no driver" in said["errors"]["gpus"]
    assert said["memory"]["total_mib"] > 0


def test_versions_of_a_python_are_told_without_importing_anything() -> None:
    said = _ask("--python", sys.executable)["python"]
    assert said["version"] == ".".join(str(n) for n in sys.version_info[:3])
    assert said["executable"] == sys.executable
    assert set(said["packages"]) >= {"sglang", "torch", "flashinfer-python", "transformers"}


def test_a_python_that_does_not_exist_is_a_null_with_its_reason() -> None:
    said = _ask("--python", "/no/such/python")
    assert said["python"] is None
    assert "No such file" in said["errors"]["python"]


def test_a_model_in_a_folder_is_described(tmp_path: Path) -> None:
    config = {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "text_config": {"max_position_embeddings": 131072},
        "quantization_config": {"quant_method": "modelopt"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model-1.safetensors").write_bytes(b"12345")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    said = _ask("--model", str(tmp_path))["model"]
    assert (said["found"], said["commit"]) == (True, None)
    assert said["missing"] == ["model-2.safetensors"]
    sizes = {file["name"]: file["size"] for file in said["files"]}
    assert sizes["model-1.safetensors"] == 5
    assert said["bytes"] == sum(sizes.values())
    assert said["config"]["architectures"] == ["GlmMoeDsaForCausalLM"]
    assert said["config"]["max_position_embeddings"] == 131072
    assert said["config"]["quantization"] == "modelopt"


def test_a_weight_file_that_was_cut_is_found_without_reading_its_weights(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    whole = len(header).to_bytes(8, "little") + header + bytes(16)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "whole.safetensors").write_bytes(whole)
    (tmp_path / "cut.safetensors").write_bytes(whole[:-3])
    (tmp_path / "junk.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    said = _ask("--model", str(tmp_path))["model"]
    assert said["damaged"] == ["cut.safetensors", "junk.safetensors"]


def test_a_model_in_the_cache_is_found_by_its_id(tmp_path: Path) -> None:
    cache = tmp_path / "models--org--name"
    snapshot = cache / "snapshots" / "abc123"
    for folder in (snapshot, cache / "refs", cache / "blobs"):
        folder.mkdir(parents=True)
    (cache / "refs" / "main").write_text("abc123")
    (cache / "blobs" / "beef").write_bytes(b"1234")
    (cache / "blobs" / "dead.incomplete").write_bytes(b"1")
    (snapshot / "model.safetensors").symlink_to(cache / "blobs" / "beef")
    (snapshot / "gone.safetensors").symlink_to(cache / "blobs" / "no")
    said = _ask("--model", "org/name", "--hub", str(tmp_path))["model"]
    assert (said["commit"], said["incomplete"], said["bytes"]) == ("abc123", 1, 4)
    assert {file["name"]: file["size"] for file in said["files"]} == {
        "model.safetensors": 4,
        "gone.safetensors": None,
    }


def test_a_model_that_is_nowhere_is_said_to_be_absent(tmp_path: Path) -> None:
    said = _ask("--model", "org/name", env={"HF_HUB_CACHE": str(tmp_path)})["model"]
    assert (said["found"], said["commit"]) == (False, None)


def test_a_broken_config_costs_the_model_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    said = _ask("--model", str(tmp_path))
    assert said["model"] is None
    assert "JSONDecodeError" in said["errors"]["model"]
    assert said["kernel"]


def test_secrets_of_the_environment_are_not_told() -> None:
    said = _ask(env={"NCCL_DEBUG": "INFO", "SGLANG_API_KEY": "sesame", "HF_TOKEN": "sesame"})
    assert said["environment"]["NCCL_DEBUG"] == "INFO"
    assert "sesame" not in json.dumps(said)


def test_who_listens_on_a_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = _ask("--port", str(port))["port"]
    assert (taken["is_free"], taken["pid"]) == (False, os.getpid())
    assert "python" in taken["command"]
    assert _ask("--port", str(port))["port"] == {"port": port, "is_free": True}
