"""Where the real SGLang of the `real` tests lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_python() -> Path:
    """Return its Python; skips the test where there is none."""
    named = os.environ.get("SGLSWEEP_SGLANG_PYTHON")
    python = Path(named) if named else Path(__file__).parents[1] / ".sglang-cpu/bin/python"
    if not python.exists():
        pytest.skip(f"no SGLang: set SGLSWEEP_SGLANG_PYTHON, or install one at {python}")
    return python
