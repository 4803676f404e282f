"""What is asked of a server over HTTP, and what came back; the keeper does the asking."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request of the proof, asked on the host of 127.0.0.1 and the attempt's port.

    Attributes:
        id: unique within one step.
        body: sent as JSON; None for no body.
        stream: note when each piece of the answer arrived.
    """

    id: str
    method: str = "GET"
    path: str = "/"
    body: object | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One answer.

    Attributes:
        status: None when no HTTP answer came.
        error: why none came: "timeout", "refused", "reset", or the system's own words.
        body: the first 262,144 bytes as text.
        first_byte_s: seconds from the request to the first byte of the answer.
        chunks: seconds from the request to each piece, for a streamed answer.
        started_s: seconds from the beginning of the step to this request.
    """

    id: str
    status: int | None = None
    error: str | None = None
    body: str = ""
    truncated: bool = False
    elapsed_s: float = 0.0
    first_byte_s: float | None = None
    chunks: tuple[float, ...] = ()
    started_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who holds the port.

    Attributes:
        is_ours: it belongs to the attempt that is being proven.
    """

    pid: int | None = None
    is_ours: bool = False
    address: str = ""
    title: str = ""
