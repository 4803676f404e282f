"""Make worlds of six families to measure strategies on.

Five families differ in how much a failure tells (clear, coarse, misled, flaky) and in how little
serves (rare). The sixth, dependent, has flags that SGLang itself rewrites: what is requested
is not what runs, and several requested cells are one effective cell.

    python bench/worlds/generate.py --out /tmp/worlds --count 12 --seed 7
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

if TYPE_CHECKING:
    from numpy.typing import NDArray

AXES: dict[str, list[str]] = {
    "attention-backend": ["flashinfer", "triton", "trtllm_mla"],
    "nsa-prefill-backend": ["unset", "flashmla_sparse", "flashmla_auto", "tilelang", "trtllm"],
    "nsa-decode-backend": ["unset", "flashmla_sparse", "flashmla_kv", "tilelang", "trtllm", "fa3"],
    "fp8-gemm-backend": ["unset", "cutlass", "triton", "deep_gemm"],
    "moe-runner-backend": ["flashinfer_cutlass", "cutlass", "triton", "flashinfer_trtllm"],
    "kv-cache-dtype": ["unset", "fp8_e4m3", "bfloat16"],
    "disable-cuda-graph": ["no", "yes"],
    "mem-fraction-static": ["m95", "m92", "m88", "m84"],
}
PHASES = ("args", "weights", "kv-cache", "graph-capture", "warmup", "decode")
VERDICTS = (
    "bad-config",
    "cuda-fault",
    "device-assert",
    "kernel-unsupported",
    "load-error",
    "nan-in-probs",
    "oom",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How hard a world is, and in which way.

    Attributes:
        faults: fewest and most rules.
        serving: smallest and largest share of cells that serve.
        blamed: chance that a rule's blame names a flag of the rule.
        misled: chance that it names any other flag instead.
        generic: chance that a rule's cause is the one all unclear failures share.
    """

    faults: tuple[int, int] = (6, 14)
    serving: tuple[float, float] = (0.05, 0.12)
    blamed: float = 0.8
    misled: float = 0.0
    generic: float = 0.0
    flake: float = 0.0
    dependent: bool = False


FAMILIES: dict[str, Family] = {
    "clear": Family(),
    "coarse": Family(blamed=0.0, generic=0.6),
    "misled": Family(blamed=0.5, misled=0.5),
    "flaky": Family(flake=0.05),
    "rare": Family(faults=(12, 18), serving=(0.0005, 0.01), blamed=0.55),
    "dependent": Family(dependent=True),
}


def main() -> None:
    """Write `count` worlds of every family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for number in range(options.count):
            path = options.out / f"{family}-{number:02}.yaml"
            path.write_text(world_text(family, number, options.seed), encoding="utf-8")


def world_text(family: str, number: int, seed: int) -> str:
    """Return the YAML of one world; same arguments, same text."""
    rng = Random(f"{seed}/{family}/{number}")  # noqa: S311 - worlds, not secrets
    kind = FAMILIES[family]
    low, high = kind.serving
    while True:
        document = _draw(rng, kind)
        if low <= _serving_share(document) <= high:
            return str(
                yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=99)
            )


def _draw(rng: Random, kind: Family) -> dict[str, Any]:
    count = rng.randint(*kind.faults)
    document: dict[str, Any] = {"axes": AXES}
    if kind.dependent:
        document["resolve"] = [_rewrite(rng) for _ in range(3)]
    document["rules"] = [_rule(rng, kind, i, count) for i in range(count)]
    document["flake"] = kind.flake
    return document


def _rule(rng: Random, kind: Family, number: int, count: int) -> dict[str, object]:
    size = rng.choices((1, 2, 3), (0.6, 0.3, 0.1))[0]
    axes = rng.sample(list(AXES), size)
    blames: list[str] = []
    draw = rng.random()
    if draw < kind.blamed:
        blames = [rng.choice(axes)]
    elif draw < kind.blamed + kind.misled:
        blames = [rng.choice([axis for axis in AXES if axis not in axes])]
    return {
        "when": {axis: rng.choice(AXES[axis]) for axis in axes},
        "verdict": rng.choice(VERDICTS),
        "cause": "generic-failure" if rng.random() < kind.generic else f"cause-{number}",
        "phase": PHASES[number * len(PHASES) // count],
        "blames": blames,
    }


def _rewrite(rng: Random) -> dict[str, object]:
    """A flag that decides another's value, as an attention backend decides the KV type."""
    ruler, ruled = rng.sample(list(AXES), 2)
    return {
        "when": {ruler: rng.choice(AXES[ruler])},
        "set": {ruled: rng.choice(AXES[ruled])},
    }


def _serving_share(document: dict[str, Any]) -> float:
    """Return the share of requested cells that serve, by slices of the whole product."""
    names = list(AXES)
    shape = [len(values) for values in AXES.values()]
    effective = np.indices(shape).reshape(len(names), -1)
    settled = np.zeros(effective.shape[1], dtype=np.bool_)
    for rewrite in document.get("resolve", ()):
        held = _held(effective, rewrite["when"]) & ~settled
        settled |= held
        for axis, value in rewrite["set"].items():
            effective[names.index(axis), held] = AXES[axis].index(value)
    fails = np.zeros(effective.shape[1], dtype=np.bool_)
    for rule in document["rules"]:
        fails |= _held(effective, rule["when"])
    return 1.0 - float(fails.mean())


def _held(codes: NDArray[np.int64], when: dict[str, str]) -> NDArray[np.bool_]:
    held = np.ones(codes.shape[1], dtype=np.bool_)
    for axis, value in when.items():
        held &= codes[list(AXES).index(axis)] == AXES[axis].index(value)
    return held


if __name__ == "__main__":
    main()
