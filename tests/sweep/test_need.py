"""A server that is ready and too small for what is needed is no success."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from small_sweeps import small_sweep

if TYPE_CHECKING:
    from pathlib import Path

WORLD = """
axes: {attention-backend: [triton], mem-fraction-static: [0.86]}
rules: []
rehearsal: {ranks: 2, time-scale: 0.02}
"""
SWEEP = """
name: small
model: made/up
port: PORT
need: {context: 100000, concurrent: NEEDED}
builds: {stand-in: {rehearsal: world.yaml}}
launch: {flags: {tp: 2}}
matrix:
  attention-backend: [triton]
  mem-fraction-static: FRACTION
budget: {attempts: 4}
"""


def swept(folder: Path, *, needed: int, fraction: str) -> list[dict[str, object]]:
    made = small_sweep(folder)
    (folder / "world.yaml").write_text(WORLD)
    text = SWEEP.replace("PORT", str(made.port)).replace("NEEDED", str(needed))
    (folder / "sweep.yaml").write_text(text.replace("FRACTION", fraction))
    done = made.call(*made.sweep_words())
    records = [record for _, record in sorted(made.records().items())]
    serves = records[-1]["diagnosis"]["verdict"] == "serving"
    assert done.returncode == (0 if serves else 1), done.stderr
    run = json.loads((made.run / "run.json").read_text())
    assert run["finish"].startswith(f"attempt {len(records)} serves") or not serves
    return records


def test_a_pool_smaller_than_what_is_needed_fails_and_the_next_fraction_holds_it(
    tmp_path: Path,
) -> None:
    small, *_, enough = swept(
        tmp_path, needed=NEEDED, fraction="{auto: true, start: 0.7, max: 0.95}"
    )
    assert small["diagnosis"]["cause"] == "kv-pool-below-need"  # type: ignore[index]  # JSON
    assert small["timings"]["ready_s"] is not None  # type: ignore[index]  # JSON
    assert "by the memory figures of its log" in str(enough["attempt"]["why"])  # type: ignore[index]  # JSON


def test_without_another_fraction_nothing_serves(tmp_path: Path) -> None:
    (small,) = swept(tmp_path, needed=NEEDED, fraction="[0.7]")
    assert small["diagnosis"]["verdict"] == "oom"  # type: ignore[index]  # JSON


NEEDED = 3
