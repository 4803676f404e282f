"""The questions of the proof, in the order they are asked: short and gentle ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.probe import steps
from sglsweep.probe.need import need
from sglsweep.probe.prompts import SANITY_TEXT, TEXTS
from sglsweep.probe.requests import (
    chat,
    embed,
    generate,
    get,
    ids,
    new_tokens,
    older_than,
    own,
    prompt_of,
    short_prompt,
    why_no_chat,
)
from sglsweep.probe.steps import ProofStepPlan, asking, skipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.keeper_files import HttpRequest
    from sglsweep.probe.target import Target

_SAMPLED_TOKENS = 34
"""Enough to call collapse, and below 40, where the next step looks for its own faults."""
_LONG_DECODE_TOKENS, _LONG_DECODE_LEAST = 48, 41
"""SGLang writes its first "Decode batch" line, and some faults show, at 40 decode steps."""
_WAVE_TOKENS, _WAVE_PROMPT = 32, 32
_PREFIX_TOKENS = 12
_FEW_TOKENS = 16
"""Where one answer is asked, which proves no collapse: only that it comes."""
_BATCH_MOST = 64
_LOAD_CONCURRENCY, _LOAD_REQUESTS = 8, 16
_LONG_CONTEXT_MOST = 32_768
_OWN_REQUEST_S = 30.0


def plan(target: Target) -> tuple[ProofStepPlan, ...]:
    """Return all steps for this server.

    What the first two answers say may change the sizes of later steps, and whether the model
    is asked for text or for vectors; it never changes the order.
    """
    builders = _BUILDERS if target.is_generation else (_answers, _server_info, _embeds)
    return tuple(build(target) for build in builders)


def _answers(target: Target) -> ProofStepPlan:
    # 0.5.9 renamed it; newer servers know the old name too, and warn about it in the log.
    is_old = older_than(target.version, (0, 5, 9))
    own = get(target, "model", "/get_model_info" if is_old else "/model_info")
    models = get(target, "models", "/v1/models")
    return asking(steps.ANSWERS, "answering at all", own, models)


def _server_info(target: Target) -> ProofStepPlan:
    is_old = older_than(target.version, (0, 5, 9))
    path = "/get_server_info" if is_old else "/server_info"
    request = get(target, "server-info", path)
    return asking(steps.SERVER_INFO, "saying how it is configured", request)


def _embeds(target: Target) -> ProofStepPlan:
    request = embed(target, "embeds", *TEXTS[:2])
    return asking(steps.EMBEDS, "the vectors of two texts", request)


def _greedy(target: Target) -> ProofStepPlan:
    tokens = new_tokens(target, 8)
    request = generate(target, "greedy", short_prompt(target, 0), tokens=tokens)
    return asking(steps.GREEDY, "a short greedy prompt", request, tokens=tokens)


def _sampled(target: Target) -> ProofStepPlan:
    tokens = new_tokens(target, _SAMPLED_TOKENS)
    requests = [
        generate(
            target, f"sampled-{i}", short_prompt(target, 1 + i), tokens=tokens, temperature=1.0
        )
        for i in range(2)
    ]
    says = f"{tokens} tokens sampled at temperature 1"
    return asking(steps.SAMPLED, says, *requests, tokens=tokens, is_sampled=True)


def _wave_requests(  # noqa: PLR0913 - all but the name by name
    target: Target,
    name: str,
    count: int,
    *,
    seed: int,
    stream: bool = True,
    most: int = _WAVE_TOKENS,
) -> list[HttpRequest]:
    """Requests of equal size with different prompts, sampled."""
    size = _WAVE_PROMPT if target.longest is None else min(_WAVE_PROMPT, target.longest // 3)
    tokens = new_tokens(target, most)
    return [
        generate(
            target,
            f"{name}-{i}",
            ids(target, max(size, 1), seed + i),
            tokens=tokens,
            temperature=1.0,
            stream=stream,
        )
        for i in range(count)
    ]


def _two_at_once(target: Target) -> ProofStepPlan:
    return asking(
        steps.TWO_AT_ONCE,
        "two different prompts at once",
        *_wave_requests(target, "pair", 2, seed=10, stream=False),
        tokens=new_tokens(target, _WAVE_TOKENS),
        concurrency=2,
        is_sampled=True,
    )


def _prefix_hit(target: Target) -> ProofStepPlan:
    says = "the same prompt again (prefix hit)"
    if not target.reuses_prefixes:
        return skipped(steps.PREFIX_HIT, says, "the prefix cache is switched off")
    count, tokens = 2 * target.page_size + 32, new_tokens(target, _PREFIX_TOKENS)
    if target.longest is not None and count + tokens > target.longest:
        why = f"a request holds {target.longest:,} tokens, two pages are {2 * target.page_size:,}"
        return skipped(steps.PREFIX_HIT, says, why)
    prompt = prompt_of(target, count, tokens=tokens, seed=20)
    requests = [generate(target, f"same-{i}", prompt, tokens=tokens) for i in range(2)]
    return asking(steps.PREFIX_HIT, says, *requests, tokens=tokens)


def _long_decode(target: Target) -> ProofStepPlan:
    tokens = new_tokens(target, _LONG_DECODE_TOKENS)
    says = f"{tokens} decode steps"
    if tokens < _LONG_DECODE_LEAST:
        why = f"a request holds {target.longest or 0:,} tokens"
        return skipped(steps.LONG_DECODE, says, why)
    request = generate(target, "long-decode", short_prompt(target, 3), tokens=tokens)
    return asking(steps.LONG_DECODE, says, request, tokens=tokens)


def _chunked_prefill(target: Target) -> ProofStepPlan:
    says = "a prompt longer than one prefill chunk"
    if target.chunk is None:
        return skipped(steps.CHUNKED_PREFILL, says, "the chunk size is not known")
    if target.chunk <= 0:
        return skipped(steps.CHUNKED_PREFILL, says, "prompts are not cut into chunks")
    count, tokens = _over_a_chunk(target.chunk), new_tokens(target, _WAVE_TOKENS)
    if target.longest is not None and count + tokens > target.longest:
        why = f"a request holds {target.longest:,} tokens, one chunk is {target.chunk:,}"
        return skipped(steps.CHUNKED_PREFILL, says, why)
    requests = [
        generate(
            target, f"chunked-{i}", ids(target, count, 30 + i), tokens=tokens, temperature=1.0
        )
        for i in range(2)
    ]
    says = f"a prefill of {count:,} tokens (one chunk is {target.chunk:,})"
    return asking(
        steps.CHUNKED_PREFILL,
        says,
        *requests,
        tokens=tokens,
        concurrency=_at_once(target, requests_of=count + tokens),
        is_sampled=True,
        more_s=60.0,
    )


def _at_once(target: Target, *, requests_of: int) -> int:
    """Two where the KV pool holds two of this size, so that the step takes half as long."""
    fits = target.pool is None or 2 * requests_of <= target.pool
    return 2 if fits and target.max_running != 1 else 1


def _over_a_chunk(chunk: int) -> int:
    return chunk + max(64, chunk // 8)


def _logprobs(target: Target) -> ProofStepPlan:
    short = short_prompt(target, 0)
    prompt = SANITY_TEXT if isinstance(short, str) else short
    tokens = new_tokens(target, 8)
    extra = {"return_logprob": True, "logprob_start_len": 0}
    request = generate(target, "logprobs", prompt, tokens=tokens, extra=extra)
    return asking(steps.LOGPROBS, "log-probabilities of a fixed text", request, tokens=tokens)


def _streaming(target: Target) -> ProofStepPlan:
    requests = _wave_requests(target, "stream", 1, seed=40, most=_FEW_TOKENS)
    tokens = new_tokens(target, _FEW_TOKENS)
    return asking(steps.STREAMING, "a streamed answer", *requests, tokens=tokens)


def _chat(target: Target) -> ProofStepPlan:
    says = "the chat template"
    if why := why_no_chat(target):
        return skipped(steps.CHAT, says, why)
    question = "What is the capital of France? Answer in one sentence."
    request = chat(target, "chat", question, max_tokens=_FEW_TOKENS, ignore_eos=True)
    return asking(steps.CHAT, says, request)


_WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def _tools(target: Target) -> ProofStepPlan:
    parsers = [p for p in (target.tool_parser, target.reasoning_parser) if p]
    says = f"the parsers {', '.join(parsers)}" if parsers else "tool-call and reasoning parsers"
    why = why_no_chat(target) if parsers else "no flag names one"
    if why:
        return skipped(steps.TOOLS, says, why)
    more = {"tools": [_WEATHER_TOOL]} if target.tool_parser else {}
    question = "What is the weather in Paris? Use the tool if you have one."
    return asking(steps.TOOLS, says, chat(target, "tools", question, max_tokens=256, **more))


def _known_answers(target: Target) -> ProofStepPlan:
    says = "questions with known answers"
    if not target.known_answers:
        return skipped(steps.KNOWN_ANSWERS, says, "none given (`probe: {expect: ...}`)")
    if target.has_random_weights:
        return skipped(steps.KNOWN_ANSWERS, says, "the weights are random")
    if why := why_no_chat(target):
        return skipped(steps.KNOWN_ANSWERS, says, why)
    tokens = new_tokens(target, 512)
    requests = [
        chat(target, f"known-{i}", known.prompt, max_tokens=tokens)
        for i, known in enumerate(target.known_answers)
    ]
    return asking(steps.KNOWN_ANSWERS, says, *requests, more_s=30.0 * len(requests))


def _own_requests(target: Target) -> ProofStepPlan:
    says = "your own requests"
    if not target.requests:
        return skipped(steps.REQUESTS, says, "none given (`probe: {requests: FILE}`)")
    requests = [own(target, request) for request in target.requests]
    return asking(steps.REQUESTS, says, *requests, more_s=_OWN_REQUEST_S * len(requests))


def _long_context(target: Target) -> ProofStepPlan:
    says = "a long context"
    if target.longest is None:
        return skipped(steps.LONG_CONTEXT, says, "neither context nor KV pool is known")
    tokens = new_tokens(target, _FEW_TOKENS)
    count = min(target.longest - tokens, max(target.longest // 2, 1), _LONG_CONTEXT_MOST)
    if count <= max(_over_a_chunk(target.chunk or 0), 2 * _WAVE_PROMPT):
        return skipped(steps.LONG_CONTEXT, says, "no longer than prompts already asked")
    prompt = ids(target, count, seed=50)
    request = generate(target, "long", prompt, tokens=tokens, temperature=1.0)
    share = f" ({100 * count // target.kv_tokens} % of the KV pool)" if target.kv_tokens else ""
    says = f"a prompt of {count:,} tokens{share}"
    return asking(steps.LONG_CONTEXT, says, request, tokens=tokens, is_sampled=True, more_s=60.0)


def _load_size(target: Target) -> tuple[int, int]:
    """Requests at once, which the server's own limits may bound, and in all."""
    concurrency, count = target.load or (_LOAD_CONCURRENCY, _LOAD_REQUESTS)
    bounded = min(concurrency, target.max_running or concurrency, _held_at_once(target))
    return max(bounded, 1), max(count, 1)


def _held_at_once(target: Target) -> int:
    """Requests of a wave's size that the KV pool holds at once."""
    each = _WAVE_PROMPT + _WAVE_TOKENS + target.page_size
    return _BATCH_MOST if target.pool is None else max(target.pool // each, 1)


def _wave(target: Target, name: str, *, count: int, at_once: int, seed: int) -> ProofStepPlan:
    return asking(
        name,
        f"{count:,} requests, {at_once} at once",
        *_wave_requests(target, name, count, seed=seed),
        tokens=new_tokens(target, _WAVE_TOKENS),
        concurrency=at_once,
        is_sampled=True,
        more_s=30.0 + 2.0 * count,
    )


def _load(target: Target) -> ProofStepPlan:
    at_once, count = _load_size(target)
    return _wave(target, steps.LOAD, count=count, at_once=at_once, seed=100)


def _batch(target: Target) -> ProofStepPlan:
    if target.max_running is None:
        return skipped(steps.BATCH, "a full batch", "max-running-requests is not known")
    most = min(target.max_running, _BATCH_MOST, _held_at_once(target))
    if most <= _load_size(target)[0]:
        why = f"the server runs {most} at once, no more than the load does"
        return skipped(steps.BATCH, "a full batch", why)
    return _wave(target, steps.BATCH, count=most, at_once=most, seed=1000)


_BUILDERS: tuple[Callable[[Target], ProofStepPlan], ...] = (
    _answers,
    _server_info,
    _greedy,
    _sampled,
    _two_at_once,
    _prefix_hit,
    _long_decode,
    _chunked_prefill,
    _logprobs,
    _streaming,
    _chat,
    _tools,
    _known_answers,
    _own_requests,
    _long_context,
    _load,
    _batch,
    # Last: all that comes before is worth knowing of a server that is only too small.
    need,
)
