"""Attempts for the keeper's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[Attempts]:
    made = Attempts(tmp_path)
    yield made
    made.end_all()
