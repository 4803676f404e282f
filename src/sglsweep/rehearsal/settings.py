"""What a rehearsal is told: its own options, and the `rehearsal:` section of its world."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from sglsweep.errors import ConfigError
from sglsweep.rehearsal.world_file import load_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.rehearsal.world import World

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

VERSIONS = ("0.5.9", "0.5.23")
MISCHIEF = (
    "ignores-term",
    "orphan-rank",
    "silent-hang",
    "busy-hang",
    "half-lines",
    "binary-junk",
    "flood",
    "port-taken",
    "wrong-owner",
    "lingers",
    "dies-at-step",
    "answers-wrong",
    "misses-needle",
    "no-tool-calls",
    "leaks-kv",
    "broken-server-info",
)

HELP = f"""usage: python -m sglsweep.rehearsal --world WORLD.yaml [options] [SGLang's own flags]

Stands in for sglang.launch_server: real processes, real HTTP, made-up outcome. The world file
decides what each combination of flags comes to; its `rehearsal:` section sets the defaults.

  --world FILE           the world, e.g. configs/worlds/glm5-sm120.yaml
  --time-scale X         real seconds for each second of the story (0.01: a launch in a second)
  --sglang-version V     whose lines are spoken: {", ".join(VERSIONS)}
  --ranks N              scheduler processes (default: tensor times pipeline parallel size)
  --mischief NAME        bad behaviour, may stand several times:
                         {", ".join(MISCHIEF[:6])},
                         {", ".join(MISCHIEF[6:10])}, dies-at-step=N,
                         answers-wrong=N, {", ".join(MISCHIEF[12:])}

example: python -m sglsweep.rehearsal --world configs/worlds/glm5-sm120.yaml --time-scale 0.01
           --model-path lukealonso/GLM-5-NVFP4 --tp 8 --kv-cache-dtype bf16 --port 30000
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The made-up machine and model behind a world; the defaults are the lead case's.

    Attributes:
        sglang_version: whose lines are spoken: 0.5.9 or 0.5.23.
        ranks: processes; None: what the flags ask for.
        time_scale: real seconds for each second of the story.
        available_gb: GiB free on each card before the weights.
        workspace_gb: GiB that goes between the memory pool and graph capture.
        graph_gb: GiB for CUDA graphs, at `graph_sizes` batch sizes.
        kv_bytes: bytes per token of KV cache by dtype; `flat` is the trtllm layout of FP8.
        load_s: seconds to load the weights. capture_s: to capture the graphs.
        step_s: one decode step. prefill_per_s: prompt tokens a second.
    """

    sglang_version: str = "0.5.9"
    ranks: int | None = None
    time_scale: float = 1.0
    architecture: str = "GlmMoeDsaForCausalLM"
    gpu_gb: float = 94.97
    available_gb: float = 94.01
    weights_gb: float = 57.06
    workspace_gb: float = 3.01
    graph_gb: float = 1.62
    kv_bytes: Mapping[str, int] = field(
        default_factory=lambda: {"bf16": 100_152, "fp8_e4m3": 61_464, "flat": 55_224}
    )
    shards: int = 83
    context: int = 202_752
    vocabulary: int = 151_552
    start_s: float = 6.0
    load_s: float = 36.0
    capture_s: float = 7.7
    step_s: float = 0.03
    prefill_per_s: float = 4_000.0


@dataclass(frozen=True, slots=True)
class RuleExtra:
    """What a rule of a world may say to the rehearsal server alone.

    Attributes:
        at: what a request must be like to set the failure off; "" leaves it to the cause.
        shows: which entry of failures.yaml it looks like; "" leaves it to the cause.
        mischief: bad behaviour of the cells that this rule decides.
    """

    at: str = ""
    shows: str = ""
    mischief: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Habit:
    """Bad behaviour of the effective cells that have every value of `when`."""

    when: Mapping[str, object]
    does: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A whole rehearsal, before SGLang's flags are read.

    Attributes:
        extras: one for each of the world's rules, in order.
        habits: bad behaviour of cells, also of such that serve.
        sglang: the words that are SGLang's own.
    """

    world: World
    stage: Stage
    extras: tuple[RuleExtra, ...]
    habits: tuple[Habit, ...]
    mischief: tuple[str, ...]
    sglang: tuple[str, ...]


def read_settings(words: Sequence[str]) -> Settings:
    """Read the command line and the world it names; options win over the world's section.

    Raises:
        ConfigError: the world cannot be read, or its `rehearsal:` section is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m sglsweep.rehearsal",
        allow_abbrev=False,
        add_help=False,
        description="Stand in for sglang.launch_server; the world file decides what happens.",
    )
    parser.add_argument("--world", type=Path, required=True)
    parser.add_argument("--time-scale", type=float)
    parser.add_argument("--sglang-version", choices=VERSIONS)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--mischief", action="append", default=[])
    own, sglang = parser.parse_known_args(words)
    world = load_world(own.world)
    document = yaml.load(own.world.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - safe
    chosen = {"time_scale": own.time_scale, "ranks": own.ranks}
    chosen["sglang_version"] = own.sglang_version
    section = document.get("rehearsal") or {}
    habits = tuple(_habit(item, str(own.world)) for item in section.pop("mischief", ()))
    stage = read_stage(section, where=str(own.world))
    return Settings(
        world=world,
        stage=replace(stage, **{k: v for k, v in chosen.items() if v is not None}),
        extras=tuple(_extra(rule, str(own.world)) for rule in document.get("rules") or []),
        habits=habits,
        mischief=_mischief(own.mischief, "--mischief"),
        sglang=tuple(sglang),
    )


def read_stage(section: Mapping[str, object], *, where: str) -> Stage:
    """Read a world's `rehearsal:` section, keys spelled with dashes."""
    known = {item.name for item in fields(Stage)}
    values = {str(name).replace("-", "_"): value for name, value in section.items()}
    for name in values:
        if name not in known:
            raise ConfigError(
                f"{where}: rehearsal: unknown key {name.replace('_', '-')!r}",
                next_step=f"Use {', '.join(sorted(k.replace('_', '-') for k in known))}.",
            )
    stage = replace(Stage(), **values)  # type: ignore[arg-type] # checked by name, below by value
    if stage.sglang_version not in VERSIONS:
        raise ConfigError(
            f"{where}: rehearsal: sglang-version {stage.sglang_version!r} cannot be spoken",
            next_step=f"Use one of {', '.join(VERSIONS)} (in quotes).",
        )
    return stage


def _extra(rule: Mapping[str, object], where: str) -> RuleExtra:
    return RuleExtra(
        at=str(rule.get("at") or ""),
        shows=str(rule.get("shows") or ""),
        mischief=_mischief(rule.get("mischief"), f"{where}: mischief"),
    )


def _habit(item: object, where: str) -> Habit:
    if not isinstance(item, dict) or not isinstance(item.get("when"), dict):
        raise ConfigError(
            f"{where}: rehearsal: mischief {item!r} says not for which cells",
            next_step="Write `- {when: {flag: value}, does: NAME}`.",
        )
    return Habit(item["when"], _mischief(item.get("does"), f"{where}: rehearsal: mischief"))


def _mischief(found: object, where: str) -> tuple[str, ...]:
    names = found if isinstance(found, list) else [found] if found else []
    for name in map(str, names):
        if name.partition("=")[0] not in MISCHIEF:
            raise ConfigError(
                f"{where}: {name!r} is no bad behaviour of ours",
                next_step=f"Use {', '.join(MISCHIEF)} (dies-at-step=N).",
            )
    return tuple(names)
