"""Short ways to write cells and attempts in tests."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sglsweep.matrix import Axis, Cell, Cells
from sglsweep.plan.strategy import Evidence
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.matrix import Value

AXES = (
    Axis("attention-backend", ("flashinfer", "triton", "fa3")),
    Axis("kv-cache-dtype", (None, "bf16", "fp8_e4m3")),
    Axis("moe-runner-backend", ("cutlass", "triton")),
    Axis("disable-cuda-graph", (False, True)),
)


def product_of(axes: tuple[Axis, ...] = AXES) -> Cells:
    return Cells(axes, list(product(*(range(len(axis.values)) for axis in axes))))


def cell(*codes: int, axes: tuple[Axis, ...] = AXES) -> Cell:
    values: dict[str, Value] = {
        axis.name: axis.values[code] for axis, code in zip(axes, codes, strict=True)
    }
    return Cell(values)


def served(number: int, *codes: int) -> Evidence:
    return Evidence(number=number, cell=cell(*codes), verdict=Verdict.SERVING, phase=Phase.DECODE)


def failed(
    number: int,
    *codes: int,
    cause: str = "unsupported-arch",
    phase: Phase = Phase.GRAPH_CAPTURE,
    verdict: Verdict = Verdict.KERNEL_UNSUPPORTED,
    blames: tuple[str, ...] = (),
) -> Evidence:
    return Evidence(
        number=number,
        cell=cell(*codes),
        verdict=verdict,
        phase=phase,
        cause=cause,
        blames=blames,
    )


def lost(number: int, *codes: int) -> Evidence:
    return Evidence(
        number=number, cell=cell(*codes), verdict=Verdict.HOST_LOST, phase=Phase.WEIGHTS
    )
