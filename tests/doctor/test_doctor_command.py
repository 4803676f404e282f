"""`sglsweep doctor`, as somebody types it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sglsweep.config.sweep import load_sweep
from sglsweep.doctor import ranks_of
from small_sweeps import small_sweep
from sshd import running_sshd

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
# One card; this test's own process holds it.
_SMI = """#!/bin/sh
case "$*" in
  *compute-apps*) echo "GPU-aa, {pid}, python3, 70112"; exit 0;;
esac
python3 - "$@" <<'EOF'
import sys
fields = next(a for a in sys.argv if a.startswith("--query-gpu=")).split("=")[1].split(",")
known = {{"index": "0", "uuid": "GPU-aa", "name": "NVIDIA H200", "memory.total": "143771",
         "memory.used": "70112", "driver_version": "580.1"}}
print(", ".join(known.get(field, "[N/A]") for field in fields))
EOF
"""


def doctor(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "sglsweep", "doctor", *words, "--json"],
        cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["schema"] == 1
    assert said["usable"] is (done.returncode == 0)
    for check in said["checks"]:
        assert bool(check["next_step"]) is (check["level"] != "ok"), check
    return done.returncode, {check["name"]: check for check in said["checks"]}


def test_a_stand_in_s_sweep_needs_neither_gpu_nor_model(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path)
    status, checks = doctor("sweep.yaml", cwd=tmp_path, env={**folder.env, "PATH": "/nowhere"})
    assert status == 0, checks
    assert checks[f"port {folder.port}"]["level"] == "ok"
    assert not [name for name in checks if name.startswith(("model", "build"))]


def test_who_holds_a_card_is_named_and_a_build_without_sglang_is_a_problem(
    tmp_path: Path,
) -> None:
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(_SMI.format(pid=os.getpid()))
    smi.chmod(0o755)
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    env = {"PATH": f"{smi.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    status, checks = doctor("local", "--python", str(bare), cwd=tmp_path, env=env)
    assert status == 3
    assert f"held by pid {os.getpid()}" in checks["gpu 0"]["said"]
    assert "has no SGLang that can be used" in checks["build default"]["said"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (sglang, *_) = extras["optional-dependencies"]["host"]
    assert f"-m pip install '{sglang}'" in checks["build default"]["next_step"]


def test_an_unknown_host_key_is_the_whole_answer(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        target = sshd.target()
        ssh = f"{{host: 127.0.0.1, port: {sshd.port}, user: {target.user}, key: {target.key}}}"
        (tmp_path / "hosts.yaml").write_text(f"gpu-01: {{ssh: {ssh}, workdir: {tmp_path}/w}}\n")
        status, checks = doctor("gpu-01", cwd=tmp_path, env={"HOME": str(tmp_path)})
        assert (status, list(checks)) == (3, ["link"])
        assert "ssh-keyscan" in checks["link"]["next_step"]
        (tmp_path / ".ssh").mkdir(mode=0o700)
        (tmp_path / ".ssh" / "known_hosts").write_text(sshd.known_hosts.read_text())
        _, checks = doctor("gpu-01", cwd=tmp_path, env={"HOME": str(tmp_path)})
        assert checks["link"]["level"] == "ok"
        assert "leftovers" in checks


def test_the_smallest_launch_of_a_sweep_decides_how_many_cards_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    head = (
        "name: x\nmodel: made/up\nhost: local\nlaunch: {flags: {tp: 8, pp-size: 2, nnodes: 2}}\n"
    )
    path.write_text(f"{head}matrix: {{attention-backend: [triton]}}\n")
    assert ranks_of(load_sweep(path)) == 8
    path.write_text(f"{head}matrix: {{tp-size: [4, 8]}}\n")
    assert ranks_of(load_sweep(path)) == 4


@pytest.mark.parametrize("word", ["nowhere", "missing.yaml"])
def test_a_host_that_nobody_knows_is_refused(tmp_path: Path, word: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sglsweep", "doctor", word],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert word in done.stderr


def test_a_cut_model_beside_a_whole_one_costs_attempts_but_not_the_host(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    whole = len(header).to_bytes(8, "little") + header + bytes(4)
    for name, content in (("whole", whole), ("cut", whole[:-1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(content)
    home = {"HOME": str(tmp_path), "PATH": "/nowhere"}
    _, alone = doctor("local", "--model", str(tmp_path / "cut"), cwd=tmp_path, env=home)
    assert alone[f"model {tmp_path / 'cut'}"]["level"] == "problem"
    (tmp_path / "sweep.yaml").write_text(
        "name: x\nmodel: whole\nhost: local\nmatrix: {model: [whole, cut]}\n"
    )
    _, both = doctor("sweep.yaml", cwd=tmp_path, env=home)
    assert (both["model whole"]["level"], both["model cut"]["level"]) == ("ok", "warning")


def test_every_slot_has_its_port_looked_at_and_its_cards_named(tmp_path: Path) -> None:
    folder = small_sweep(tmp_path, hosts="local: {slots: 3}\n")
    (tmp_path / "bin").mkdir()
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text(_SMI.format(pid=os.getpid()))
    smi.chmod(0o755)
    env = {**folder.env, "PATH": f"{smi.parent}:{os.environ['PATH']}"}
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", folder.port + 2))
        holder.listen()
        _, checks = doctor("sweep.yaml", cwd=tmp_path, env=env)
    assert checks["slots"]["level"] == "warning"
    assert "GPUs 0 | 0 | 0 (memory shared)" in checks["slots"]["said"]
    levels = [checks[f"port {folder.port + n}"]["level"] for n in range(3)]
    assert levels == ["ok", "ok", "warning"]
