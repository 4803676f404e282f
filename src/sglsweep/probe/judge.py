"""What the answers to one question of the proof mean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.attempt import ProofStep, StepState
from sglsweep.probe import steps
from sglsweep.probe.latency import wave_numbers
from sglsweep.probe.reading import Generation, generation, vectors
from sglsweep.probe.refusals import OK, Context, error_status, refused, words
from sglsweep.probe.sanity import degenerate, disagreement, language_doubt, language_score, quote
from sglsweep.probe.steps import failed, ok, suspect
from sglsweep.probe.target import with_server_words
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sglsweep.keeper_files import HttpResponse
    from sglsweep.probe.steps import ProofStepPlan
    from sglsweep.probe.target import Target


def judge(step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context) -> ProofStep:
    """Return what the answers make of this step; asks nothing, knows no clock."""
    if step.not_applicable:
        return ProofStep(
            name=step.name, state=StepState.NOT_APPLICABLE, detail=step.not_applicable
        )
    if step.unmet:
        return failed(
            step,
            step.unmet,
            verdict=step.unmet_verdict,
            cause=step.unmet_cause,
            next_step=step.next_step,
        )
    judged = refused(step, responses, context) or _JUDGES[step.name](step, responses, context)
    elapsed = context.elapsed_s or max((r.elapsed_s for r in responses), default=0.0)
    return replace(judged, elapsed_s=round(elapsed, 3))


def _answered(responses: Sequence[HttpResponse]) -> list[Generation]:
    answers = [generation(r) for r in responses if error_status(r) == OK]
    return [a for a in answers if a is not None]


def _judge_answers(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    target = with_server_words(context.target, [r.body for r in responses if r.status == OK])
    holder = context.listener
    where = f"pid {holder.pid} listens on {holder.address}" if holder and holder.pid else "answers"
    kind = "" if target.is_generation else "; the model does not generate text"
    return ok(step, where + kind)


def _judge_server_info(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    target = with_server_words(context.target, [r.body for r in responses if r.status == OK])
    numbers = {
        "context": target.context,
        "kv_tokens": target.pool,
        "max_running_requests": target.max_running,
    }
    known = {name: float(value) for name, value in numbers.items() if value is not None}
    said = ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in known.items())
    return ok(step, said or "answers", known)


def _judge_text(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    """Judge what every generated answer has in common: it must be text, and as long as asked."""
    answers = _answered(responses)
    if not answers:
        return _unreadable(step, responses)
    return (
        _collapsed(step, answers, context.target)
        or _cut_short(step, answers)
        or ok(step, _sizes(answers))
    )


def _unreadable(step: ProofStepPlan, responses: Sequence[HttpResponse]) -> ProofStep:
    state = StepState.NOT_RUN if step.name in steps.CORE else StepState.SUSPECT
    return ProofStep(
        name=step.name,
        state=state,
        detail="an answer that is not SGLang's",
        evidence=responses[0].body[:120],
    )


def _sizes(answers: Sequence[Generation]) -> str:
    total, read = sum(a.completion_tokens for a in answers), sum(a.prompt_tokens for a in answers)
    return f"{total:,} tokens for {read:,}"


def _degenerate(answer: Generation, target: Target) -> str:
    return degenerate(answer, pad_id=target.pad_id, has_random_weights=target.has_random_weights)


def _collapsed(
    step: ProofStepPlan, answers: Sequence[Generation], target: Target
) -> ProofStep | None:
    ways = [(_degenerate(a, target), a) for a in answers]
    bad = [(way, a) for way, a in ways if way]
    if not bad:
        return None
    way, shown = bad[0]
    is_sure = any("not finite" in w for w, _ in bad) or (step.is_sampled and len(bad) > 1)
    how_many = f"{len(bad)} of {len(answers)} answers: " if len(answers) > 1 else ""
    said = f"{how_many}{way}"
    if is_sure:
        return _garbage(step, said, shown, target)
    kind = "sampled once" if step.is_sampled else "greedy"
    return suspect(step, f"{said} ({kind}: no proof of a fault)", quote(shown))


def _garbage(step: ProofStepPlan, said: str, shown: Generation, target: Target) -> ProofStep:
    """Fail the step, random weights or not: random weights still make varied, finite answers.

    Only the next step differs: uninitialised packed weights may hold NaN of their own.
    """
    judged = failed(
        step,
        f"garbage in {step.says}: {said}",
        verdict=Verdict.GARBAGE_OUTPUT,
        evidence=quote(shown),
    )
    return replace(judged, next_step=_DUMMY_NEXT) if target.has_random_weights else judged


_DUMMY_NEXT = (
    "The weights are random, so compare with another cell of the same weights: if one answers "
    "with varied tokens, the flags make this; if none does, the weights do."
)


def _cut_short(step: ProofStepPlan, answers: Sequence[Generation]) -> ProofStep | None:
    short = next((a for a in answers if a.completion_tokens < step.tokens), None)
    if short is None or not step.tokens:
        return None
    return suspect(
        step,
        f"stopped after {short.completion_tokens} of {step.tokens} tokens"
        f" ({short.finish or 'no reason given'})",
        quote(short),
    )


def _judge_prefix_hit(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    judged = _judge_text(step, responses, context)
    answers = _answered(responses)
    if judged.state is not StepState.OK or len(answers) < len(responses):
        return judged
    if (place := disagreement(answers)) is not None:
        return suspect(
            step,
            f"two greedy answers to one prompt differ from token {place + 1} on",
            f"{quote(answers[0], 60)} / {quote(answers[1], 60)}",
        )
    cached = answers[-1].cached_tokens
    if cached == 0:
        return suspect(step, "the server reused nothing of the same prompt")
    return ok(step, "the same answer" + (f", {cached:,} tokens from the cache" if cached else ""))


def _judge_logprobs(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    answers, target = _answered(responses), context.target
    if not answers:
        return _unreadable(step, responses)
    answer = answers[0]
    for what, known in (("answer", answer.logprobs), ("prompt", answer.input_logprobs)):
        if known and any(lp is None for lp in known):
            return _garbage(step, f"logprobs of the {what} that are not finite", answer, target)
    score = language_score(answer)
    if score is None:
        return suspect(step, "the server sent no logprobs")
    numbers = {"mean_logprob": round(score, 2)}
    if not target.has_tokenizer:
        return ok(step, f"finite, {score:.1f} a token", numbers)
    said = f"finite; plain English scores {score:.1f} a token"
    doubt = language_doubt(score, target.vocab)
    if not doubt or target.has_random_weights:
        return ok(step, said + (f", {doubt}: random weights, as asked" if doubt else ""), numbers)
    judged = suspect(step, f"{said}, {doubt}: the weights act like random ones", quote(answer))
    return replace(judged, numbers=numbers)


def _judge_streaming(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    judged = _judge_text(step, responses, context)
    if judged.state is not StepState.OK:
        return judged
    numbers = wave_numbers(responses, _answered(responses), elapsed_s=context.elapsed_s)
    if len(responses[0].chunks) <= 1:
        return replace(suspect(step, "the answer came in one piece"), numbers=numbers)
    return ok(step, _speed(numbers), numbers)


def _speed(numbers: dict[str, float]) -> str:
    parts = []
    if "ttft_p50_s" in numbers:
        parts.append(f"first token after {numbers['ttft_p50_s'] * 1000:.0f} ms")
    if "tpot_p50_s" in numbers:
        parts.append(f"{numbers['tpot_p50_s'] * 1000:.1f} ms a token")
    if "tokens_per_s" in numbers:
        parts.append(f"{numbers['tokens_per_s']:.0f} tokens/s")
    return ", ".join(parts)


def _judge_wave(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    judged = _judge_text(step, responses, context)
    if judged.state is StepState.FAILED:
        return judged
    answers = _answered(responses)
    served = [r for r in responses if error_status(r) == OK]
    numbers = wave_numbers(served, answers, elapsed_s=context.elapsed_s)
    if len(answers) < len(responses):
        turned_away = next(r for r in responses if error_status(r) != OK)
        said = f"{len(responses) - len(answers)} of {len(responses)} refused: {words(turned_away)}"
        return replace(suspect(step, said), numbers=numbers)
    if judged.state is StepState.SUSPECT:
        return replace(judged, numbers=numbers)
    return ok(step, f"{step.says}: {_speed(numbers)}", numbers)


def _judge_chat(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    answers = _answered(responses)
    if not answers:
        return _unreadable(step, responses)
    answer = answers[0]
    if answer.tool_calls:
        return ok(step, f"{answer.tool_calls} tool call")
    if not answer.text.strip():
        if context.target.has_random_weights:
            return ok(step, f"no text in {answer.completion_tokens} tokens: random weights")
        return suspect(step, f"no text in {answer.completion_tokens} tokens", quote(answer))
    return ok(step, quote(answer, 80))


def _judge_embeds(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    rows = vectors(responses[0])
    if len(rows) != len({tuple(row) for row in rows}) or not rows:
        said = "two texts have one vector" if rows else "an answer that is not SGLang's"
        state = StepState.SUSPECT if rows else StepState.NOT_RUN
        return ProofStep(name=step.name, state=state, detail=said)
    bad = next((row for row in rows if None in row or not any(row)), None)
    if bad is None:
        return ok(step, f"{len(rows)} vectors of {len(rows[0]):,} numbers")
    said = "a vector that is not finite" if None in bad else "a vector of zeros"
    return _garbage(step, said, Generation(text=str(bad[:8])), context.target)


def _judge_known_answers(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    known = context.target.known_answers
    pairs = [(k, generation(r) or Generation()) for k, r in zip(known, responses, strict=True)]
    wrong = [(k, a) for k, a in pairs if k.contains.casefold() not in a.text.casefold()]
    if not wrong:
        return ok(step, f"{len(pairs)} of {len(pairs)} right")
    # A model that was still thinking when its tokens were used up has not answered wrongly.
    finished = [(k, a) for k, a in wrong if a.finish != "length"]
    question, answer = (finished or wrong)[0]
    said = f"{question.prompt!r} is not answered with {question.contains!r}"
    if not finished:
        said += f" within {answer.completion_tokens} tokens"
        return suspect(step, said, quote(answer))
    return failed(
        step,
        said,
        verdict=Verdict.GARBAGE_OUTPUT,
        cause="wrong-answer",
        evidence=quote(answer),
        next_step="Compare with a build or a set of flags that is known to answer right: a"
        " kernel may compute something else, or the weights may be loaded wrongly.",
    )


_TEXT_PATHS = {"/generate", "/v1/completions", "/v1/chat/completions"}


def _judge_requests(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    """Judge the user's own requests: answered, and no garbage where the answer is text."""
    refused_ones = [r for r in responses if error_status(r) != OK]
    if refused_ones:
        first = refused_ones[0]
        said = f"{len(refused_ones)} of {len(responses)} refused; request {first.id}: "
        return suspect(step, f"{said}HTTP {error_status(first)}", words(first))
    texts = {r.id for r in step.requests if r.path in _TEXT_PATHS}
    answers = _answered([r for r in responses if r.id in texts])
    collapsed = _collapsed(step, answers, context.target)
    return collapsed or ok(step, f"{len(responses)} of {len(responses)} answered")


def _judge_need(
    step: ProofStepPlan, responses: Sequence[HttpResponse], context: Context
) -> ProofStep:
    judged = _judge_text(step, responses, context)
    if judged.state is not StepState.OK:
        return judged
    return ok(step, f"holds {step.says}")


_JUDGES: dict[str, Callable[[ProofStepPlan, Sequence[HttpResponse], Context], ProofStep]] = {
    steps.ANSWERS: _judge_answers,
    steps.SERVER_INFO: _judge_server_info,
    steps.GREEDY: _judge_text,
    steps.SAMPLED: _judge_text,
    steps.TWO_AT_ONCE: _judge_text,
    steps.PREFIX_HIT: _judge_prefix_hit,
    steps.LONG_DECODE: _judge_text,
    steps.CHUNKED_PREFILL: _judge_text,
    steps.LOGPROBS: _judge_logprobs,
    steps.STREAMING: _judge_streaming,
    steps.CHAT: _judge_chat,
    steps.TOOLS: _judge_chat,
    steps.EMBEDS: _judge_embeds,
    steps.KNOWN_ANSWERS: _judge_known_answers,
    steps.REQUESTS: _judge_requests,
    steps.LONG_CONTEXT: _judge_text,
    steps.LOAD: _judge_wave,
    steps.BATCH: _judge_wave,
    steps.NEED: _judge_need,
}
