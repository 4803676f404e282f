"""Numbers with their units, as a reader wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome

_MINUTE = 60.0
_HOUR = 3600.0
_FINE = 10
"""Below this a tenth matters."""

KV_TOKENS = ("max_total_num_tokens", "kv_tokens")
KV_GB = ("kv_gb",)
WEIGHTS_GB = ("weights_gb",)
CAPTURE_S = ("graph_s",)
CAPTURE_GB = ("graph_gb",)
LEFT_GB = ("avail_after_graphs_gb", "available_gpu_mem_gb", "avail_after_pool_gb")
CONTEXT = ("context_len",)
MAX_RUNNING = ("max_running_requests",)
"""Names that triage gives to numbers of a log; the first that is there counts."""


def metric(outcome: Outcome, names: tuple[str, ...]) -> float | int | None:
    """Return a number from the attempt's log; None where the log does not hold it."""
    for key in names:
        value = outcome.diagnosis.metrics.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None


def duration(seconds: float) -> str:
    """Write seconds as "8 s", "5 min 10 s", "2 h 06 min"."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{seconds:.1f} s" if 0 < seconds < _FINE else f"{whole} s"
    if whole < _HOUR:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, rest = divmod(round(whole / 60), 60)
    return f"{hours} h {rest:02d} min"


def count(number: float) -> str:
    """Write a count with thousands separated."""
    return f"{number:,.0f}"


def gib(number: float | None) -> str:
    """Write GiB as SGLang does (it says GB); a dash where it is not known."""
    # SGLang prints -0.00 where a small model changes nothing that it can see.
    return "-" if number is None else f"{round(number, 2) + 0.0:.2f} GB"


def seconds(number: float | None) -> str:
    """Write seconds; a dash where they are not known."""
    return "-" if number is None else duration(number)


def rate(number: float) -> str:
    """Write tokens a second."""
    return f"{number:,.0f} tok/s" if number >= _FINE else f"{number:.1f} tok/s"


def milliseconds(*seconds_each: float | None) -> str:
    """Write seconds as "9.5 / 78 ms"; a dash where none of them is known."""
    known = [s * 1000 for s in seconds_each if s is not None]
    if not known:
        return "-"
    return " / ".join(f"{ms:,.0f}" if ms >= _FINE else f"{ms:.1f}" for ms in known) + " ms"


def plural(number: int, one: str, many: str = "") -> str:
    """Write "1 attempt", "2 attempts"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(numbers: list[int]) -> str:
    """Write attempt numbers: "1, 2 and 5"."""
    words = [str(n) for n in numbers]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
