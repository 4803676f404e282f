"""Wait for an attempt of a running sweep, by the journal of its run and the keeper's state."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """Return a JSON object; empty while it is not there, or half written."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Wanted:
    """The attempt of a run that has a certain value in its cell."""

    def __init__(self, run: Path, setting: str) -> None:
        self.run = run
        self.name, _, self.value = setting.partition("=")
        self.record: Path | None = None

    def wait(self, limit_s: float) -> dict[str, Any]:
        """Return its journal entry once it is open; ends the program if it does not come."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            for record in sorted(self.run.glob("attempts/*/attempt.json")):
                entry = read(record)
                cell = entry.get("attempt", {}).get("cell", {})
                if entry.get("state") == "open" and str(cell.get(self.name)) == self.value:
                    self.record = record
                    return entry["attempt"]
            time.sleep(0.1)
        sys.exit(f"no attempt with {self.name}={self.value} in {self.run} within {limit_s:.0f} s")

    @property
    def is_open(self) -> bool:
        """Tell whether it still runs."""
        return self.record is not None and read(self.record).get("state") == "open"
