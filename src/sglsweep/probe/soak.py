"""A modest load for a long time: what dies, slows down, hangs or leaks only after an hour.

SGLang itself checks its KV pool whenever it is idle and ends with "memory leak detected" in the
log; the pauses between waves let it. What it does not see as a leak is seen here: a pool that
holds more and more when a wave begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, Soak, StepState
from sglsweep.probe.ladder import fitted, garbage, load_request, measured
from sglsweep.probe.log_lines import idle_kv_share
from sglsweep.probe.refusals import Context, refused
from sglsweep.probe.steps import SOAK, asking
from sglsweep.probe.target import Traffic

if TYPE_CHECKING:
    from sglsweep.probe.proof import Asked
    from sglsweep.probe.steps import ProofStepPlan
    from sglsweep.probe.target import Target

_AT_ONCE = 4
_WAVES = 4
_MOST_INPUT, _MOST_OUTPUT = 256, 128
_SLOWER = 0.8
"""A last quarter below this share of the first one's speed is told."""
_LEAKS = 0.05
"""So much more of the KV pool in use on an idle server is told."""
_LEAST_WAVES = 4
"""Quarters of fewer waves say nothing about drift."""


class Soaking:
    """One long load: wave after wave until its time is over or something breaks."""

    def __init__(self, target: Target, traffic: Traffic | None, *, soak_s: float) -> None:
        wanted = traffic or Traffic()
        small = Traffic(
            input=min(wanted.input, _MOST_INPUT),
            output=min(wanted.output, _MOST_OUTPUT),
            rungs=(_AT_ONCE,),
        )
        self._target = target
        self._traffic = fitted(small, target)
        self._soak_s = soak_s
        self._lasted_s = 0.0
        self._speeds: list[float] = []
        self._idle: list[float] = []
        self._cut = ""
        self._requests = 0
        self._errors = 0
        self._broke: ProofStep | None = None

    def next(self, elapsed_s: float) -> ProofStepPlan | None:
        """Return the next wave; None when the time is over or the server broke."""
        self._lasted_s = elapsed_s
        if self._broke is not None or self._cut or elapsed_s >= self._soak_s:
            return None
        at_once = self._traffic.rungs[0]
        count, seed = _WAVES * at_once, 1_000_000 + 1000 * len(self._speeds)
        requests = [
            load_request(self._target, f"soak-{i}", self._traffic, seed + i) for i in range(count)
        ]
        says = f"a soak, {at_once} at once, after {elapsed_s / 60:.0f} minutes"
        return replace(
            asking(SOAK, says, *requests, tokens=self._traffic.output, concurrency=at_once),
            is_sampled=True,
        )

    def judge(self, plan: ProofStepPlan, asked: Asked) -> None:
        """Take a wave's answers."""
        context = Context(
            target=self._target,
            listener=asked.listener,
            server_alive=asked.server_alive,
            log_is_fatal=asked.log_is_fatal,
        )
        self._broke = refused(plan, asked.responses, context) or garbage(plan, asked, self._target)
        if self._broke is None:
            wave = measured(plan, asked, self._traffic)
            self._speeds.append(wave.tokens_per_s)
            self._requests += wave.requests
            self._errors += wave.errors
            share = idle_kv_share(asked.log)
            self._idle += [] if share is None else [share]

    def cut(self, why: str, elapsed_s: float) -> None:
        """End it before its time, for no fault of the server."""
        self._cut, self._lasted_s = why, elapsed_s

    @property
    def soak(self) -> Soak:
        """What it came to, for the record."""
        quarter = max(len(self._speeds) // 4, 1)
        return Soak(
            asked_s=self._soak_s,
            lasted_s=round(self._lasted_s, 1),
            concurrency=self._traffic.rungs[0],
            requests=self._requests,
            errors=self._errors,
            first_tokens_per_s=_mean(self._speeds[:quarter]),
            last_tokens_per_s=_mean(self._speeds[-quarter:]),
            first_kv_share=min(self._idle[: max(len(self._idle) // 4, 1)], default=None),
            last_kv_share=min(self._idle[-max(len(self._idle) // 4, 1) :], default=None),
            is_cut=bool(self._cut),
        )

    @property
    def step(self) -> ProofStep:
        """What it says of the server, beside the steps of the proof."""
        if self._broke is not None:
            return self._broke
        soak = self.soak
        first, last = soak.first_tokens_per_s or 0.0, soak.last_tokens_per_s or 0.0
        said = f"{soak.requests:,} requests in {soak.lasted_s:.0f} s, {soak.concurrency} at once"
        said += f", {first:.0f} tokens/s at the beginning, {last:.0f} at the end"
        said += f", cut short: {self._cut}" if self._cut else ""
        doubts = [f"{soak.errors} not answered"] if soak.errors else []
        if len(self._speeds) >= _LEAST_WAVES:
            doubts += ["it became slower"] if last < _SLOWER * first else []
            doubts += _leak(soak)
        state = StepState.SUSPECT if doubts else StepState.OK
        return ProofStep(
            name=SOAK,
            state=state,
            detail="; ".join([said, *doubts]),
            elapsed_s=round(self._lasted_s, 1),
        )


def _leak(soak: Soak) -> list[str]:
    first, last = soak.first_kv_share, soak.last_kv_share
    if first is None or last is None or last < first + _LEAKS:
        return []
    return [f"the idle KV pool went from {first:.0%} to {last:.0%} in use: it does not come back"]


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None
