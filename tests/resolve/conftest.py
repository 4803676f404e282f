from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standin_sglang import StandIn, make_standin

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sglang(tmp_path: Path) -> StandIn:
    """What stands where SGLang stands."""
    return make_standin(tmp_path / "site")
