"""How fast a proven server is: equal requests, more of them at once from rung to rung.

The proof shows that a server serves; the ladder shows how many it serves, and how well. It
ends where more at once brings nothing more, or where the server breaks: "serving up to 64".
Prompts are random token ids, so that no data set and no tokenizer is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, StepState
from sglsweep.probe.latency import wave_numbers
from sglsweep.probe.reading import Generation, streamed_completion
from sglsweep.probe.refusals import OK, Context, error_status, refused
from sglsweep.probe.requests import generate, ids
from sglsweep.probe.sanity import degenerate, quote
from sglsweep.probe.steps import ProofStepPlan, asking, failed
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.keeper_files import HttpRequest, HttpResponse
    from sglsweep.probe.proof import Asked
    from sglsweep.probe.target import Target

USUAL_RUNGS = (1, 8, 32, 64, 128)
_WAVES = 2
"""Requests for each one in flight: the first wave alone would be all prefill, then all decode."""
_LEAST_REQUESTS = 4
_WORTH_IT = 1.05
"""A rung must bring 5 % more than the best one so far; two that do not end the climb."""
_MOST_ERRORS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The requests of a ladder.

    Attributes:
        input: tokens of each prompt.
        output: tokens of each answer, exactly: the end-of-text token does not end it.
        rungs: requests in flight, ascending.
        slo: name of a number without its unit (`ttft_p99`, `tpot_p50`) -> seconds.
    """

    input: int = 1024
    output: int = 512
    rungs: tuple[int, ...] = USUAL_RUNGS
    slo: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One load, as it was borne.

    Attributes:
        tokens_per_s: output tokens of all requests together.
        numbers: `ttft_*_s` and `tpot_*_s` at p50, p90 and p99.
        errors: requests refused or not answered.
        meets_slo: None where no objective is set.
    """

    concurrency: int
    requests: int
    tokens_per_s: float
    numbers: Mapping[str, float]
    errors: int = 0
    meets_slo: bool | None = None


class Ladder:
    """The climb on one server: what to ask next, and what was measured so far."""

    def __init__(self, target: Target, traffic: Traffic) -> None:
        self._target = target
        self._traffic = _fitted(traffic, target)
        self._is_warm = False
        self._position = 0
        self._without_gain = 0
        self.rungs: list[Rung] = []
        self.broke: ProofStep | None = None
        self.ended_because = ""

    def next(self) -> ProofStepPlan | None:
        """Return the next rung's requests, one to warm up first; None at the end."""
        if self.ended_because:
            return None
        if not self._is_warm:
            return self._step("ladder-warm-up", count=1, at_once=1)
        if self._position >= len(self._traffic.rungs):
            self.ended_because = "every rung was climbed"
            return None
        at_once = self._traffic.rungs[self._position]
        count = max(_WAVES * at_once, _LEAST_REQUESTS)
        return self._step(f"ladder-{at_once}", count=count, at_once=at_once)

    def judge(self, step: ProofStepPlan, asked: Asked) -> Rung | None:
        """Take a rung's answers; None for the warm-up and for a rung at which it broke."""
        context = Context(
            target=self._target,
            listener=asked.listener,
            server_alive=asked.server_alive,
            log_is_fatal=asked.log_is_fatal,
        )
        broke = refused(step, asked.responses, context) or _garbage(step, asked, self._target)
        if broke is not None:
            self.broke = broke
            self.ended_because = f"{step.name}: {broke.detail}"
            return None
        if not self._is_warm:
            self._is_warm = True
            return None
        rung = _measured(step, asked, self._traffic)
        self._take(rung)
        return rung

    @property
    def best(self) -> Rung | None:
        """The fastest rung that meets the objectives, or the fastest where there are none."""
        fit = [r for r in self.rungs if r.meets_slo is not False]
        return max(fit, key=lambda r: r.tokens_per_s, default=None)

    @property
    def is_broken(self) -> bool:
        """The climb ended in a failure of the server, which `broke` names."""
        return self.broke is not None and self.broke.state is StepState.FAILED

    def _step(self, name: str, *, count: int, at_once: int) -> ProofStepPlan:
        traffic, seed = self._traffic, 10_000 * (self._position + 1)
        requests = [_request(self._target, f"{name}-{i}", traffic, seed + i) for i in range(count)]
        says = f"{count:,} requests of {traffic.input:,} + {traffic.output:,}, {at_once} at once"
        return asking(
            name,
            says,
            *requests,
            tokens=traffic.output,
            concurrency=at_once,
            is_sampled=True,
            more_s=60.0 + 5.0 * count,
        )

    def _take(self, rung: Rung) -> None:
        best = max((r.tokens_per_s for r in self.rungs), default=0.0)
        has_gained = rung.tokens_per_s >= _WORTH_IT * best
        self._without_gain = 0 if has_gained else self._without_gain + 1
        self.rungs.append(rung)
        self._position += 1
        if rung.errors > _MOST_ERRORS * rung.requests:
            self.ended_because = f"{rung.errors} of {rung.requests} requests failed"
        elif self._without_gain > 1:
            self.ended_because = f"no more than {best:.0f} tokens/s"


def _fitted(traffic: Traffic, target: Target) -> Traffic:
    """Shrink requests to what the server takes, and rungs to what it runs at once."""
    longest = target.longest
    if longest is not None and traffic.input + traffic.output > longest:
        share = longest / (traffic.input + traffic.output)
        sizes = (max(int(traffic.input * share), 1), max(int(traffic.output * share), 1))
        traffic = replace(traffic, input=sizes[0], output=sizes[1])
    if target.max_running is None:
        return traffic
    most = target.max_running * max(target.dp_size, 1)
    rungs = sorted({min(r, most) for r in traffic.rungs})
    return replace(traffic, rungs=tuple(rungs))


def _request(target: Target, request_id: str, traffic: Traffic, seed: int) -> HttpRequest:
    prompt = ids(target, traffic.input, seed)
    plain = generate(
        target, request_id, prompt, tokens=traffic.output, temperature=1.0, stream=True
    )
    if not target.has_tokenizer:
        return plain
    # /generate repeats all text with every token; a long answer would not fit the keeper's
    # 262,144 bytes. The completions endpoint sends only what is new.
    body = {
        "model": "default",
        "prompt": prompt,
        "max_tokens": traffic.output,
        "temperature": 1.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return replace(plain, path="/v1/completions", body=body)


def _answers(step: ProofStepPlan, served: Sequence[HttpResponse]) -> list[Generation]:
    """Answers as far as they can be read; each is as long as asked, or it would be an error."""
    found = [streamed_completion(r) or Generation() for r in served]
    return [replace(a, completion_tokens=a.completion_tokens or step.tokens) for a in found]


def _garbage(step: ProofStepPlan, asked: Asked, target: Target) -> ProofStep | None:
    if target.has_random_weights:
        return None
    served = [r for r in asked.responses if error_status(r) == OK]
    answers = _answers(step, served)
    bad = [(way, a) for a in answers if (way := degenerate(a, pad_id=target.pad_id))]
    if len(bad) < 2:  # noqa: PLR2004 - one model may loop once
        return None
    way, shown = bad[0]
    return failed(
        step,
        f"garbage in {step.says}: {len(bad)} of {len(answers)} answers: {way}",
        verdict=Verdict.GARBAGE_OUTPUT,
        evidence=quote(shown),
    )


def _measured(step: ProofStepPlan, asked: Asked, traffic: Traffic) -> Rung:
    served = [r for r in asked.responses if error_status(r) == OK]
    numbers = wave_numbers(served, _answers(step, served), elapsed_s=asked.elapsed_s)
    speed = numbers.pop("tokens_per_s", 0.0)
    met = [numbers.get(f"{name}_s", float("inf")) <= most for name, most in traffic.slo.items()]
    return Rung(
        concurrency=step.concurrency,
        requests=len(step.requests),
        tokens_per_s=round(speed, 1),
        numbers=numbers,
        errors=len(asked.responses) - len(served),
        meets_slo=all(met) if met else None,
    )
