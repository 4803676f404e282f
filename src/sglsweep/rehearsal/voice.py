"""The log: what a version of SGLang says, with clock, rank prefixes and bad manners."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STDOUT, STDERR = 1, 2
# A write of at most this many bytes is not torn by other writers of the same pipe (PIPE_BUF);
# real tracebacks are longer, and that is where ranks interleave.
_ATOMIC_BYTES = 4096
_SHORT_BYTES = 20
_JUNK = bytes(range(128, 160))
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def lines_of(version: str) -> Mapping[str, Any]:
    """Return the lines of a version, by event."""
    text = (resources.files(__package__) / "lines" / f"{version}.yaml").read_text("utf-8")
    found: Mapping[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    return found


@dataclass(frozen=True, slots=True)
class Clock:
    """Time of the story: `scale` real seconds make one second of it."""

    began: float
    scale: float

    def sleep(self, story_s: float) -> None:
        """Wait so many seconds of the story."""
        time.sleep(max(0.0, story_s * self.scale))

    def stamp(self) -> str:
        """Write the story's time as SGLang stamps its lines."""
        passed = (time.time() - self.began) / self.scale
        now = datetime.fromtimestamp(self.began, UTC) + timedelta(seconds=passed)
        return f"{now:%Y-%m-%d %H:%M:%S}"


class Log:
    """One process's mouth.

    Attributes:
        prefix: what stands after the time stamp, with its space in front (" TP3"); "" for none.
    """

    def __init__(
        self, version: str, clock: Clock, prefix: str = "", manners: Sequence[str] = ()
    ) -> None:
        self.lines = lines_of(version)
        self.clock = clock
        self.prefix = prefix
        self._manners = frozenset(manners)
        self._random = random.Random()  # noqa: S311 - noise, no secret

    def adopt(self, manners: Sequence[str]) -> None:
        """Take on bad manners found out later."""
        self._manners |= frozenset(manners)

    def say(self, event: str, **values: object) -> None:
        """Print the line of an event; nothing where this version has none."""
        template = self.lines[event]
        if template is not None:
            self.record(template.format(**values))

    def record(self, text: str) -> None:
        """Print one record: time stamp, rank prefix, text."""
        self.raw(f"[{self.clock.stamp()}{self.prefix}] {text}\n")

    def uvicorn(self, text: str, level: str = "INFO", stream: int = STDERR) -> None:
        """Print a line as uvicorn's handlers do."""
        self.raw(f"[{self.clock.stamp()}] {level + ':':<9} {text}\n", stream)

    def raw(self, text: str, stream: int = STDERR) -> None:
        """Write text as it is, torn into pieces that other processes can come between."""
        content = text.encode()
        if "binary-junk" in self._manners:
            content = _JUNK[: self._random.randrange(1, 9)] + b"\0\xff\xfe" + content
        if "half-lines" in self._manners and len(content) > _SHORT_BYTES:
            self._write(content[: len(content) // 2], stream)
            self.clock.sleep(0.2)
            content = content[len(content) // 2 :]
        self._write(content, stream)

    def _write(self, content: bytes, stream: int) -> None:
        for start in range(0, len(content), _ATOMIC_BYTES):
            if start:
                time.sleep(0.0005)
            os.write(stream, content[start : start + _ATOMIC_BYTES])


def bar(title: str, done: int, total: int, elapsed_s: float) -> str:
    """Draw the rest of a tqdm bar after its title, as SGLang's capture shows it."""
    width = 10
    filled = done * width / total
    whole = int(filled)
    part = " ▏▎▍▌▋▊▉"[int((filled - whole) * 8)] if whole < width else ""
    drawn = ("█" * whole + part).ljust(width)
    counts = f"{done}/{total} [{_clock(elapsed_s)}<{_left(done, total, elapsed_s)}]"
    return f"{title}: {100 * done // total:3d}%|{drawn}| {counts}"


def shard_bar(title: str, done: int, total: int, elapsed_s: float) -> str:
    """Draw the bar of weight loading, which has no blocks."""
    counts = f"{done}/{total} [{_clock(elapsed_s)}<{_left(done, total, elapsed_s)}]"
    return f"{title}: {100 * done // total:3d}% Completed | {counts}"


def _left(done: int, total: int, elapsed_s: float) -> str:
    if not done or not elapsed_s:
        return "?, ?it/s"
    rate = done / elapsed_s
    speed = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
    return f"{_clock((total - done) / rate)}, {speed}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
