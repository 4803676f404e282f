"""Flag tables of real builds, for tests: what `onhost/resolve.py flags` printed, shortened."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sglsweep.flags import FlagTable

_FOLDER = Path(__file__).parent / "flags" / "tables"


@cache
def flag_table(version: str) -> FlagTable:
    """Return the table of "0.5.23" (whole) or "0.5.9" (the flags that sweeps use most)."""
    name = {"0.5.9": "0.5.9-excerpt"}.get(version, version)
    return FlagTable.from_json(json.loads((_FOLDER / f"{name}.json").read_text("utf-8")))
