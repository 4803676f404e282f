"""Tens of thousands of cells cost a second, and a cell is made when it is asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from flagtables import flag_table
from sglsweep.config.sweep import load_sweep
from sglsweep.expand import expand
from sglsweep.matrix import Cell

if TYPE_CHECKING:
    from pathlib import Path

    from sglsweep.config.sweep import Sweep

_MATRIX = """
model: m
matrix:
  attention-backend: [flashinfer, triton, fa3]
  kv-cache-dtype: [null, bf16, fp8_e4m3]
  nsa-prefill-backend: [null, trtllm, flashmla_kv]
  nsa-decode-backend: [null, trtllm, flashmla_kv]
  fp8-gemm-backend: [null, cutlass, triton]
  fp4-gemm-backend: [null, flashinfer_cudnn, flashinfer_cutlass]
  moe-runner-backend: [flashinfer_cutlass, triton, auto, deep_gemm]
  page-size: [1, 16, 32, 64]
  disable-cuda-graph: [null, true]
  mem-fraction-static: [0.8, 0.85]
exclude:
  - {when: {attention-backend: triton, kv-cache-dtype: fp8_e4m3}, because: asserts}
  - {when: {fp8-gemm-backend: [cutlass, triton], page-size: 16}, because: slow}
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A matrix of 46,656 points."""
    path = tmp_path / "SWEEP.yaml"
    path.write_text(_MATRIX)
    return load_sweep(path)


def test_tens_of_thousands_of_cells_take_about_a_second(sweep: Sweep) -> None:
    started = time.process_time()
    expanded = expand(sweep, {"default": flag_table("0.5.23")})
    elapsed_s = time.process_time() - started
    assert len(expanded.cells) + len(expanded.excluded) == 46656
    assert expanded.excluded_counts == {"asserts": 5184, "slow": 6912}
    assert elapsed_s < 3.0


def test_no_excluded_cell_is_among_the_cells(sweep: Sweep) -> None:
    expanded = expand(sweep)
    kept = {cell.key for cell in expanded.cells}
    assert len(kept) == len(expanded.cells)
    assert kept.isdisjoint(item.cell.key for item in expanded.excluded)


def test_excluded_cells_are_a_sequence(sweep: Sweep) -> None:
    excluded = expand(sweep).excluded
    assert excluded[-1] == excluded[len(excluded) - 1]
    assert list(excluded[3:5]) == [excluded[3], excluded[4]]
    assert isinstance(excluded[0].cell, Cell)
    with pytest.raises(IndexError):
        excluded[len(excluded)]
