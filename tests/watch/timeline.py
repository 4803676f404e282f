"""A launch as a watcher sees it, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sglsweep.catalogue import limits
from sglsweep.keeper_files import Life
from sglsweep.verdict import Phase
from sglsweep.watch import Continue, Decision, Watcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar
    from sglsweep.triage.follow import Terminal


@dataclass
class Seen:
    """What the log says at one moment."""

    phase: Phase = Phase.START
    is_ready: bool = False
    is_compiling: bool = False
    is_capturing: bool = False
    terminal: Terminal | None = None
    server_args: Mapping[str, Scalar] = field(default_factory=dict)
    last_text: str = ""
    progress: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    records: int = 0

    def feed(self, chunk: bytes) -> None:
        """A timeline sets what is seen; it has no bytes."""


@dataclass
class Launch:
    """A watched launch whose clock is turned by hand, a second at a time."""

    overrides: Mapping[str, float] = field(default_factory=dict)
    gpu_limit_w: tuple[float, ...] = ()
    life: Life | None = field(default_factory=Life)
    weights_bytes: int | None = None
    now: float = 0.0
    log: Seen = field(default_factory=Seen)
    is_listening: bool = False
    is_mute: bool = False

    def __post_init__(self) -> None:
        loaded = limits.load(self.overrides, weights_bytes=self.weights_bytes)
        self.watcher = Watcher(
            loaded, started_at=0.0, gpu_limit_w=self.gpu_limit_w, is_mute=self.is_mute
        )

    def look(self, *, server_alive: bool = True, exit_status: int | None = None) -> Decision:
        return self.watcher.observe(
            self.now,
            self.log,
            self.life,
            server_alive=server_alive,
            exit_status=exit_status,
            is_listening=self.is_listening,
        )

    def says(self, text: str, **changes: Any) -> None:  # noqa: ANN401 - fields of Seen
        """A new record, and what it changes."""
        self.log = replace(self.log, last_text=text, records=self.log.records + 1, **changes)

    def lives(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Life
        assert self.life is not None
        self.life = replace(self.life, **changes)

    def waits(self, seconds: float, *, each: Mapping[str, float] | None = None) -> Decision:
        """Look once a second; `each` names sums of life that grow by so much a second.

        Stops early at a decision other than to go on.
        """
        until = self.now + seconds
        decision = self.look()
        while self.now < until and isinstance(decision, Continue):
            self.now += 1.0
            for name, step in (each or {}).items():
                self.lives(**{name: getattr(self.life, name) + step})
            decision = self.look()
        return decision
