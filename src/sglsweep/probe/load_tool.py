"""Load tools beside the own ladder: which there are, and what each is called with.

A rung is one run of the tool: so many requests, so many in flight, prompts and answers of one
length. None of them may look for data or models on the network.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.probe.target import Target, Traffic

OWN, BENCH_SERVING, GUIDELLM, AIPERF = "own", "bench_serving", "guidellm", "aiperf"
_START_S = 180.0
"""A tool that imports torch and a tokenizer from a cold disk may take so long to begin."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # Some of them ask for the model's name through requests, which follows proxies.
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTool:
    """A load tool that is there.

    Attributes:
        name: as SWEEP.yaml calls it.
        argv: how it is begun.
        options: what its version knows; empty where that is not read.
    """

    name: str
    argv: tuple[str, ...]
    options: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """Its name for a reader; of SGLang's own the module, which names its generation."""
        return self.argv[-1] if self.name == BENCH_SERVING else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCommand:
    """One run of a load tool; `{folder}` in argv is a folder of its own on the host."""

    argv: tuple[str, ...]
    read: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One rung, for a tool.

    Attributes:
        url: the server's, on the host.
        seed: another one for each rung, so that no prompt is in the cache already.
        within_s: what the requests themselves may take.
    """

    url: str
    at_once: int
    count: int
    seed: int
    within_s: float


def tokenizer_of(target: Target) -> str | None:
    """Return the path or id that the server reads its tokenizer from."""
    found = target.words.get("tokenizer_path") or target.words.get("model_path")
    return str(found) if found else None


def why_not(name: str, found: Mapping[str, object], target: Target) -> str:
    """Return why a tool cannot be used, "" if it can.

    Args:
        name: of the tool.
        found: what `onhost/loadtools.py` said.
        target: the server.
    """
    if not target.has_tokenizer or tokenizer_of(target) is None:
        return f"{name} makes its prompts with the tokenizer, and the server has none"
    if name != BENCH_SERVING:
        programs = found.get("programs")
        is_there = isinstance(programs, dict) and any(programs.values())
        return "" if is_there else f"{name} is not installed on the host"
    known = found.get("bench_serving")
    if not isinstance(known, dict):
        return "the build has no bench_serving"
    if not known.get("has_random_ids") or "--max-concurrency" not in known["options"]:
        return "the build's bench_serving is too old: it would download its prompts"
    return ""


def tool_of(name: str, found: Mapping[str, object], python: str) -> LoadTool:
    """Return a tool for which `why_not` has nothing to say."""
    if name == BENCH_SERVING:
        known = found["bench_serving"]
        assert isinstance(known, dict)  # noqa: S101 - `why_not` was asked
        argv = (python, "-m", str(known["module"]))
        return LoadTool(name=name, argv=argv, options=frozenset(known["options"]))
    programs = found["programs"]
    assert isinstance(programs, dict)  # noqa: S101 - `why_not` was asked
    return LoadTool(name=name, argv=(next(p for p in programs.values() if p),))


def command(tool: LoadTool, target: Target, traffic: Traffic, shot: Shot) -> ToolCommand:
    """Return the run that measures one rung."""
    build = {BENCH_SERVING: _bench_serving, GUIDELLM: _guidellm, AIPERF: _aiperf}[tool.name]
    words, read = build(tool, target, traffic, shot)
    # An empty key keeps a key of the user's own environment from being sent.
    key = {"OPENAI_API_KEY": target.api_key or ""}
    return ToolCommand(
        argv=(*tool.argv, *words),
        read=read,
        timeout_s=_START_S + shot.within_s,
        env={**_quiet(tool, target), **key},
    )


def _quiet(tool: LoadTool, target: Target) -> dict[str, str]:
    """Return what keeps a tool off the network, and to its own packages."""
    # Offline, aiperf 0.13.0 takes a folder for the name of a repository and refuses it.
    is_folder = (tokenizer_of(target) or "").startswith(("/", "."))
    leave_out = is_folder and tool.name == AIPERF
    quiet = {k: v for k, v in _OFFLINE.items() if not (leave_out and k.endswith("_OFFLINE"))}
    # Packages that the launch lays over the build's are not for a program of its own.
    return quiet if tool.name == BENCH_SERVING else {**quiet, "PYTHONPATH": ""}


_Built = tuple[list[str], tuple[str, ...]]


def _bench_serving(tool: LoadTool, target: Target, traffic: Traffic, shot: Shot) -> _Built:
    tokenizer = tokenizer_of(target) or ""
    wanted = {
        "--backend": "sglang",
        "--base-url": shot.url,
        # Not "random": that samples ShareGPT, and downloads it.
        "--dataset-name": "random-ids",
        "--model": tokenizer,
        "--tokenizer": tokenizer,
        "--random-input-len": traffic.input,
        "--random-output-len": traffic.output,
        # A ratio of 1 makes every length the same.
        "--random-range-ratio": "1.0",
        "--num-prompts": shot.count,
        "--max-concurrency": shot.at_once,
        "--seed": shot.seed,
        "--warmup-requests": 1,
        "--output-file": "{folder}/result.jsonl",
    }
    switches = ("--tokenize-prompt", "--flush-cache", "--disable-tqdm", "--output-details")
    words = [w for o, v in wanted.items() if o in tool.options for w in (o, str(v))]
    return [*words, *(s for s in switches if s in tool.options)], ("result.jsonl",)


def _guidellm(tool: LoadTool, target: Target, traffic: Traffic, shot: Shot) -> _Built:
    del tool
    backend = {
        "kind": "openai_http",
        "target": shot.url,
        "model": "default",
        "request_format": "/v1/completions",
        "extras": {"body": {"ignore_eos": True}},
        **({"api_key": target.api_key} if target.api_key else {}),
    }
    words = [
        *("run", "--backend", json.dumps(backend)),
        *("--profile", f"kind=concurrent,streams={shot.at_once}"),
        *("--constraint", f"kind=max_requests,count={shot.count}"),
        *("--tokenizer", f"kind=hf_auto,model={tokenizer_of(target)}"),
        "--data",
        f"kind=synthetic_text,prompt_tokens={traffic.input},output_tokens={traffic.output}",
        *("--seed", f"kind=static,value={shot.seed}"),
        *("--output", "kind=json,path={folder}/result.json"),
        "--disable-console-interactive",
    ]
    return words, ("result.json",)


def _aiperf(tool: LoadTool, target: Target, traffic: Traffic, shot: Shot) -> _Built:
    del tool
    wanted = {
        "--model": "default",
        "--url": shot.url,
        "--endpoint-type": "completions",
        "--concurrency": shot.at_once,
        "--request-count": shot.count,
        "--warmup-request-count": 1,
        "--isl": traffic.input,
        "--isl-stddev": 0,
        "--osl": traffic.output,
        "--osl-stddev": 0,
        "--tokenizer": tokenizer_of(target),
        "--random-seed": shot.seed,
        "--artifact-dir": "{folder}",
        "--ui": "none",
        **({"--api-key": target.api_key} if target.api_key else {}),
    }
    words = ["profile", *(w for name, value in wanted.items() for w in (name, str(value)))]
    words += ["--streaming", "--use-server-token-count"]
    words += ["--extra-inputs", "ignore_eos:true"]
    return words, ("profile_export.jsonl", "profile_export_aiperf.json")
