"""The parent's side of generation: requests go to rank 0, tokens come back."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one prompt asks for."""

    ids: Sequence[int]
    new_tokens: int = 128
    temperature: float = 1.0
    stream: bool = False
    kind: str = "user"


@dataclass(frozen=True, slots=True)
class Progress:
    """Tokens so far.

    Attributes:
        cached: prompt tokens that came from the prefix cache.
    """

    rid: str
    ids: tuple[int, ...]
    cached: int
    done: bool


class Engine:
    """Sends prompts to rank 0 and hands each answer to whoever asked."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._answers: dict[str, queue.SimpleQueue[Progress]] = {}
        threading.Thread(target=self._pump, daemon=True).start()

    def submit(self, ask: Ask) -> str:
        """Start a generation; returns its id."""
        rid = uuid.uuid4().hex
        self._answers[rid] = queue.SimpleQueue()
        message = {
            "rid": rid,
            "ids": list(ask.ids),
            "new_tokens": ask.new_tokens,
            "temperature": ask.temperature,
            "stream": ask.stream,
            "kind": ask.kind,
        }
        with self._lock:
            self._link.sendall(json.dumps(message).encode() + b"\n")
        return rid

    def follow(self, rid: str, timeout_s: float | None = None) -> Iterator[Progress]:
        """Yield a generation's progress; once for each token if it streams, else at the end.

        Raises:
            queue.Empty: nothing came within `timeout_s`.
        """
        answers = self._answers[rid]
        try:
            while True:
                progress = answers.get(timeout=timeout_s)
                yield progress
                if progress.done:
                    return
        finally:
            self._answers.pop(rid, None)

    def finish(self, rid: str, timeout_s: float | None = None) -> Progress:
        """Wait for the last word of a generation."""
        *_, last = self.follow(rid, timeout_s)
        return last

    def _pump(self) -> None:
        with self._link.makefile("rb") as lines:
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                answers = self._answers.get(message["rid"])
                if answers is not None:
                    answers.put(
                        Progress(
                            message["rid"],
                            tuple(message["ids"]),
                            message["cached"],
                            message["done"],
                        )
                    )
