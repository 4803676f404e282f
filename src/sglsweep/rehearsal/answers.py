"""The JSON that SGLang answers with, as real servers of each version gave it."""

from __future__ import annotations

import random
import time
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.rehearsal.engine import Progress
    from sglsweep.rehearsal.plan import Plan

Json = dict[str, Any]

_WORDS = (
    "the",
    "model",
    "answers",
    "with",
    "plain",
    "words",
    "and",
    "this",
    "line",
    "is",
    "made",
    "up",
    "by",
    "a",
    "rehearsal",
    "so",
    "that",
    "nobody",
    "takes",
    "it",
    "for",
    "knowledge",
    "about",
    "anything",
    "in",
    "the",
    "world",
    "while",
    "it",
    "still",
    "reads",
    "like",
    "text",
)


def tokenize(text: str, vocabulary: int) -> list[int]:
    """Return stable made-up token ids: one for each four bytes or so, as tokenizers average."""
    content = text.encode()
    pieces = [content[start : start + 4] for start in range(0, len(content), 4)]
    return [zlib.crc32(piece) % (vocabulary - 100) + 100 for piece in pieces]


def detokenize(ids: Sequence[int]) -> str:
    """Return text for made-up ids; id 0 is `!`, as in many vocabularies."""
    return "".join("!" if i == 0 else f" {_WORDS[i % len(_WORDS)]}" for i in ids)


def generation(
    progress: Progress, prompt_tokens: int, elapsed_s: float, logprobs: Json | None
) -> Json:
    """Return one object of /generate."""
    ids = list(progress.ids)
    finish = {"type": "length", "length": len(ids)} if progress.done else None
    cached = {"device": progress.cached, "host": 0} if progress.cached else None
    meta: Json = {
        "id": progress.rid,
        "finish_reason": finish,
        "prompt_tokens": prompt_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        **(logprobs or {}),
        "reasoning_tokens": 0,
        "completion_tokens": len(ids),
        "cached_tokens": progress.cached,
        "cached_tokens_details": cached,
        "dp_rank": None,
    }
    if progress.done:
        meta["weight_versions"] = [{"version": "default", "start": 0, "end": len(ids)}]
        meta["e2e_latency"] = elapsed_s
        meta["response_sent_to_client_ts"] = time.time()
    return {"text": detokenize(ids), "output_ids": ids, "meta_info": meta}


def logprobs_of(ids: Sequence[int], prompt: Sequence[int], start: int, *, finite: bool) -> Json:
    """Return the logprob fields of meta_info; nulls where the logits were not `finite`.

    `start` is the first prompt token whose logprob is wanted; -1 for none.
    """
    chance = random.Random(len(prompt))  # noqa: S311 - made-up numbers

    def entry(token: int) -> list[Any]:
        return [-6.0 * chance.random() - 0.2 if finite else None, token, None]

    asked = list(prompt[start:]) if start >= 0 else []
    inputs = [
        [None, token, None] if not place else entry(token) for place, token in enumerate(asked)
    ]
    return {
        "input_token_logprobs": inputs,
        "output_token_logprobs": [entry(token) for token in ids],
        "output_token_logprobs_length": len(ids),
    }


def chat_completion(progress: Progress, model: str, prompt_tokens: int) -> Json:
    """Return the answer of /v1/chat/completions."""
    message = {
        "role": "assistant",
        "content": detokenize(progress.ids).strip(" "),
        "reasoning_content": None,
        "tool_calls": None,
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    return _completion("chat.completion", progress, model, prompt_tokens, choice)


def text_completion(progress: Progress, model: str, prompt_tokens: int) -> Json:
    """Return the answer of /v1/completions."""
    choice = {
        "index": 0,
        "text": detokenize(progress.ids),
        "logprobs": None,
        "finish_reason": "length",
    }
    return _completion("text_completion", progress, model, prompt_tokens, choice)


def text_chunks(progress: Progress, model: str, prompt_tokens: int) -> list[Json]:
    """Return the next events of a streamed /v1/completions: new text, at last the usage."""
    whole = text_completion(progress, model, prompt_tokens)
    choice = whole["choices"][0] | {"text": detokenize(progress.ids[-1:])}
    if not progress.done:
        return [whole | {"choices": [choice | {"finish_reason": None}], "usage": None}]
    return [whole | {"choices": [choice], "usage": None}, whole | {"choices": []}]


def chat_chunk(progress: Progress, model: str, text: str, *, is_first: bool) -> Json:
    """Return one event of a streamed chat."""
    delta: Json = {"reasoning_content": None}
    delta |= {"role": "assistant", "content": ""} if is_first else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": None, "matched_stop": None}
    choice["finish_reason"] = "length" if progress.done and not is_first else None
    return {
        "id": progress.rid,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
    }


def model_info(plan: Plan) -> Json:
    """Return the answer of /model_info."""
    args = plan.args
    return {
        "model_path": args["model_path"],
        "served_model_name": args["served_model_name"],
        "tokenizer_path": args["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": args["load_format"],
        "reasoning_parser": args["reasoning_parser"],
        "tool_call_parser": args["tool_call_parser"],
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "glm_moe_dsa",
        "architectures": [plan.stage.architecture],
    }


def models(plan: Plan) -> Json:
    """Return the answer of /v1/models."""
    name = plan.args["served_model_name"]
    card = {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": name,
        "parent": None,
        "max_model_len": context_of(plan),
    }
    return {"object": "list", "data": [card]}


def server_info(plan: Plan, command: str) -> Json:
    """Return the answer of /server_info: the effective flags, and that it is a rehearsal."""
    memory = plan.memory
    graph = memory.before_capture - memory.left if plan.sizes else 0.0
    usage: Json = {
        "weight": round(memory.weights, 3),
        "kvcache": round(memory.kv, 3),
        "token_capacity": memory.tokens,
        "graph": round(graph, 3),
    }
    state = {
        **plan.args,
        "effective_max_running_requests_per_dp": memory.running,
        "last_gen_throughput": 0.0,
        "memory_usage": usage,
    }
    if plan.stage.sglang_version != "0.5.9":
        usage["graph"] = {"prefill": 0.0, "decode": round(graph, 3)}
    return {
        **plan.args,
        "launch_command": command,
        "status": "ready",
        "max_total_num_tokens": memory.tokens,
        "max_req_input_len": context_of(plan) - 6,
        "internal_states": [state],
        "version": plan.stage.sglang_version,
        "rehearsal": True,
        "rehearsal_world": plan.world,
    }


def context_of(plan: Plan) -> int:
    """Return the context length that is served."""
    return int(str(plan.args.get("context_length") or plan.stage.context))


def _completion(
    kind: str, progress: Progress, model: str, prompt_tokens: int, choice: Mapping[str, Any]
) -> Json:
    usage = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + len(progress.ids),
        "completion_tokens": len(progress.ids),
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
        "completion_tokens_details": None,
    }
    return {
        "id": progress.rid,
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "choices": [{**choice, "matched_stop": None}],
        "usage": usage,
        "metadata": {"weight_version": "default"},
    }
