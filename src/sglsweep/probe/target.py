"""What the proof must know of a server before it can ask it anything sensible."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.attempt import Scalar
    from sglsweep.keeper_files import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a server must hold to count: so many requests of so many tokens at once."""

    context: int | None = None
    concurrent: int = 1


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A question whose answer must contain a certain text (compared without case)."""

    prompt: str
    contains: str


@dataclass(frozen=True, slots=True)
class QualityQuestion:
    """A question whose right answer has one of some words."""

    prompt: str
    contains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualitySettings:
    """What is asked to tell whether it is the same model.

    Attributes:
        questions: empty: a dozen of common knowledge.
        needle: tokens of context in which a fact is to be found again.
        tools: ask for tool calls too.
        tokens: most tokens of an answer, thoughts included.
    """

    questions: tuple[QualityQuestion, ...] = ()
    needle: int | None = None
    tools: bool = False
    tokens: int = 512


USUAL_RUNGS = (1, 8, 32, 64, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The requests of a load ladder.

    Attributes:
        input: tokens of each prompt.
        output: tokens of each answer, exactly: the end-of-text token does not end it.
        rungs: requests in flight, ascending.
        slo: name of a number without its unit (`ttft_p99`, `tpot_p50`) -> seconds.
        is_short: some of the rungs, for a race of many servers.
        tool: what asks: "own", or a load tool of `load_tool.py`.
        program: where that tool is; None: where it is usually found.
    """

    input: int = 1024
    output: int = 512
    rungs: tuple[int, ...] = USUAL_RUNGS
    slo: Mapping[str, float] = field(default_factory=dict)
    is_short: bool = False
    tool: str = "bench_serving"
    program: str | None = None

    def shortened(self) -> Traffic:
        """Return the first, a middle and the last rung alone."""
        ends = {self.rungs[0], self.rungs[len(self.rungs) // 2], self.rungs[-1]}
        return replace(self, rungs=tuple(sorted(ends)), is_short=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """What the user wants proven.

    Attributes:
        has_random_weights: `probe: {weights: dummy}`.
        traffic: of the load ladder after the proof; None: none is climbed.
        soak_s: how long to go on asking after that; None: not at all.
        quality: questions about whether it is the same model; None: none are asked.
        load: concurrency and number of requests of the short load; None: chosen by the proof.
        api_key: as sent; `${NAME}` for a secret that only the keeper knows.
        requests: the user's own.
    """

    need: Need = field(default_factory=Need)
    known_answers: tuple[KnownAnswer, ...] = ()
    requests: tuple[HttpRequest, ...] = ()
    has_random_weights: bool = False
    load: tuple[int, int] | None = None
    traffic: Traffic | None = None
    soak_s: float | None = None
    quality: QualitySettings | None = None
    api_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A ready server as far as it is known; None where nobody has said.

    Attributes:
        context: longest request the server takes, prompt and answer together, in tokens.
        chunk: tokens of one prefill chunk; 0 or less: prompts are not cut.
        kv_tokens: size of the KV pool of one data-parallel rank, in tokens.
        vocab: number of token ids; every id below it may be sent.
        special_ids: ids that no prompt should contain (begin, end, pad).
        has_tokenizer: False with `skip-tokenizer-init`: prompts can only be token ids.
        reuses_prefixes: False where the prefix cache is switched off.
        has_random_weights: `probe: {weights: dummy}` or `load-format dummy`.
        watchdog_s: after this long the server itself gives up a stuck forward pass.
        api_key: as sent; `${NAME}` for a secret that only the keeper knows.
        requests: the user's own.
        load: concurrency and number of requests of the short load; None: chosen by the proof.
        words: what the server said of itself, for the journal.
    """

    version: str | None = None
    context: int | None = None
    chunk: int | None = None
    kv_tokens: int | None = None
    dp_size: int = 1
    page_size: int = 1
    max_running: int | None = None
    vocab: int | None = None
    pad_id: int | None = None
    special_ids: frozenset[int] = frozenset()
    has_tokenizer: bool = True
    is_generation: bool = True
    reuses_prefixes: bool = True
    has_random_weights: bool = False
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    watchdog_s: float = 300.0
    api_key: str | None = None
    need: Need = field(default_factory=Need)
    known_answers: tuple[KnownAnswer, ...] = ()
    requests: tuple[HttpRequest, ...] = ()
    load: tuple[int, int] | None = None
    words: Mapping[str, object] = field(default_factory=dict)

    @property
    def longest(self) -> int | None:
        """Tokens of the longest single request, prompt and answer, that this server can take.

        SGLang keeps a few tokens of the context and of the pool for itself (6 in 0.5.23).
        """
        bounds = [b for b in (self.context, self.kv_tokens) if b is not None]
        return min(bounds) - 8 if bounds else None

    @property
    def pool(self) -> int | None:
        """KV tokens of all data-parallel ranks together."""
        return None if self.kv_tokens is None else self.kv_tokens * max(self.dp_size, 1)


def from_launch(
    server_args: Mapping[str, Scalar],
    model_config: Mapping[str, object] | None = None,
    *,
    settings: ProbeSettings | None = None,
    version: str | None = None,
) -> Target:
    """Return what the log's `server_args` and the model's config.json say of a server.

    Args:
        server_args: as SGLang resolved them; both spellings (`_` and `-`) are read.
        model_config: the model's config.json; a multimodal model's text part is looked into.
            Without it prompts use only the few token ids that every vocabulary has.
        settings: what the user wants proven.
        version: SGLang's, where the log or the build says it.
    """
    wanted = settings or ProbeSettings()
    base = Target(
        version=version,
        need=wanted.need,
        known_answers=wanted.known_answers,
        requests=wanted.requests,
        has_random_weights=wanted.has_random_weights,
        load=wanted.load,
        api_key=wanted.api_key,
    )
    base = with_server_args(base, server_args)
    return base if model_config is None else with_model_config(base, model_config)


def with_server_args(target: Target, raw: Mapping[str, object]) -> Target:
    """Return the target with what resolved arguments say (from the log or from the server)."""
    args = {str(name).replace("-", "_"): value for name, value in raw.items()}
    context = _count(args.get("context_length"))
    watchdog = args.get("watchdog_timeout")
    chunk = args.get("chunked_prefill_size")
    return replace(
        target,
        context=context or target.context,
        chunk=chunk if isinstance(chunk, int) else target.chunk,
        max_running=_count(args.get("max_running_requests")) or target.max_running,
        page_size=_count(args.get("page_size")) or target.page_size,
        dp_size=_count(args.get("dp_size")) or target.dp_size,
        has_tokenizer=target.has_tokenizer and not args.get("skip_tokenizer_init"),
        reuses_prefixes=target.reuses_prefixes and not args.get("disable_radix_cache"),
        has_random_weights=target.has_random_weights or args.get("load_format") == "dummy",
        is_generation=target.is_generation and not args.get("is_embedding"),
        tool_parser=_text(args.get("tool_call_parser")) or target.tool_parser,
        reasoning_parser=_text(args.get("reasoning_parser")) or target.reasoning_parser,
        watchdog_s=watchdog if isinstance(watchdog, int | float) else target.watchdog_s,
    )


def with_model_config(target: Target, raw: Mapping[str, object]) -> Target:
    """Return the target with the vocabulary and special ids of a model's config.json."""
    nested = next(
        (raw[k] for k in ("text_config", "llm_config", "language_config") if k in raw), None
    )
    config = {**raw, **nested} if isinstance(nested, Mapping) else dict(raw)
    ids = {
        i for k in ("bos_token_id", "eos_token_id", "pad_token_id") for i in _ids(config.get(k))
    }
    pad = _ids(config.get("pad_token_id"))
    return replace(
        target,
        vocab=_count(config.get("vocab_size")) or target.vocab,
        pad_id=pad[0] if pad else target.pad_id,
        special_ids=target.special_ids | ids,
        context=target.context or _count(config.get("max_position_embeddings")),
    )


def with_server_words(target: Target, bodies: Sequence[str]) -> Target:
    """Return the target with what the running server says of itself.

    Args:
        target: what is known so far.
        bodies: answers of /model_info, /v1/models, /server_info or their older names, in any
            order; one that was cut off is searched for the numbers it still shows.
    """
    for body in bodies:
        target = _with_body(target, body)
    return target


def _with_body(target: Target, body: str) -> Target:
    said = _object(body)
    if isinstance(said.get("data"), list):
        return _with_models(target, said)
    if "is_generation" in said:
        target = replace(target, is_generation=bool(said["is_generation"]))
    if "max_total_num_tokens" in said:
        target = _with_server_info(target, said)
    return with_server_args(target, said)


def _with_models(target: Target, said: Mapping[str, object]) -> Target:
    models = said["data"]
    first = models[0] if isinstance(models, list) and models else None
    longest = first.get("max_model_len") if isinstance(first, dict) else None
    return replace(target, context=_count(longest) or target.context)


def _with_server_info(target: Target, said: Mapping[str, object]) -> Target:
    states = said.get("internal_states")
    state = states[0] if isinstance(states, list) and states else states
    inner = state if isinstance(state, dict) else {}
    running = _count(inner.get("effective_max_running_requests_per_dp"))
    return replace(
        target,
        version=_text(said.get("version")) or target.version,
        kv_tokens=_count(said.get("max_total_num_tokens")) or target.kv_tokens,
        max_running=running or target.max_running,
        words={**_scalars(said), **_scalars(inner)},
    )


_SECRET = re.compile(r"key|token$|secret|password", re.IGNORECASE)


def _scalars(said: Mapping[str, object]) -> dict[str, object]:
    """Keep what is worth a line in the journal; no list, no key that could be a secret."""
    return {
        str(name): value
        for name, value in said.items()
        if value is not None
        and isinstance(value, bool | int | float | str)
        and not _SECRET.search(str(name))
        and name != "launch_command"
    } | ({"memory_usage": said["memory_usage"]} if said.get("memory_usage") else {})


_NUMBER = re.compile(r'"(max_total_num_tokens|chunked_prefill_size|page_size)":\s*(-?\d+)')


def _object(body: str) -> dict[str, object]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {name: int(number) for name, number in _NUMBER.findall(body)}
    return parsed if isinstance(parsed, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _ids(value: object) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
