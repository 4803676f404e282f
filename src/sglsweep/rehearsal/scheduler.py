"""What rank 0 does once the server is up: batches, prefill, decode, and the failure that waits."""

from __future__ import annotations

import json
import random
import select
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    import socket

    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.rank import Rank

_LOG_EVERY = 40  # decode steps; SGLang's --decode-log-interval
_FIRST_WORD = 100  # ids below are special tokens
_LONG_ANSWER = 40
_MANY_RUNNING = 4
_MOST_OF_A_LOAD = 8
_ITS_OWN = frozenset({"health", "warmup"})
_LEAK = 0.004  # share of the KV pool that each request keeps where it leaks
_PATIENCE = 40  # requests after which a failure that waits for a kind of request comes anyway


@dataclass(slots=True)
class Request:
    """One generation in flight.

    Attributes:
        kind: warmup and health are the server's own; of users: user, logprobs, chat or tools.
        cached: prompt tokens found in the prefix cache.
    """

    rid: str
    ids: list[int]
    new_tokens: int
    temperature: float
    stream: bool
    kind: str
    cached: int = 0
    output: list[int] = field(default_factory=list)


_PARENT_S = 0.3
"""Real seconds that the parent may take to print a line, whatever the story's clock says."""


class Scheduler:
    """Continuous batching without a model: the story's clock stands in for the GPU."""

    def __init__(self, rank: Rank, link: socket.socket, peers: list[socket.socket]) -> None:
        self._rank = rank
        self._plan: Plan = rank.plan
        self._link = link
        self._peers = peers
        self._inbox = b""
        self._waiting: list[Request] = []
        self._running: list[Request] = []
        self._cache: list[tuple[int, ...]] = []
        self._served = 0
        self._steps = 0
        self._page = int(str(self._plan.args["page_size"] or 1))

    def run(self) -> None:
        """Serve until the parent closes the link."""
        while self._receive():
            if self._waiting:
                self._prefill()
            if self._running:
                self._decode()
            if self._plan.strikes(Phase.READY) and self._is_over and self._is_armed():
                # The parent says "ready" once it has the warm-up's answer: a rank that is
                # meant to die after that line must not be quicker than it.
                time.sleep(_PARENT_S)
                self.fail(Phase.READY)

    @property
    def _is_over(self) -> bool:
        """True once the warm-up has been answered and nothing else runs."""
        return self._steps > 0 and not self._running

    def fail(self, phase: Phase) -> None:
        """Let every rank come to the planned end."""
        failure = self._plan.failure
        if failure is not None and failure.kind not in {"killed", "native"}:
            for peer in self._peers:
                peer.sendall(b"die\n")
        self._rank.die(phase)

    def _receive(self) -> bool:
        """Take what has arrived, waiting only if there is nothing to do; False at the end."""
        is_idle = not (self._waiting or self._running)
        while select.select([self._link], [], [], None if is_idle else 0)[0]:
            received = self._link.recv(1 << 16)
            if not received:
                return False
            *lines, self._inbox = (self._inbox + received).split(b"\n")
            self._waiting += [Request(**json.loads(line)) for line in lines]
            is_idle = is_idle and not self._waiting
        return True

    def _prefill(self) -> None:
        batch, self._waiting = self._waiting, []
        for request in batch:
            request.cached = self._cached(request.ids)
        new = sum(len(r.ids) - r.cached for r in batch)
        chunk = int(str(self._plan.args["chunked_prefill_size"])) or new
        left = new
        while True:
            part = min(left, chunk) if chunk > 0 else left
            left -= part
            self._say_prefill(batch, part, left)
            self._rank.clock.sleep(part / self._plan.stage.prefill_per_s)
            if left <= 0:
                break
        self._running += batch
        self._served += sum(1 for r in batch if r.kind not in _ITS_OWN)
        if self._is_due(batch):
            self.fail(Phase.WARMUP if self._plan.strikes(Phase.WARMUP) else Phase.DECODE)
        for request in batch:
            self._append(request)
            self._remember(request.ids)

    def _decode(self) -> None:
        self._rank.clock.sleep(self._plan.stage.step_s)
        self._steps += 1
        if (
            self._plan.at == "steps"
            and self._steps_of_longest() > _LONG_ANSWER
            and self._is_armed()
        ):
            self.fail(Phase.DECODE)
        for request in self._running:
            self._append(request)
        if self._steps % _LOG_EVERY == 0:
            self._say_decode()
        self._running = [r for r in self._running if len(r.output) < r.new_tokens]

    def _append(self, request: Request) -> None:
        """Give a request its next token, and tell the parent if it wants to know."""
        request.output.append(self._token(request))
        is_done = len(request.output) >= request.new_tokens
        if not (is_done or request.stream):
            return
        message = {
            "rid": request.rid,
            "ids": request.output,
            "cached": request.cached,
            "done": is_done,
        }
        self._link.sendall(json.dumps(message).encode() + b"\n")

    def _token(self, request: Request) -> int:
        verdict = self._plan.truth.verdict
        position = len(request.output)
        if verdict is Verdict.GARBAGE_OUTPUT:
            return 0
        # The first token comes from prefill, which is sound; each decode step is NaN, and the
        # largest of NaNs is the first.
        if verdict is Verdict.NAN_IN_PROBS and position and request.temperature == 0:
            return 0
        seed = None if request.temperature > 0 else f"{request.ids}{position}"
        chooser = random.Random(seed)  # noqa: S311 - made-up tokens
        return chooser.randrange(_FIRST_WORD, self._plan.stage.vocabulary)

    def _is_armed(self) -> bool:
        failure = self._plan.failure
        return failure is not None and failure.kind != "garbage"

    def _is_due(self, batch: list[Request]) -> bool:
        """True if this batch is what the planned failure waits for."""
        if not self._is_armed():
            return False
        if self._plan.strikes(Phase.WARMUP):
            return any(r.kind != "health" for r in batch)
        users = [r for r in batch if r.kind not in _ITS_OWN]
        is_counted = self._plan.at.isdigit()
        is_late = not is_counted and self._served >= _PATIENCE
        return bool(users) and (self._fits(users) or is_late)

    def _fits(self, users: list[Request]) -> bool:
        chunk = int(str(self._plan.args["chunked_prefill_size"]))
        running = sum(1 for r in self._running if r.kind not in _ITS_OWN)
        at = self._plan.at
        if at.isdigit():
            return self._served >= int(at)
        fits: dict[str, Any] = {
            "first": True,
            "sampled": any(r.temperature > 0 and r.new_tokens > 1 for r in users),
            "two": running > 1,
            "prefix": any(r.cached for r in users),
            "long": any(len(r.ids) > chunk > 0 for r in users),
            "context": any(len(r.ids) > 2 * chunk > 0 for r in users),
            "load": running >= _MANY_RUNNING,
            "batch": running > _MOST_OF_A_LOAD,
            "streamed": any(r.stream for r in users),
            "logprobs": any(r.kind == "logprobs" for r in users),
            "chat": any(r.kind in {"chat", "tools"} for r in users),
            "tools": any(r.kind == "tools" for r in users),
        }
        return bool(fits.get(at, False))

    def _steps_of_longest(self) -> int:
        return max(len(r.output) for r in self._running)

    def _cached(self, ids: list[int]) -> int:
        best = max((_common(ids, seen) for seen in self._cache), default=0)
        return min(best, len(ids) - 1) // self._page * self._page

    def _remember(self, ids: list[int]) -> None:
        if not self._plan.args.get("disable_radix_cache"):
            self._cache = [*self._cache[-63:], tuple(ids)]

    def _say_prefill(self, batch: list[Request], part: int, left: int) -> None:
        tokens = max(1, self._plan.memory.tokens)
        self._rank.log.say(
            "prefill",
            seqs=len(batch),
            tokens=part,
            cached=sum(r.cached for r in batch),
            usage=self._used() / tokens,
            running=len(self._running),
            queue=0,
            pending=left,
            speed=self._plan.stage.prefill_per_s,
        )

    def _say_decode(self) -> None:
        tokens = max(1, self._plan.memory.tokens)
        self._rank.log.say(
            "decode",
            running=len(self._running),
            tokens=self._used(),
            usage=self._used() / tokens,
            graph=bool(self._plan.sizes),
            speed=len(self._running) / self._plan.stage.step_s,
            queue=len(self._waiting),
        )

    def _used(self) -> int:
        kept = 0.0
        if "leaks-kv" in self._plan.mischief:
            kept = min(_LEAK * self._served, 0.9) * self._plan.memory.tokens
        return int(kept) + sum(len(r.ids) + len(r.output) for r in self._running)


def _common(ids: list[int], seen: tuple[int, ...]) -> int:
    """Return how many tokens two prompts share from the start."""
    shared = 0
    for left, right in zip(ids, seen, strict=False):
        if left != right:
            break
        shared += 1
    return shared
