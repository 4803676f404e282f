"""A matrix comes to the cells that its file says, and to no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.expansion import CASES, outcome, read_case

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_matrix_comes_to_what_the_case_says(case: Path, tmp_path: Path) -> None:
    read = read_case(case, tmp_path)
    assert outcome(read) == read.expect


def test_there_are_cases() -> None:
    assert len(CASES) > 25
