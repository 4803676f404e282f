"""The live view of a sweep: the whole screen while it runs, the verdicts on paper afterwards."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live

from sglsweep.cli.lines import Lines
from sglsweep.cli.paint import Paper, paint, table
from sglsweep.events import Ended, Note, Started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from rich.console import RenderableType

    from sglsweep.attempt import Attempt
    from sglsweep.cli.scene import Scene
    from sglsweep.events import Event, Listener

_PER_SECOND = 4


def is_watched() -> bool:
    """Tell whether a person looks on: both streams are terminals, and not dumb ones."""
    is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


@contextmanager
def showing(scene: Scene, *, slots: int = 1) -> Iterator[Listener]:
    """Hand out the live view, or plain lines where nobody could see one."""
    if not is_watched():
        yield Lines(is_numbered=slots > 1)
        return
    with LiveView(scene, Console(stderr=True, highlight=False)) as view:
        yield view


class LiveView:
    """Paints a scene on the terminal's other screen, four times a second.

    The other screen, since what is painted there is whole again after every change of size;
    the verdicts are printed on the first one at the end and stay in its history.
    """

    def __init__(self, scene: Scene, console: Console) -> None:
        self._scene = scene
        self._console = console
        self._lock = threading.Lock()
        self._foresee: Callable[[Attempt], tuple[str, str]] | None = None
        self._ended = 0
        self._notes: list[str] = []
        self._live = Live(
            get_renderable=self._render,
            console=console,
            screen=True,
            auto_refresh=True,
            refresh_per_second=_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def foresee(self, foresee: Callable[[Attempt], tuple[str, str]]) -> None:
        """Set who says what comes after an attempt, and what may come of all that is left."""
        self._foresee = foresee

    def tell(self, event: Event) -> None:
        """Take one event; the screen follows by itself."""
        with self._lock:
            self._scene.take(event, time.time())
            if isinstance(event, Ended):
                self._ended += 1
            if isinstance(event, Note):
                self._notes.append(event.text)
        if isinstance(event, Started) and self._foresee is not None:
            try:
                said, odds = self._foresee(event.attempt)
            except Exception as error:  # noqa: BLE001 - a look ahead must never end a sweep
                said, odds = f"not known: {error}", ""
            with self._lock:
                self._scene.next_text, self._scene.odds_text = said, odds

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The terminal may be gone: then there is nobody to tell, and the sweep's end matters more.
        with suppress(OSError):
            self._live.stop()
            self._print_rest()

    def _render(self) -> RenderableType:
        width, height = self._console.size
        paper = Paper(width, height, is_ascii=self._is_ascii)
        with self._lock:
            return Group(*paint(self._scene, paper, time.time()))

    @property
    def _is_ascii(self) -> bool:
        return not self._console.encoding.lower().replace("-", "").startswith("utf")

    def _print_rest(self) -> None:
        """Leave in the terminal's history what the sweep came to."""
        paper = Paper(self._console.width, 0, is_ascii=self._is_ascii)
        for note in self._notes:
            self._console.print(paper.line(note), no_wrap=True)
        if not self._ended:
            return
        for line in table(self._scene.outcomes, paper, self._ended + 1):
            self._console.print(line, no_wrap=True)
