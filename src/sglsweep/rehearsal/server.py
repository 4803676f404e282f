"""The HTTP side: SGLang's endpoints over an engine, access lines included."""

from __future__ import annotations

import json
import queue
import socket
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from sglsweep.rehearsal import answers, knowledge
from sglsweep.rehearsal.engine import Ask
from sglsweep.rehearsal.voice import STDOUT
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.rehearsal.engine import Engine
    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.voice import Log

_HEALTH_TIMEOUT_S = 20.0
_LEAST_TIMEOUT_S = 0.5
_OPEN = ("/health", "/health_generate", "/ready", "/metrics")
_SILENT_YES = ("/flush_cache", "/ready", "/freeze_gc", "/abort_request")
_OLD_NAMES = {"/get_model_info": "/model_info", "/get_server_info": "/server_info"}


class BrokenAnswer(Exception):  # noqa: N818 - what the HTTP side makes of it is a status
    """The answer cannot be written: status 500 with this text."""


class BadRequest(Exception):  # noqa: N818 - the HTTP word for it
    """The request is the asker's mistake: status 400 with this text."""


class Api(ThreadingHTTPServer):
    """Listens from the moment it is made.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 512

    def __init__(self, plan: Plan, log: Log, engine: Engine, command: str) -> None:
        self.plan = plan
        self.log = log
        self.engine = engine
        self.command = command
        self.is_stopping = False
        super().__init__((str(plan.args["host"]), plan.int_arg("port")), Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        host, port = self.socket.getsockname()[:2]
        self.server_address = (host, port)
        self.server_name, self.server_port = str(host), int(port)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Api
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: 40 ms apart otherwise
    server_version = "uvicorn"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer({})

    def do_POST(self) -> None:
        """Answer a POST with a JSON body."""
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        try:
            body = json.loads(text) if text else {}
        except ValueError:
            self._send(400, {"object": "error", "message": "JSON decode error", "code": 400})
            return
        self._answer(body if isinstance(body, dict) else {})

    def log_message(self, *_: object) -> None:
        """Leave the access line to `_access`."""

    def _answer(self, body: Mapping[str, Any]) -> None:
        path = self.path.partition("?")[0]
        if not self._is_allowed(path):
            self._send(401, {"error": "Unauthorized"})
            return
        if path in _OLD_NAMES:
            self.server.log.say("deprecated", old=path, new=_OLD_NAMES[path])
        try:
            self._route(_OLD_NAMES.get(path, path), body)
        except BrokenAnswer as error:
            self._send(500, {"detail": str(error)})
        except BadRequest as error:
            self.server.log.record(f"[http_server] Error: {error}")
            self._send(400, {"error": {"message": str(error)}})

    def _is_allowed(self, path: str) -> bool:
        key = self.server.plan.args.get("api_key")
        return not key or path in _OPEN or self.headers.get("Authorization") == f"Bearer {key}"

    def _route(self, path: str, body: Mapping[str, Any]) -> None:
        if path in {"/health", "/health_generate"}:
            self._send(200 if self._is_healthy() else 503, None)
        elif path in _SILENT_YES:
            self._send(200, None)
        elif path in {"/generate", "/v1/chat/completions", "/v1/completions"}:
            self._infer(path, body)
        else:
            content = self._facts(path)
            self._send(404 if content is None else 200, content or {"detail": "Not Found"})

    def _facts(self, path: str) -> answers.Json | None:
        plan = self.server.plan
        if path == "/model_info":
            return answers.model_info(plan)
        if path == "/server_info" and "broken-server-info" in plan.mischief:
            raise BrokenAnswer("Out of range float values are not JSON compliant: nan")
        if path == "/server_info":
            return answers.server_info(plan, self.server.command)
        if path == "/v1/models":
            return answers.models(plan)
        return None

    def _infer(self, path: str, body: Mapping[str, Any]) -> None:
        if path == "/generate":
            self._generate(body)
        elif path == "/v1/completions":
            self._complete(body)
        else:
            self._chat(body)

    def _is_healthy(self) -> bool:
        if self.server.is_stopping:
            return False
        ask = Ask(ids=[1], new_tokens=1, temperature=0.0, kind="health")
        limit = max(_LEAST_TIMEOUT_S, _HEALTH_TIMEOUT_S * self.server.log.clock.scale)
        try:
            self.server.engine.finish(self.server.engine.submit(ask), limit)
        except queue.Empty:
            return False
        return True

    def _generate(self, body: Mapping[str, Any]) -> None:
        began = time.monotonic()
        prompts, is_batch = _prompts(body, self.server.plan)
        sampling = body.get("sampling_params") or {}
        stream = bool(body.get("stream"))
        kind = "logprobs" if body.get("return_logprob") else "user"
        asks = [
            replace(_ask(ids, sampling, stream, "max_new_tokens", self.server.plan), kind=kind)
            for ids in prompts
        ]
        rids = [self.server.engine.submit(ask) for ask in asks]
        if stream and not is_batch:
            self._stream_generation(rids[0], prompts[0], began)
            return
        found = [
            self._generation(rid, ids, body, began) for rid, ids in zip(rids, prompts, strict=True)
        ]
        self._send(200, found if is_batch else found[0])

    def _generation(
        self, rid: str, ids: Sequence[int], body: Mapping[str, Any], began: float
    ) -> answers.Json:
        progress = self.server.engine.finish(rid)
        logprobs = None
        if body.get("return_logprob"):
            logprobs = answers.logprobs_of(
                progress.ids,
                ids,
                int(body.get("logprob_start_len", -1)),
                finite=self.server.plan.truth.verdict not in _NOT_NUMBERS,
            )
        return answers.generation(progress, len(ids), time.monotonic() - began, logprobs)

    def _stream_generation(self, rid: str, ids: Sequence[int], began: float) -> None:
        self._start_stream()
        for progress in self.server.engine.follow(rid):
            elapsed = time.monotonic() - began
            self._event(json.dumps(answers.generation(progress, len(ids), elapsed, None)))
        self._end_stream()

    def _chat(self, body: Mapping[str, Any]) -> None:
        text = "\n".join(str(m.get("content")) for m in body.get("messages") or [])
        known = knowledge.answer(text, body.get("tools"), self.server.plan.mischief)
        ids = answers.tokenize(f"[gMASK]<sop><|user|>{text}<|assistant|>", self._vocabulary)
        model = str(body.get("model") or self.server.plan.args["served_model_name"])
        ask = _ask(ids, body, bool(body.get("stream")), "max_tokens", self.server.plan)
        ask = replace(ask, kind="tools" if body.get("tools") else "chat")
        rid = self.server.engine.submit(ask)
        if not ask.stream:
            progress = self.server.engine.finish(rid)
            said = answers.chat_completion(progress, model, len(ids))
            self._send(200, said if known is None else knowledge.spoken(said, known))
            return
        self._start_stream()
        is_first = True
        for progress in self.server.engine.follow(rid):
            text = answers.detokenize(progress.ids[-1:])
            if is_first:
                chunk = answers.chat_chunk(progress, model, "", is_first=True)
                self._event(json.dumps(chunk))
            is_first = False
            self._event(json.dumps(answers.chat_chunk(progress, model, text, is_first=False)))
        self._end_stream()

    def _complete(self, body: Mapping[str, Any]) -> None:
        ids = self._prompt_ids(body.get("prompt"))
        model = str(body.get("model") or self.server.plan.args["served_model_name"])
        ask = _ask(ids, body, bool(body.get("stream")), "max_tokens", self.server.plan)
        rid = self.server.engine.submit(ask)
        if not ask.stream:
            progress = self.server.engine.finish(rid)
            self._send(200, answers.text_completion(progress, model, len(ids)))
            return
        self._start_stream()
        for progress in self.server.engine.follow(rid):
            for event in answers.text_chunks(progress, model, len(ids)):
                self._event(json.dumps(event))
        self._end_stream()

    def _prompt_ids(self, prompt: object) -> list[int]:
        """Return a prompt of the completions endpoint, text or token ids, as ids."""
        if isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
            return prompt
        return answers.tokenize(str(prompt or ""), self._vocabulary)

    @property
    def _vocabulary(self) -> int:
        return self.server.plan.stage.vocabulary

    def _send(self, status: int, content: object) -> None:
        self._access(status)
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def _start_stream(self) -> None:
        self._access(200)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _end_stream(self) -> None:
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _access(self, status: int) -> None:
        host, port = self.client_address[:2]
        reason = self.responses[status][0]
        line = f'{host}:{port} - "{self.command} {self.path} HTTP/1.1" {status} {reason}'
        self.server.log.uvicorn(line, stream=STDOUT)


_NOT_NUMBERS = frozenset({Verdict.NAN_IN_PROBS, Verdict.GARBAGE_OUTPUT})


def _prompts(body: Mapping[str, Any], plan: Plan) -> tuple[list[list[int]], bool]:
    """Return the prompts as token ids, and whether a batch was asked."""
    ids, text = body.get("input_ids"), body.get("text")
    if isinstance(ids, list) and ids:
        is_batch = isinstance(ids[0], list)
        prompts = ids if is_batch else [ids]
    elif text:
        is_batch = isinstance(text, list)
        texts = text if is_batch else [text]
        prompts = [answers.tokenize(str(t), plan.stage.vocabulary) for t in texts]
    else:
        raise BadRequest("Either text, input_ids or input_embeds should be provided.")
    return prompts, is_batch


def _ask(
    ids: Sequence[int],
    options: Mapping[str, Any],
    stream: bool,  # noqa: FBT001 - as SGLang's request spells it
    length_key: str,
    plan: Plan,
) -> Ask:
    context = answers.context_of(plan)
    if len(ids) >= context:
        raise BadRequest(
            f"The input ({len(ids)} tokens) is longer than the model's context length "
            f"({context} tokens)."
        )
    temperature = options.get("temperature")
    return Ask(
        ids=ids,
        new_tokens=max(1, int(options.get(length_key) or 128)),
        temperature=1.0 if temperature is None else float(temperature),
        stream=stream,
    )
