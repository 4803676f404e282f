"""How fast a proven server is: equal requests, more of them at once from rung to rung.

The proof shows that a server serves; the ladder shows how many it serves, and how well. It
ends where more at once brings nothing more, or where the server breaks: "serving up to 64".
Prompts are random token ids, so that no data set and no tokenizer is needed. A load tool may ask
in our place; what its runs come to is taken like our own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import Ladder, ProofStep, Rung, StepState
from sglsweep.probe.latency import wave_numbers
from sglsweep.probe.load_tool import OWN
from sglsweep.probe.reading import Generation, streamed_completion
from sglsweep.probe.refusals import OK, Context, error_status, refused
from sglsweep.probe.requests import generate, ids
from sglsweep.probe.sanity import degenerate, quote
from sglsweep.probe.steps import LADDER, ProofStepPlan, asking, failed
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.keeper_files import HttpRequest, HttpResponse
    from sglsweep.probe.proof import Asked
    from sglsweep.probe.target import Target, Traffic

_WAVES = 2
"""Requests for each one in flight: the first wave alone would be all prefill, then all decode."""
_LEAST_REQUESTS = 4
_WORTH_IT = 1.05
"""A rung must bring 5 % more than the best one so far; two that do not end the climb."""
_MOST_ERRORS = 0.05
WARM_UP = "ladder-warm-up"


class Climb:
    """The ladder on one server: what to ask next, and what was measured so far."""

    def __init__(self, target: Target, traffic: Traffic) -> None:
        self._target = target
        self._traffic = fitted(traffic, target)
        self._is_warm = False
        self._position = 0
        self._without_gain = 0
        self.rungs: list[Rung] = []
        self.broke: ProofStep | None = None
        self.ended_because = ""
        self.tool = OWN
        self.note = ""
        self.is_cut = False

    @property
    def traffic(self) -> Traffic:
        """The requests as they fit this server."""
        return self._traffic

    def next(self) -> ProofStepPlan | None:
        """Return the next rung's requests, one to warm up first; None at the end."""
        if self.ended_because:
            return None
        if not self._is_warm:
            return self._step(WARM_UP, count=1, at_once=1)
        if self._position >= len(self._traffic.rungs):
            self.ended_because = "every rung was climbed"
            return None
        at_once = self._traffic.rungs[self._position]
        count = max(_WAVES * at_once, _LEAST_REQUESTS)
        return self._step(f"ladder-{at_once}", count=count, at_once=at_once)

    def judge(self, step: ProofStepPlan, asked: Asked, *, counts: bool = True) -> Rung | None:
        """Take a rung's answers; None for the warm-up and for a rung at which it broke.

        Args:
            step: what was asked.
            asked: what came back.
            counts: False where it is only about whether the server still answers.
        """
        context = Context(
            target=self._target,
            listener=asked.listener,
            server_alive=asked.server_alive,
            log_is_fatal=asked.log_is_fatal,
        )
        broke = refused(step, asked.responses, context) or garbage(step, asked, self._target)
        if broke is not None:
            self.break_at(step, broke)
            return None
        if not self._is_warm or not counts:
            self._is_warm = True
            return None
        return self.take(measured(step, asked, self._traffic))

    def take(self, rung: Rung) -> Rung:
        """Take one rung, whoever measured it; returns it with the objectives judged."""
        rung = replace(rung, meets_slo=_meets(rung.numbers, self._traffic.slo))
        self._take(rung)
        return rung

    def break_at(self, step: ProofStepPlan, broke: ProofStep) -> None:
        """End in what broke the server at a rung."""
        self.broke = broke
        self.ended_because = f"{step.name}: {broke.detail}"

    def ask_once(self) -> ProofStepPlan:
        """Return one small question: does the server still answer after a tool failed?"""
        return self._step(WARM_UP, count=1, at_once=1)

    def stop(self, why: str, *, is_cut: bool = False) -> None:
        """Ask nothing more."""
        self.is_cut = self.is_cut or is_cut
        self.ended_because = self.ended_because or why

    @property
    def ladder(self) -> Ladder:
        """What was measured so far, for the record."""
        return Ladder(
            rungs=tuple(self.rungs),
            input=self._traffic.input,
            output=self._traffic.output,
            slo=self._traffic.slo,
            is_short=self._traffic.is_short,
            is_cut=self.is_cut,
            ended_because=self.ended_because,
            tool=self.tool,
            note=self.note,
        )

    @property
    def step(self) -> ProofStep:
        """What the whole climb says of the server, beside the steps of the proof."""
        if self.broke is not None:
            upto = f"; served up to {self.rungs[-1].concurrency} at once" if self.rungs else ""
            return replace(self.broke, name=LADDER, detail=self.broke.detail + upto)
        best = self.ladder.best
        if not self.rungs:
            return ProofStep(
                name=LADDER, state=StepState.NOT_APPLICABLE, detail=self.ended_because
            )
        said = "no rung meets the objectives"
        if best is not None:
            said = f"best {best.tokens_per_s:.0f} tokens/s at {best.concurrency}"
        climbed = ", ".join(str(r.concurrency) for r in self.rungs)
        return ProofStep(
            name=LADDER,
            state=StepState.OK,
            detail=f"{climbed} at once; {said}; {self.ended_because}",
        )

    @property
    def is_broken(self) -> bool:
        """The climb ended in a failure of the server, which `broke` names."""
        return self.broke is not None and self.broke.state is StepState.FAILED

    def _step(self, name: str, *, count: int, at_once: int) -> ProofStepPlan:
        traffic, seed = self._traffic, 10_000 * (self._position + 1)
        requests = [
            load_request(self._target, f"{name}-{i}", traffic, seed + i) for i in range(count)
        ]
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


def fitted(traffic: Traffic, target: Target) -> Traffic:
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


def load_request(target: Target, request_id: str, traffic: Traffic, seed: int) -> HttpRequest:
    """Return one streamed request of the traffic's size; other seeds give other prompts."""
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


def garbage(step: ProofStepPlan, asked: Asked, target: Target) -> ProofStep | None:
    """Return a failed step where several answers collapsed under the load."""
    if target.has_random_weights:
        return None
    served = [r for r in asked.responses if error_status(r) == OK]
    answers = _answers(step, served)
    bad = [(way, a) for a in answers if (way := degenerate(a, pad_id=target.pad_id))]
    if len(bad) < 2:  # noqa: PLR2004 - one model may loop once
        return None
    return _garbage(step, bad, len(answers))


def collapsed(
    step: ProofStepPlan, texts: Sequence[tuple[str, int]], target: Target
) -> ProofStep | None:
    """Return a failed step where most answers of a load tool are one letter, or none.

    A tool asks greedily, so that one answer that repeats itself says little; most of them do.

    Args:
        step: what was asked.
        texts: answers with their number of tokens.
        target: the server.
    """
    if target.has_random_weights:
        return None
    answers = [Generation(text=text, completion_tokens=tokens) for text, tokens in texts]
    bad = [(way, a) for a in answers if (way := degenerate(a, pad_id=target.pad_id))]
    if len(bad) <= max(len(answers) // 2, 1):
        return None
    return _garbage(step, bad, len(answers))


def _garbage(step: ProofStepPlan, bad: Sequence[tuple[str, Generation]], count: int) -> ProofStep:
    way, shown = bad[0]
    return failed(
        step,
        f"garbage in {step.says}: {len(bad)} of {count} answers: {way}",
        verdict=Verdict.GARBAGE_OUTPUT,
        evidence=quote(shown),
    )


def measured(step: ProofStepPlan, asked: Asked, traffic: Traffic) -> Rung:
    """Return what one wave of requests came to."""
    served = [r for r in asked.responses if error_status(r) == OK]
    answers = _answers(step, served)
    numbers = wave_numbers(served, answers, elapsed_s=asked.elapsed_s, also=traffic.slo)
    speed = numbers.pop("tokens_per_s", 0.0)
    return Rung(
        concurrency=step.concurrency,
        requests=len(step.requests),
        tokens_per_s=round(speed, 1),
        numbers={**numbers, **asked.numbers},
        errors=len(asked.responses) - len(served),
    )


def _meets(numbers: Mapping[str, float], slo: Mapping[str, float]) -> bool | None:
    """Tell whether a rung keeps the objectives; None without any, or where one is not measured."""
    known = [(numbers.get(f"{name}_s"), most) for name, most in slo.items()]
    if any(value is not None and value > most for value, most in known):
        return False
    return True if known and all(value is not None for value, _ in known) else None
