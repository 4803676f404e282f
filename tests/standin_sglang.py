"""A package that stands where SGLang stands: it parses, resolves and refuses as SGLang does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglsweep.onhost import resolve as program

PROGRAM = Path(program.__file__)
GLM = {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
SM120 = {
    "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "capability": [12, 0],
    "memory_mib": 97887,
    "sm_count": 188,
    "count": 8,
}

# What it does is what SGLang 0.5.9 does with the flags of the lead case, in a few lines.
_SERVER_ARGS = """
import argparse, dataclasses, json, logging, os, time
import torch
if torch.cuda.is_available():
    import sgl_kernel

logger = logging.getLogger(__name__)
_left_behind = []
_DTYPES = ["auto", "bf16", "fp8_e4m3"]

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    attention_backend: str = None
    kv_cache_dtype: str = "auto"
    nsa_decode_backend: str = None
    mem_fraction_static: float = None
    port: int = 30000
    host: str = "127.0.0.1"
    random_seed: int = None
    note: str = None

    def __post_init__(self):
        self.random_seed = time.time_ns()
        with open(os.path.join(self.model_path, "config.json")) as file:
            kind = json.load(file)["architectures"][0]
        if self.attention_backend == "crash":
            os.abort()
        if self.attention_backend == "exit":
            os._exit(3)
        if self.attention_backend == "hang":
            time.sleep(600)
        if self.attention_backend == "slip":
            {}["not SGLang saying no"]
        if self.attention_backend == "refused":
            raise ValueError("attention refused is not supported for\\nthis model")
        if self.attention_backend == "leaves":
            _left_behind.append(1)
            self.note = "is first"
        elif _left_behind:
            self.note = "sees what another left"
        if self.attention_backend == "environment":
            os.environ["LEAK"] = "yes"
        if os.environ.get("LEAK"):
            self.note = "leaked"
        if self.attention_backend is None:
            self.attention_backend = os.environ.get("DEFAULT_ATTENTION", "nsa")
        if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 10:
            if self.kv_cache_dtype == "auto":
                self.kv_cache_dtype = "fp8_e4m3"
                logger.warning("Setting KV cache dtype to fp8_e4m3 for %s.", kind)
        if self.nsa_decode_backend is None:
            self.nsa_decode_backend = "flashmla_kv"
        if self.mem_fraction_static is None:
            self.mem_fraction_static = 0.5
            if torch.cuda.is_available():
                self.mem_fraction_static = torch.cuda.mem_get_info()[0] / 2**37

    def check_server_args(self):
        assert self.nsa_decode_backend != "checked", "nsa backend 'checked' is checked late"

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", required=True)
        parser.add_argument("--attention-backend", type=str)
        parser.add_argument("--kv-cache-dtype", default="auto", choices=_DTYPES)
        parser.add_argument("--nsa-decode-backend", type=str)
        parser.add_argument("--mem-fraction-static", type=float)
        parser.add_argument("--port", type=int, default=30000)
        parser.add_argument("--host", default="127.0.0.1")

def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="launch_server.py")
    ServerArgs.add_cli_args(parser)
    return ServerArgs(**vars(parser.parse_args(argv)))
"""
_TORCH = """
class version:
    cuda = None
class library:
    @staticmethod
    def register_fake(name, *_, **__):
        raise RuntimeError(f"operator {name} does not exist")
class cuda:
    is_available = staticmethod(lambda: False)
"""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A folder to put on PYTHONPATH."""

    path: Path

    def ask(self, request: dict[str, Any], env: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Put a question to `resolve.py cells` as a host does."""
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "cells"],
            input=json.dumps(request).encode(),
            capture_output=True,
            env={**env, "PYTHONPATH": str(self.path)},
            timeout=120,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)


def make_standin(folder: Path, *, version: str = "0.5.9", on_import: str = "") -> StandIn:
    """Write the package."""
    package = folder / "sglang" / "srt"
    package.mkdir(parents=True)
    (folder / "sglang" / "__init__.py").write_text(f"__version__ = {version!r}\n{on_import}\n")
    (package / "__init__.py").write_text("")
    (package / "server_args.py").write_text(_SERVER_ARGS)
    (folder / "torch.py").write_text(_TORCH)
    return StandIn(folder)
