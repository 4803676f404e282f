"""What a host's facts mean: each thing that is wrong is named with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from sglsweep.onhost.facts import belonging
from sglsweep.probe.builds import judge_build, judge_model
from sglsweep.probe.checks import Check, Level, Wants
from sglsweep.probe.gpus import judge_fit
from sglsweep.probe.machine import judge_machine

ID = "0123456789abcdef" * 4
GIB = 1 << 30


def card(index: int, **changes: object) -> dict[str, object]:
    """Return a card of the lead case, free and whole."""
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA RTX PRO 6000",
        "memory_total_mib": 97887,
        "memory_used_mib": 4,
        "compute_capability": "12.0",
        "driver_version": "580.95.05",
        "power_limit_w": 600.0,
        "power_max_limit_w": 600.0,
        "pcie_link_width_current": 16,
        "pcie_link_width_max": 16,
        "temperature_c": 35,
        "compute_mode": "Default",
        **changes,
    }


def facts(**changes: object) -> dict[str, Any]:
    """Return a host with eight good cards."""
    disks = [("/root/.sglsweep", 100), ("/tmp", 100), ("/dev/shm", 64)]  # noqa: S108 - facts
    return {
        "os": "Ubuntu 24.04",
        "kernel": "6.8.0",
        "driver": "580.95.05",
        "user": {"name": "me"},
        "cpu": {"usable": 64, "load": [1.0, 1.0, 1.0]},
        "memory": {"total_mib": 1_000_000, "available_mib": 900_000},
        "cgroup": {"memory_max": None},
        "disks": [
            {"path": path, "free": size * GIB, "total": 200 * GIB if size == 100 else size * GIB,
             "inodes_free": 1_000_000, "is_writable": True}
            for path, size in disks
        ],
        "limits": {"nofile": [1024, 1048576], "nproc": [9999, 9999], "as": ["unlimited"] * 2},
        "gpus": [card(index) for index in range(8)],
        "gpu_processes": [],
        "xids": [],
        "sessions": {"kills_user_processes": False, "lingers": False},
        "port": {"port": 30000, "is_free": True},
        "cuda_toolkit": {"nvcc": "/usr/local/cuda/bin/nvcc", "nvcc_version": "12.9.86"},
        "tools": {"ninja": "/x/ninja", "g++": "/usr/bin/g++"},
        "errors": {},
        **changes,
    }  # fmt: skip


def judged(**changes: object) -> list[Check]:
    return list(judge_machine(facts(**changes), Wants(workdir="/root/.sglsweep")))


def holding(**changes: object) -> dict[str, object]:
    """Return a process that holds card 3."""
    return {"gpu_uuid": "GPU-3", "pid": 4121, "memory_mib": 80000, "command": "python3 -m vllm",
            "user": "bob", "container": None, "unit": None, "slurm_job": None, "pod": None,
            "keeper_marker": None, **changes}  # fmt: skip


def test_a_good_host_has_nothing_but_ok() -> None:
    found = judged()
    assert [c for c in found if c.level is not Level.OK] == []
    assert {"gpus", "gpu memory", "memory", "port 30000"} <= {c.name for c in found}


CASES: list[tuple[dict[str, object], Level, str, str]] = [
    ({"gpus": []}, Level.PROBLEM, "no NVIDIA GPU", "--gpus all"),
    ({"gpus": None, "errors": {"gpus": "no driver"}}, Level.PROBLEM, "no driver", "nvidia-smi"),
    (
        {"gpus": [card(0), card(1, pcie_link_width_current=4)]},
        Level.WARNING, "x4 of x16", "Reseat",
    ),
    ({"gpus": [card(0, power_limit_w=300.0)]}, Level.WARNING, "300 W of 600 W", "-i 0 -pl 600"),
    ({"gpus": [card(0), card(1, power_limit_w=500.0)]}, Level.WARNING, "differ", "-pl"),
    ({"gpus": [card(0), card(1, name="NVIDIA H200")]}, Level.WARNING, "not alike", "gpus:"),
    ({"gpus": [card(0, memory_used_mib=9000)]}, Level.PROBLEM, "cannot be seen", "fuser"),
    ({"gpus": [card(0, compute_mode="Prohibited")]}, Level.PROBLEM, "Prohibited", "-c 0"),
    ({"gpu_processes": [holding()]}, Level.PROBLEM, "pid 4121 (python3 -m vllm)", "kill 4121"),
    (
        {"gpu_processes": [holding(slurm_job="77")]},
        Level.PROBLEM, "Slurm job 77", "scancel 77",
    ),
    (
        {"gpu_processes": [holding(unit={"name": "vllm.service", "is_user": False})]},
        Level.PROBLEM, "unit vllm.service", "sudo systemctl stop vllm.service",
    ),
    (
        {"gpu_processes": [holding(container={
            "id": "0123", "engine": "docker", "name": "vllm", "restart": "always", "image": "v:1",
        })]},
        Level.PROBLEM, "docker container vllm (v:1, restart policy always)",
        "docker update --restart=no vllm",
    ),
    ({"gpu_processes": [holding(keeper_marker="ab-0001")]}, Level.PROBLEM, "80000", "clean HOST"),
    ({"xids": ["[Mon] NVRM: Xid (PCI:0000:01:00): 79"]}, Level.WARNING, "Xid", "restart"),
    (
        {"port": {"port": 30000, "is_free": False, "pid": 9, "command": "nginx", "user": "www"}},
        Level.PROBLEM, "pid 9 (nginx) of user www", "kill 9",
    ),
    (
        {"sessions": {"kills_user_processes": True, "lingers": False}},
        Level.PROBLEM, "last session", "loginctl enable-linger me",
    ),
    (
        {"limits": {"nofile": [1024, 1024], "nproc": [9999, 9999], "as": ["unlimited"] * 2}},
        Level.WARNING, "1024 open files", "limits.conf",
    ),
    ({"limits": {"as": [4 * GIB, 4 * GIB]}}, Level.PROBLEM, "4 GiB", "ulimit -v"),
    ({"errors": {"disks": "no answer in 20 s"}}, Level.WARNING, "no answer", "by hand"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "level", "said", "step"), CASES, ids=lambda c: str(c)[:40])
def test_what_is_wrong_is_named_with_the_way_out(
    changes: dict[str, object], level: Level, said: str, step: str
) -> None:
    wrong = [c for c in judged(**changes) if c.level is not Level.OK]
    assert [c.level for c in wrong] == [level]
    assert said in wrong[0].said
    assert step in wrong[0].next_step


@pytest.mark.parametrize(
    ("path", "change", "level"),
    [
        ("/root/.sglsweep", {"is_writable": False}, Level.PROBLEM),
        ("/root/.sglsweep", {"free": 1000}, Level.PROBLEM),
        ("/root/.sglsweep", {"inodes_free": 0}, Level.PROBLEM),
        ("/tmp", {"free": 2 * GIB}, Level.WARNING),  # noqa: S108 - a fact
        ("/dev/shm", {"total": 64 << 20}, Level.PROBLEM),  # noqa: S108 - a fact
    ],
)
def test_disks_that_would_fail_a_launch_are_found(
    path: str, change: dict[str, object], level: Level
) -> None:
    disks = [{**d, **(change if d["path"] == path else {})} for d in facts()["disks"]]
    wrong = [c for c in judged(disks=disks) if c.level is not Level.OK]
    assert [c.level for c in wrong] == [level]
    assert wrong[0].next_step


def test_cards_that_the_host_may_not_use_are_not_judged() -> None:
    wants = Wants(gpus=(0, 1, 2), workdir="/root/.sglsweep")
    found = judge_machine(facts(gpu_processes=[holding()]), wants)
    assert all(c.level is Level.OK for c in found)


@pytest.mark.parametrize(
    ("needs", "level"), [(True, Level.PROBLEM), (False, Level.OK), (None, Level.WARNING)]
)
def test_no_card_is_as_bad_as_the_build_needs_one(*, needs: bool | None, level: Level) -> None:
    found = judge_machine(facts(gpus=[]), Wants(needs_gpu=needs, workdir="/root/.sglsweep"))
    assert [c.level for c in found if c.name == "gpus"] == [level]


def test_more_ranks_than_cards_are_a_problem() -> None:
    wrong = [
        c
        for c in judge_machine(facts(), Wants(workdir="/root/.sglsweep", ranks=16))
        if c.next_step
    ]
    assert [c.said for c in wrong] == ["16 are needed (tp x pp), 8 may be used"]


def test_weights_that_cannot_fit_the_cards_of_a_launch_are_a_problem() -> None:
    known = {"bytes": 450 * GIB}
    assert list(judge_fit("m", known, facts(), Wants(ranks=8))) == []
    (found,) = judge_fit("m", known, facts(), Wants(ranks=4))
    assert (found.level, found.said) == (
        Level.PROBLEM, "450 GiB of weights for 382 GiB on 4 cards",
    )  # fmt: skip


CGROUPS = [
    ("0::/system.slice/vllm.service\n", "unit", {"name": "vllm.service", "is_user": False}),
    (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n",
        "unit", {"name": "x.service", "is_user": True},
    ),
    ("0::/user.slice/user-1000.slice/session-3.scope\n", "unit", None),
    ("0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n", "slurm_job", "4242"),
    ("1:memory:/slurm/uid_1000/job_4242/step_batch\n", "slurm_job", "4242"),
    (
        "0::/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/x.scope\n",
        "pod", "01234567_89ab_cdef_0123_456789abcdef",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "expected"), CGROUPS)
def test_a_cgroup_tells_what_a_process_is_part_of(text: str, kind: str, expected: object) -> None:
    assert belonging(text)[kind] == expected


@pytest.mark.parametrize(
    "text", [f"0::/system.slice/docker-{ID}.scope\n", f"3:memory:/docker/{ID}\n"]
)
def test_a_container_is_known_without_its_engine(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = belonging(text)
    assert found["container"] == {
        "id": ID[:12], "engine": None, "name": None, "restart": None, "image": None,
    }  # fmt: skip
    assert found["unit"] is None


def built(torch_cuda: str | None, **changes: object) -> list[Check]:
    packages = {"torch": "2.9.1", "flashinfer-python": "0.6.1"}
    python = {"sglang": "0.5.9", "packages": packages, "torch_cuda": torch_cuda}
    return list(judge_build("stock", python, facts(**changes), 500))


def test_a_build_needs_driver_and_compilers_only_where_it_is_made_for_cuda() -> None:
    bare: dict[str, object] = {"cuda_toolkit": {}, "tools": {}, "driver": "535.10"}
    assert [c.level for c in built(None, **bare)] == [Level.OK]
    said, driver, compilers = built("13.0", **bare)
    assert "SGLang 0.5.9, 500 flags, torch 2.9.1" in said.said
    assert (driver.level, "580" in driver.said) == (Level.PROBLEM, True)
    assert "no nvcc and no ninja and no g++" in compilers.said
    assert [c.level for c in built("12.8")] == [Level.OK]


def test_an_old_nvcc_is_named_where_the_cards_are_newer() -> None:
    toolkit = {"nvcc": "/usr/bin/nvcc", "nvcc_version": "12.4.99"}
    found = built("12.8", cuda_toolkit=toolkit)
    assert "12.4.99 cannot compile for compute capability 12" in found[-1].said


def model(**changes: object) -> dict[str, object]:
    shard = {"name": "model-1.safetensors", "size": GIB}
    return {"found": True, "path": "/m", "files": [shard], "missing": [], "bytes": GIB,
            "incomplete": 0, "commit": "abc", "config": {"vocab_size": 8}, **changes}  # fmt: skip


@pytest.mark.parametrize(
    ("known", "level", "said"),
    [
        (model(), Level.OK, "1.0 GiB in 1 weight file, commit abc"),
        (model(missing=["model-2.safetensors"]), Level.PROBLEM, "model-2.safetensors"),
        (model(files=[{"name": "a.safetensors", "size": None}]), Level.PROBLEM, "a.safetensors"),
        (model(damaged=["model-1.safetensors"]), Level.PROBLEM, "not as long as"),
        (model(config=None), Level.PROBLEM, "no config.json"),
        (model(files=[]), Level.WARNING, "no weight files"),
        (model(incomplete=2), Level.WARNING, "2 downloads are unfinished"),
        ({"found": False}, Level.WARNING, "not on this host"),
        (None, Level.PROBLEM, "broken"),
    ],
)
def test_a_model_s_files_must_be_complete(
    known: dict[str, object] | None, level: Level, said: str
) -> None:
    found = judge_model("org/name", known, is_offline=False, error="broken")
    assert (found.level, said in found.said) == (level, True), found


def test_a_model_that_may_not_be_downloaded_must_be_there() -> None:
    assert judge_model("org/name", {"found": False}, is_offline=True).level is Level.PROBLEM
    assert judge_model("/models/x", {"found": False}, is_offline=False).level is Level.PROBLEM
