"""Flag tables of real builds, for tests: what `onhost/resolve.py flags` printed, shortened."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sglsweep.flags import FlagTable

_FOLDER = Path(__file__).parent / "flags" / "tables"


@cache
def flag_table(version: str) -> FlagTable:
    """Return the table of SGLang 0.5.4, 0.5.9, 0.5.15 or 0.5.23."""
    return FlagTable.from_json(json.loads((_FOLDER / f"{version}.json").read_text("utf-8")))
