"""Asks a server on this machine what the keeper would ask it on the host."""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sglsweep.keeper_files import HttpRequest, HttpResponse
from sglsweep.probe.proof import Asked

if TYPE_CHECKING:
    from sglsweep.probe.steps import ProofStepPlan


class Asker:
    """Sends a step's requests to 127.0.0.1 and keeps every exchange it had."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.had: list[tuple[ProofStepPlan, Asked]] = []

    def __call__(self, step: ProofStepPlan) -> Asked:
        began = time.monotonic()
        with ThreadPoolExecutor(step.concurrency) as pool:
            responses = list(pool.map(lambda r: self._one(r, began), step.requests))
        asked = Asked(responses=responses, elapsed_s=time.monotonic() - began)
        self.had.append((step, asked))
        return asked

    def _one(self, request: HttpRequest, began: float) -> HttpResponse:
        started = time.monotonic()
        try:
            status, body, chunks = self._exchange(request, started)
        except TimeoutError:
            return HttpResponse(id=request.id, error="timeout", started_s=started - began)
        except ConnectionRefusedError:
            return HttpResponse(id=request.id, error="refused", started_s=started - began)
        except (OSError, http.client.HTTPException) as error:
            return HttpResponse(id=request.id, error=str(error), started_s=started - began)
        return HttpResponse(
            id=request.id,
            status=status,
            body=body,
            elapsed_s=time.monotonic() - started,
            first_byte_s=chunks[0] if chunks else None,
            chunks=tuple(chunks) if request.stream else (),
            started_s=started - began,
        )

    def _exchange(self, request: HttpRequest, started: float) -> tuple[int, str, list[float]]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=request.timeout_s)
        try:
            body = None if request.body is None else json.dumps(request.body)
            headers = {"Content-Type": "application/json", **request.headers}
            link.request(request.method, request.path, body, headers)
            answer = link.getresponse()
            pieces, chunks = [], []
            while piece := answer.read1(65536):
                pieces.append(piece)
                chunks.append(time.monotonic() - started)
            return answer.status, b"".join(pieces).decode("utf-8", "replace"), chunks
        finally:
            link.close()
