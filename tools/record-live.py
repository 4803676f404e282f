"""Makes docs/live.svg: the live view of the rehearsal in the middle of a graph capture.

    .venv/bin/python tools/record-live.py docs/live.svg

Runs the rehearsal forty times slower than `make rehearse` does, so that the picture shows an
attempt at work; takes about a minute.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from sglsweep import catalogue
from sglsweep.cli.paint import Paper, paint
from sglsweep.cli.wiring import identity_of, next_words, scene_of
from sglsweep.clock import SystemClock
from sglsweep.config.sweep import load_sweep
from sglsweep.events import Progress, Started
from sglsweep.journal import Journal
from sglsweep.prepare import prepare
from sglsweep.sweep import Settings, Sweeping, run_sweep
from sglsweep.verdict import Phase

SIZE = (112, 24)
ATTEMPT = 4
CONFIGS = Path(__file__).resolve().parents[1] / "configs"


class Recorder:
    """Keeps the last screen of the wanted attempt's graph capture, then ends the sweep."""

    def __init__(self, scene) -> None:
        self.scene = scene
        self.sweeping = None
        self.screen = []

    def tell(self, event) -> None:
        now = time.time()
        self.scene.take(event, now)
        if isinstance(event, Started) and event.attempt.number > ATTEMPT:
            raise KeyboardInterrupt
        if isinstance(event, Started):
            self.scene.next_text = next_words(self.sweeping, event.attempt)
        if isinstance(event, Progress) and self._is_wanted(event):
            self.screen = paint(self.scene, Paper(*SIZE), now)

    def _is_wanted(self, progress) -> bool:
        done, total = progress.bars.get("capture", (0, 0))
        is_here = progress.phase is Phase.GRAPH_CAPTURE and 0 < done <= total * 2 // 3
        return is_here and progress.attempt.number == ATTEMPT


def slow_copy(folder: Path) -> Path:
    """Write the rehearsal with a slower world into a folder."""
    world = (CONFIGS / "worlds" / "glm5-sm120.yaml").read_text()
    sweep = (CONFIGS / "rehearsal.yaml").read_text()
    (folder / "worlds").mkdir()
    (folder / "worlds" / "glm5-sm120.yaml").write_text(world.replace("0.005", "0.2"))
    (folder / "rehearsal.yaml").write_text(sweep)
    return folder / "rehearsal.yaml"


def record(path: Path, folder: Path) -> list:
    """Sweep, and return the screen."""
    sweep = load_sweep(path)
    ground = prepare(path)
    with Journal.create_or_resume(folder / "run", identity_of(sweep)) as journal:
        recorder = Recorder(scene_of(sweep, journal))
        recorder.sweeping = Sweeping(
            ground=ground, journal=journal, catalogue=catalogue.load(), clock=SystemClock(),
            listener=recorder, settings=Settings(),
        )  # fmt: skip
        with suppress(KeyboardInterrupt):  # how the recorder says that it has seen enough
            run_sweep(recorder.sweeping)
    return recorder.screen


def svg(screen: list) -> str:
    """Return the picture; a page must not fetch fonts from elsewhere."""
    console = Console(
        record=True, width=SIZE[0], file=StringIO(), force_terminal=True, highlight=False
    )
    for line in screen:
        console.print(line, no_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    return console.export_svg(
        title="sglsweep sweep configs/rehearsal.yaml", code_format=form, unique_id="live"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        screen = record(slow_copy(Path(name)), Path(name))
    if not screen:
        sys.exit("no graph capture was seen; run it again")
    Path(sys.argv[1]).write_text(svg(screen), encoding="utf-8")


if __name__ == "__main__":
    main()
