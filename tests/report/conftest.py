"""Runs as they come out of real sweeps, built by hand: flags, words and numbers are SGLang's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sglsweep.attempt import (
    Attempt,
    Blame,
    Diagnosis,
    End,
    EndKind,
    Instants,
    KnownIssue,
    Outcome,
    Proof,
    ProofStep,
    Scalar,
    StepState,
    Suspect,
    Timings,
)
from sglsweep.flags import Launch, Target, launch_argv
from sglsweep.matrix import Cell, Value
from sglsweep.report.view import RunView, view_of
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OK, FAILED, SKIPPED = StepState.OK, StepState.FAILED, StepState.NOT_APPLICABLE


class Stored:
    """A run in memory, as a journal would give it."""

    def __init__(self, folder: Path, facts: Mapping[str, object], outcomes: list[Outcome]) -> None:
        self.folder = folder
        self.facts = facts
        self.outcomes = outcomes
        self.running: list[Attempt] = []

    def history(self) -> tuple[Outcome, ...]:
        return tuple(self.outcomes)

    def open_attempts(self) -> tuple[Attempt, ...]:
        return tuple(self.running)


class Night:
    """Writes down attempt after attempt of one sweep."""

    def __init__(self, *, python: str, model: str, host: str, launch: Launch) -> None:
        self.python, self.model, self.host, self.launch = python, model, host, launch
        self.facts: dict[str, object] = {}
        self.outcomes: list[Outcome] = []
        self.minutes = 60.0

    def attempt(self, cell: Mapping[str, Value], *, why: str, build: str = "stock") -> Attempt:
        number = len(self.outcomes) + 1
        model = str(cell.get("model") or self.model)
        target = Target(build=build, model=model, port=30000)
        command = launch_argv(self.launch, Cell(cell), target)
        hours, minutes = divmod(int(self.minutes), 60)
        return Attempt(
            number=number,
            cell=Cell(cell),
            build=build,
            model=model,
            python=self.python,
            argv=command.argv,
            env=command.env,
            launch_key=command.launch_key,
            host=self.host,
            port=30000,
            why=why,
            started_at=f"2026-02-19T{hours:02d}:{minutes:02d}:00+00:00",
            keeper_dir=f"/home/me/.sglsweep/{number:04d}",
        )

    def timed(self, took_s: float, ready_s: float | None) -> Timings:
        """Return an attempt's times: six seconds to launch it, fourteen to end it, on a GPU."""
        if not self.facts.get("gpus"):
            return Timings(total_s=took_s, ready_s=ready_s)
        begun = self.minutes * 60
        return Timings(
            total_s=took_s,
            ready_s=ready_s,
            stop_s=14.0,
            launch_s=6.0,
            server_s=took_s - 20.0,
            last_words_s=2.0,
            group_gone_s=9.5,
            gpu_free_s=12.0,
            port_free_s=9.6,
            at=Instants(
                call_at=1000.0,
                decided_at=1000.0 + begun,
                exec_at=1006.0 + begun,
                judged_at=986.0 + begun + took_s,
                closed_at=1000.0 + begun + took_s,
            ),
        )

    def add(  # noqa: PLR0913 - an outcome has this many sides
        self,
        cell: Mapping[str, Value],
        diagnosis: Diagnosis,
        *,
        why: str = "next in the matrix",
        took_s: float = 20.0,
        end: End | None = None,
        proof: Proof | None = None,
        ready_s: float | None = None,
    ) -> Outcome:
        kind = EndKind.PROVEN if diagnosis.verdict is Verdict.SERVING else EndKind.FATAL_LINE
        outcome = Outcome(
            attempt=self.attempt(cell, why=why),
            end=end or End(kind=kind, exit_status=-9),
            diagnosis=diagnosis,
            proof=proof,
            timings=self.timed(took_s, ready_s),
            facts=self.facts,
        )
        self.minutes += took_s / 60
        self.outcomes.append(outcome)
        return outcome


def steps(*words: str) -> tuple[ProofStep, ...]:
    """Return steps from "name", "name: detail", with - for skipped and ! for failed in front."""
    made = []
    for word in words:
        name, _, detail = word.lstrip("-!?").partition(": ")
        state = {"-": SKIPPED, "!": FAILED, "?": StepState.SUSPECT}.get(word[0], OK)
        made.append(ProofStep(name=name, state=state, detail=detail))
    return tuple(made)


def diagnosis(verdict: Verdict, phase: Phase, cause: str | None, **more: Any) -> Diagnosis:  # noqa: ANN401 - its own fields
    return Diagnosis(verdict=verdict, phase=phase, cause=cause, catalogue="2026.11", **more)


CPU_FACTS: dict[str, object] = {
    "schema": 1,
    "gpus": [],
    "errors": {},
    "user": {"name": "me", "uid": 1000, "home": "/home/me"},
    "cpu": {"model": "Intel Xeon Platinum 8481C", "count": 2, "load": [0.7, 1.2, 1.1]},
    "memory": {"total_mib": 32102, "available_mib": 23446},
    "os": "Debian GNU/Linux 12 (bookworm)",
    "kernel": "6.1.0-18-cloud-amd64",
    "builds": {
        "stock": {
            "version": "3.11.7",
            "packages": {
                "sglang": "0.5.23",
                "torch": "2.13.0+cpu",
                "flashinfer-python": None,
                "transformers": "5.19.0",
            },
        }
    },
}
CPU_NUMBERS: dict[str, Any] = {
    "weights_gb": 0.02,
    "kv_gb": 0.0,
    "kv_tokens": 8192,
    "max_total_num_tokens": 8192,
    "context_len": 2048,
    "max_running_requests": 8,
    "available_gpu_mem_gb": 21.66,
    "ttft_p50_s": 0.0421,
    "ttft_p99_s": 0.0783,
    "tpot_p50_s": 0.0249,
}
HEALTHY = (
    "answers",
    "server-info",
    "greedy",
    "sampled",
    "two-at-once",
    "prefix-hit",
    "long-decode",
    "chunked-prefill",
    "-chat: the model has no chat template",
    "-long-context: the model holds 2,048 tokens",
    "load",
)


def serving_on_cpu(**effective: Scalar) -> Diagnosis:
    return diagnosis(
        Verdict.SERVING,
        Phase.DECODE,
        "serving",
        line=62,
        evidence="The server is fired up and ready to roll!",
        sglang_version="0.5.23",
        metrics=CPU_NUMBERS,
        effective={"attention-backend": "torch_native", "kv-cache-dtype": "auto", **effective},
        suspects=(
            Suspect(
                "sglang-kernel-missing",
                3,
                "sgl_kernel is not available: CPU kernels fall back to torch | slow",
            ),
        ),
    )


def cpu_map(folder: Path) -> Stored:
    """The demo: a map of tiny models on a machine without a GPU."""
    night = Night(
        python="/opt/sglang/bin/python",
        model="models/gpt2-ok",
        host="local",
        launch=Launch(
            flags={
                "device": "cpu",
                "max-total-tokens": 8192,
                "chunked-prefill-size": 512,
                "max-running-requests": 8,
                "sleep-on-idle": True,
            },
            env={"OMP_NUM_THREADS": "2"},
        ),
    )
    night.facts = CPU_FACTS
    check = "env.SGLANG_ENABLE_NAN_LOGITS_CHECK"
    base: dict[str, Value] = {
        "model": "models/gpt2-ok",
        "attention-backend": None,
        "context-length": None,
        "mem-fraction-static": None,
        check: None,
    }
    night.add(
        {
            **base,
            "model": "models/gpt2-large",
            "mem-fraction-static": 0.0001,
            "max-total-tokens": None,
        },
        diagnosis(
            Verdict.OOM,
            Phase.WEIGHTS_DONE,
            "oom-kv-pool",
            line=41,
            evidence="RuntimeError: Not enough memory. Please try to increase "
            "--mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.0001",
            blames=(Blame("mem-fraction-static", 0.0001),),
            next_step="Raise mem-fraction-static: the weights alone take more than it leaves. "
            "Lowering it, or max-running-requests, does nothing here.",
            remedy={"mem-fraction-static": 0.02},
            sglang_version="0.5.23",
        ),
        why="included by the user",
        took_s=19.4,
    )
    night.add(
        base,
        serving_on_cpu(),
        why="first cell of the matrix",
        took_s=33.1,
        ready_s=14.2,
        proof=Proof(steps=steps(*HEALTHY), tokens_per_s=287.4, concurrency=8),
    )
    night.add(
        {**base, "attention-backend": "triton"},
        diagnosis(
            Verdict.ENV_ERROR,
            Phase.WARMUP,
            "no-gpu-driver",
            line=88,
            evidence="RuntimeError: 0 active drivers ([]). There should only be one.",
            blames=(Blame("attention-backend", "triton"),),
            next_step="Triton needs a GPU driver: choose an attention backend that runs on the "
            "CPU (torch_native, intel_amx).",
            remedy={"attention-backend": "torch_native"},
            sglang_version="0.5.23",
        ),
        why="differs from 2, which serves, only in attention-backend",
    )
    night.add(
        {**base, "context-length": 1024},
        serving_on_cpu(),
        why="differs from 2 only in context-length",
        took_s=31.0,
        ready_s=13.9,
        proof=Proof(steps=steps(*HEALTHY), tokens_per_s=291.0, concurrency=8),
    )
    night.add(
        {**base, "context-length": 999999},
        diagnosis(
            Verdict.BAD_CONFIG,
            Phase.START,
            "context-too-long",
            line=24,
            evidence="ValueError: Warning: User-specified context_length (999999) is greater than "
            "the derived context_length (2048). This may lead to incorrect model outputs or CUDA "
            "errors.",
            blames=(Blame("context-length", 999999),),
            next_step="Use at most 2048, the model's own length.",
        ),
        took_s=9.7,
        end=End(kind=EndKind.EXITED, exit_status=1),
    )
    night.add(
        {**base, "model": "models/gpt2-nan"},
        diagnosis(
            Verdict.GARBAGE_OUTPUT,
            Phase.DECODE,
            "collapse",
            next_step="Start it with SGLANG_ENABLE_NAN_LOGITS_CHECK=1: it names NaN logits.",
            remedy={"env.SGLANG_ENABLE_NAN_LOGITS_CHECK": "1"},
            evidence="48 sampled tokens of 2 prompts are all id 0",
            metrics=CPU_NUMBERS,
            sglang_version="0.5.23",
        ),
        took_s=24.0,
        ready_s=14.0,
        end=End(
            kind=EndKind.PROOF_FAILED, exit_status=0, detail="step sampled: one token for ever"
        ),
        proof=Proof(
            steps=steps(
                "answers",
                "server-info",
                "greedy",
                "!sampled: 48 tokens at temperature 1 are all id 0",
            )
        ),
    )
    night.add(
        {**base, "model": "models/gpt2-nan", check: "1"},
        diagnosis(
            Verdict.NAN_IN_PROBS,
            Phase.WARMUP,
            "nan-logits",
            line=97,
            evidence="RuntimeError: NaN detected! sampler: next_token_logits",
            next_step="NaN comes from the weights or from a kernel: try the same flags with "
            "another checkpoint, then another attention backend.",
            sglang_version="0.5.23",
        ),
        why="differs from 6 only in the NaN check",
    )
    night.add(
        {**base, "model": "models/gpt2-truncated"},
        diagnosis(
            Verdict.LOAD_ERROR,
            Phase.WEIGHTS,
            "weights-truncated",
            line=39,
            evidence="safetensors_rust.SafetensorError: Error while deserializing header: "
            "incomplete metadata, file not fully covered",
            next_step="Fetch the file again and compare its size with the hub's.",
            sglang_version="0.5.23",
        ),
    )
    facts = {
        "name": "demo-cpu",
        "model": "models/gpt2-ok",
        "goal": ["map"],
        "cells": 9,
        "budget": {"attempts": 12, "hours": 1},
        "axes": [
            {
                "name": "model",
                "values": [f"models/gpt2-{m}" for m in ("ok", "nan", "truncated", "large")],
            },
            {"name": "attention-backend", "values": [None, "triton"]},
            {"name": "context-length", "values": [None, 1024, 999999]},
            {"name": "mem-fraction-static", "values": [None, 0.0001]},
            {"name": check, "values": [None, "1"]},
        ],
        "excluded": [
            {
                "when": {"context-length": 1024, "attention-backend": "triton"},
                "count": 30,
                "because": "one question at a time",
            },
            {
                "when": {"model": "models/gpt2-truncated", "attention-backend": "triton"},
                "count": 4,
                "because": "weights that cannot be read say nothing about a backend",
            },
        ],
        "hypotheses": [
            {
                "id": "nan-check",
                "says": "the model that says token 0 for ever has NaN in its logits",
                "predicts": {"model": "models/gpt2-nan", check: "1", "verdict": "nan-in-probs"},
            },
            {
                "id": "backend",
                "says": "triton cures the NaN",
                "predicts": {
                    "model": "models/gpt2-nan",
                    "attention-backend": "triton",
                    "verdict": "serving",
                },
            },
        ],
        "finish": "every cell that could teach something was launched",
        "catalogue": "2026.11",
        "tool": "0.1.0",
    }
    return Stored(folder, facts, night.outcomes)


SM120_FACTS: dict[str, object] = {
    "gpus": [
        {
            "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "memory_total_mib": 97887,
            "compute_capability": "12.0",
            "power_limit_w": 600.0,
            "driver_version": "580.65.06",
        }
    ]
    * 8,
    "cpu": {"model": "AMD EPYC 9575F", "count": 128},
    "memory": {"total_mib": 1547000},
    "os": "Ubuntu 24.04.1 LTS",
    "kernel": "6.8.0-51-generic",
    "builds": {
        "stock": {
            "version": "3.12.3",
            "torch_cuda": "13.0",
            "packages": {"sglang": "0.5.9", "torch": "2.9.1", "transformers": "5.2.0"},
        }
    },
}
GLM_NUMBERS: dict[str, Any] = {
    "weights_gb": 57.06,
    "avail_before_weights_gb": 94.01,
    "avail_after_weights_gb": 36.95,
    "TP0/avail_after_graphs_gb": 6.71,
    "TP5/avail_after_graphs_gb": 6.6,
    "kv_gb": 25.56,
    "kv_tokens": 273984,
    "max_total_num_tokens": 273984,
    "context_len": 202752,
    "max_running_requests": 64,
    "graph_s": 7.77,
    "graph_gb": 1.62,
    "avail_after_graphs_gb": 6.6,
}
NAN = "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"
FP4_RACE = KnownIssue(
    title="CUTLASS FP4 GEMM race",
    url="https://github.com/flashinfer-ai/flashinfer/pull/2716",
)


def _nan(line: int, kv_dtype: str = "fp8_e4m3") -> Diagnosis:
    return diagnosis(
        Verdict.NAN_IN_PROBS,
        Phase.DECODE,
        "nan-in-probs",
        line=line,
        rank="TP3",
        evidence=NAN,
        blames=(Blame("kv-cache-dtype", "fp8_e4m3"), Blame("nsa-decode-backend", None)),
        known_issues=(FP4_RACE,),
        next_step="Launch it with kv-cache-dtype bf16, or with both nsa backends trtllm.",
        remedy={"kv-cache-dtype": "bf16"},
        sglang_version="0.5.9",
        metrics=GLM_NUMBERS,
        effective={"kv-cache-dtype": kv_dtype, "attention-backend": "flashinfer"},
        suspects=(
            Suspect(
                "deepgemm-ue8m0",
                212,
                "DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0. This might "
                "cause accuracy degradation on Blackwell.",
            ),
        ),
    )


def glm_night(python: str = "/opt/sglang/bin/python") -> Night:
    night = Night(
        python=python,
        model="lukealonso/GLM-5-NVFP4",
        host="blackwell",
        launch=Launch(
            flags={
                "served-model-name": "glm-5",
                "reasoning-parser": "glm45",
                "trust-remote-code": True,
                "tp": 8,
                "quantization": "modelopt_fp4",
                "attention-backend": "flashinfer",
                "api-key": "${API_KEY}",
            },
            env={"CUDA_HOME": "/usr/local/cuda", "HF_TOKEN": "${HF_TOKEN}"},
        ),
    )
    night.facts = SM120_FACTS
    return night


def lead_case(folder: Path, *, is_served: bool = True) -> Stored:
    """The night that this tool exists for, with its end."""
    night = glm_night()
    first: dict[str, Value] = {
        "mem-fraction-static": 0.95,
        "kv-cache-dtype": "fp8_e4m3",
        "nsa-decode-backend": None,
        "fp4-gemm-backend": None,
        "disable-cuda-graph": None,
    }
    night.add(
        first,
        diagnosis(
            Verdict.OOM,
            Phase.GRAPH_CAPTURE,
            "oom-graph-capture",
            line=3902,
            rank="TP5",
            evidence="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. "
            "GPU 5 has a total capacity of 94.97 GiB of which 301.94 MiB is free.",
            blames=(Blame("mem-fraction-static", 0.95), Blame("cuda-graph-max-bs")),
            metrics={
                "avail_before_weights_gb": 94.01,
                "avail_after_weights_gb": 36.95,
                "kv_gb": 32.25,
                "kv_tokens": 345_600,
            },
            next_step="Lower mem-fraction-static to 0.88: 6.6 GB were missing at batch size 512.",
            remedy={"mem-fraction-static": 0.88},
            sglang_version="0.5.9",
        ),
        why="your script as it is",
        took_s=1440,
    )
    second = {**first, "mem-fraction-static": 0.88}
    night.add(second, _nan(4417), why="the remedy of 1", took_s=301)
    night.add(
        {**second, "nsa-decode-backend": "flashmla_sparse"},
        _nan(4420),
        why="blamed by 2",
        took_s=296,
    )
    night.add({**second, "disable-cuda-graph": True}, _nan(3120), why="graphs", took_s=270)
    bf16: dict[str, Value] = {**second, "kv-cache-dtype": "bf16", "disable-cuda-graph": None}
    night.add(
        bf16,
        _nan(5120, "bfloat16"),
        why="blamed by 2, 3 and 4",
        took_s=420,
        ready_s=201.0,
        end=End(kind=EndKind.FATAL_LINE, exit_status=-9, detail="died under the step load"),
        proof=Proof(
            steps=steps("answers", "greedy", "sampled", "prefix-hit", "!load: connection reset")
        ),
    )
    if is_served:
        night.add(
            {**bf16, "fp4-gemm-backend": "flashinfer_cudnn"},
            diagnosis(
                Verdict.SERVING,
                Phase.DECODE,
                "serving",
                line=2811,
                evidence="The server is fired up and ready to roll!",
                sglang_version="0.5.9",
                metrics=GLM_NUMBERS,
                effective={
                    "kv-cache-dtype": "bfloat16",
                    "attention-backend": "flashinfer",
                    "tp-size": 8,
                    "mem-fraction-static": 0.88,
                    "quantization": "modelopt_fp4",
                },
                suspects=(
                    Suspect("deepgemm-ue8m0", 212, "the scale_fmt of checkpoint is not ue8m0"),
                ),
            ),
            why="5 dies under load: the FP4 kernels are next",
            took_s=1140,
            ready_s=196.0,
            proof=Proof(
                steps=steps(
                    "answers",
                    "greedy",
                    "sampled",
                    "prefix-hit",
                    "long-decode",
                    "chunked-prefill",
                    "?known-answers: 7 of 8",
                    "-tools: no tool-call-parser",
                    "load",
                ),
                tokens_per_s=472.3,
                concurrency=8,
            ),
        )
        night.add(
            {**second, "fp4-gemm-backend": "flashinfer_cudnn"},
            _nan(4402),
            why="is the KV dtype still needed?",
            took_s=300,
        )
    facts = {
        "name": "glm5-nvfp4-sm120",
        "model": "lukealonso/GLM-5-NVFP4",
        "goal": ["first-serving", "explain"],
        "need": {"context": 65536, "concurrent": 4},
        "cells": 288,
        "axes": [
            {"name": "kv-cache-dtype", "values": ["fp8_e4m3", "bf16"]},
            {"name": "nsa-decode-backend", "values": [None, "flashmla_sparse", "trtllm"]},
            {"name": "fp4-gemm-backend", "values": [None, "flashinfer_cudnn"]},
            {"name": "disable-cuda-graph", "values": [None, True]},
        ],
        "excluded": [
            {
                "when": {"attention-backend": "triton"},
                "count": 96,
                "because": "not with NSA and an FP8 KV cache",
            }
        ],
        "refused": [
            {
                "when": {"nsa-decode-backend": "fa3"},
                "count": 24,
                "because": "FlashAttention v3 Backend requires SM>=80 and SM<=90.",
            }
        ],
        "equal": [
            {
                "cell": {"nsa-decode-backend": "flashmla_kv"},
                "count": 48,
                "because": "with flashinfer attention the nsa flags choose no kernel",
            }
        ],
        "hypotheses": [
            {
                "id": "graphs",
                "says": "graph capture makes the NaN",
                "predicts": {"disable-cuda-graph": True, "verdict": "serving"},
            },
            {
                "id": "kv-layout",
                "says": "the packed FP8 KV layout makes the NaN; bf16 serves",
                "predicts": {"kv-cache-dtype": "bf16", "verdict": "serving"},
            },
        ],
        "finish": "attempt 6 serves and is explained" if is_served else "the budget is spent",
        "catalogue": "2026.11",
    }
    return Stored(folder, facts, night.outcomes)


def nothing_serves(folder: Path) -> Stored:
    """The lead case's night as it was: nobody thought of the FP4 kernels."""
    return lead_case(folder, is_served=False)


def interrupted(folder: Path) -> Stored:
    """A laptop that was closed, a host that was lost, an attempt that runs."""
    night = glm_night()
    cell: dict[str, Value] = {"kv-cache-dtype": None, "mem-fraction-static": 0.88}
    night.add(
        cell,
        diagnosis(Verdict.INTERRUPTED, Phase.WEIGHTS, None),
        end=End(kind=EndKind.INTERRUPTED, detail="stopped by the user"),
        took_s=62,
    )
    night.add(
        {**cell, "kv-cache-dtype": "bf16"},
        diagnosis(Verdict.HOST_LOST, Phase.WEIGHTS_DONE, None),
        end=End(kind=EndKind.HOST_LOST, detail="no answer for 10 minutes; the machine rebooted"),
        took_s=801,
    )
    night.add(
        cell,
        diagnosis(
            Verdict.KILLED,
            Phase.WEIGHTS,
            "killed-host-oom",
            line=311,
            evidence="Out of memory: Killed process 4121 (sglang::scheduler)",
            next_step="Free host memory, or load fewer shards at once.",
        ),
        took_s=133,
    )
    facts = {"name": "glm5", "model": "lukealonso/GLM-5-NVFP4", "cells": 2}
    stored = Stored(folder, facts, night.outcomes)
    stored.running = [night.attempt({**cell, "kv-cache-dtype": "bf16"}, why="again")]
    return stored


def rehearsal(folder: Path) -> Stored:
    """A sweep over the stand-in server."""
    night = Night(
        python="/home/me/.venv/bin/python",
        model="lukealonso/GLM-5-NVFP4",
        host="local",
        launch=Launch(flags={"tp": 8}),
    )
    night.add(
        {"attention-backend": "flashinfer"},
        diagnosis(
            Verdict.SERVING,
            Phase.DECODE,
            "serving",
            line=10,
            evidence="The server is fired up and ready to roll!",
        ),
        ready_s=1.0,
        took_s=2.0,
        proof=Proof(steps=steps("answers", "greedy", "load"), tokens_per_s=99.0, concurrency=4),
    )
    facts = {"name": "rehearsal", "model": "lukealonso/GLM-5-NVFP4", "rehearsal": "glm5-sm120"}
    return Stored(folder, facts, night.outcomes)


HISTORIES = {
    "cpu-map": cpu_map,
    "lead-case": lead_case,
    "nothing-serves": nothing_serves,
    "interrupted": interrupted,
    "rehearsal": rehearsal,
}


@pytest.fixture(params=sorted(HISTORIES))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    """Each history once."""
    build = HISTORIES[request.param]
    return build(tmp_path / request.param)


@pytest.fixture
def run(stored: Stored) -> RunView:
    """Each history as reports see it."""
    return view_of(stored)


@pytest.fixture
def lead_case_run(tmp_path: Path) -> RunView:
    """The night that this tool exists for."""
    return view_of(lead_case(tmp_path / "lead-case"))


@pytest.fixture
def cpu_run(tmp_path: Path) -> RunView:
    """The demo."""
    return view_of(cpu_map(tmp_path / "cpu-map"))


@pytest.fixture
def demo(tmp_path: Path) -> Stored:
    """The demo, to be changed by a test before it is viewed."""
    return cpu_map(tmp_path / "demo")
