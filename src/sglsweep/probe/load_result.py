"""What a load tool measured, as the numbers of a rung.

Where a tool gives each request's own times, percentiles are counted from those, so that a number
means the same whoever measured it: the time for each further token is (end - first token) /
(tokens - 1), which guidellm's own "TPOT" is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.attempt import Rung
from sglsweep.probe.latency import Samples, numbers_of
from sglsweep.probe.load_tool import AIPERF, BENCH_SERVING, GUIDELLM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """What one run of a tool measured.

    Attributes:
        wall_s: from the first request to the last answer, as the tool says.
        served: requests that were answered.
        tokens: output tokens of all of them.
        samples: each request's times, where the tool gives them.
        known: numbers as the tool summed them up, where it gives no more.
        texts: what was answered, where the tool keeps it.
        complaint: the first error.
    """

    wall_s: float
    served: int
    tokens: int
    samples: Samples = field(default_factory=Samples)
    known: Mapping[str, float] = field(default_factory=dict)
    texts: tuple[tuple[str, int], ...] = ()
    complaint: str = ""


def read_wave(name: str, files: Mapping[str, str | None]) -> Wave | None:
    """Return what a tool's files say; None where they cannot be read."""
    read: dict[str, Callable[[Mapping[str, str | None]], Wave | None]] = {
        BENCH_SERVING: _bench_serving,
        GUIDELLM: _guidellm,
        AIPERF: _aiperf,
    }
    try:
        return read[name](files)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None


def rung_of(wave: Wave, *, at_once: int, asked: int, also: Sequence[str] = ()) -> Rung:
    """Return a wave as a rung; objectives are not judged yet."""
    numbers = {**wave.known, **numbers_of(wave.samples, also=also)}
    speed = wave.tokens / wave.wall_s if wave.wall_s > 0 else 0.0
    return Rung(
        concurrency=at_once,
        requests=asked,
        tokens_per_s=round(speed, 1),
        numbers=numbers,
        errors=max(asked - wave.served, 0),
    )


# -- SGLang's own -----------------------------------------------------------------------------


def _bench_serving(files: Mapping[str, str | None]) -> Wave | None:
    lines = (files.get("result.jsonl") or "").strip().splitlines()
    if not lines:
        return None
    said = json.loads(lines[-1])
    return Wave(
        wall_s=float(said["duration"]),
        served=int(said["completed"]),
        tokens=int(said["total_output_tokens"]),
        samples=_bench_samples(said),
        known=_bench_summary(said),
        texts=_bench_texts(said),
        complaint=next((str(e) for e in _list(said, "errors") if e), ""),
    )


def _bench_texts(said: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    pairs = zip(_list(said, "generated_texts"), _list(said, "output_lens"), strict=False)
    return tuple((t, n) for t, n in pairs if isinstance(t, str) and isinstance(n, int))


def _list(said: Mapping[str, object], name: str) -> list[object]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _bench_samples(said: Mapping[str, object]) -> Samples:
    """Read `--output-details`; a request that failed has an error and times of zero."""
    columns = [_list(said, name) for name in ("ttfts", "itls", "output_lens", "errors")]
    samples = Samples()
    for ttft, gaps, tokens, error in zip(*columns, strict=False):
        if not error and ttft:
            samples.add(ttft, ttft + sum(gaps), tokens, gaps)
    return samples


_SUMMARY = {"median": "p50", "p90": "p90", "p99": "p99"}


def _bench_summary(said: Mapping[str, object]) -> dict[str, float]:
    """Read the sums that every version writes; it calls the median by its name."""
    names = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}
    found = {
        f"{ours}_{share}_s": said.get(f"{word}_{theirs}_ms")
        for ours, theirs in names.items()
        for word, share in _SUMMARY.items()
    }
    return {n: round(v / _MS, 5) for n, v in found.items() if isinstance(v, int | float) and v}


# -- the others -------------------------------------------------------------------------------


def _guidellm(files: Mapping[str, str | None]) -> Wave | None:
    """Read the JSON report of guidellm 0.8."""
    said = json.loads(files.get("result.json") or "null")["benchmarks"][0]
    requests = said["requests"]
    samples = Samples()
    for one in requests["successful"]:
        first, whole = one["time_to_first_token_ms"] / _MS, one["request_latency"]
        samples.add(first, whole, one["output_tokens"], ())
    failed = requests.get("errored") or []
    return Wave(
        wall_s=float(said["duration"]),
        served=len(requests["successful"]),
        tokens=sum(one["output_tokens"] for one in requests["successful"]),
        samples=samples,
        texts=tuple((str(o["output"]), o["output_tokens"]) for o in requests["successful"]),
        complaint=str((failed[0].get("info") or {}).get("error") or "") if failed else "",
    )


def _aiperf(files: Mapping[str, str | None]) -> Wave | None:
    """Read the exports of aiperf 0.13: the records of each request, and the sums."""
    said = json.loads(files.get("profile_export_aiperf.json") or "null")
    samples, served, tokens = Samples(), 0, 0
    complaint = ""
    for line in (files.get("profile_export.jsonl") or "").splitlines():
        record = json.loads(line)
        if record["metadata"]["benchmark_phase"] != "profiling":
            continue
        if record.get("error"):
            complaint = complaint or str(record["error"])
            continue
        values = {name: m["value"] for name, m in record["metrics"].items()}
        count = int(values["output_sequence_length"])
        first, whole = values["time_to_first_token"], values["request_latency"]
        gaps = values.get("inter_chunk_latency") or []
        samples.add(first / _MS, whole / _MS, count, [g / _MS for g in gaps])
        served, tokens = served + 1, tokens + count
    wall_s = float(said["benchmark_duration"]["avg"])
    return Wave(wall_s=wall_s, served=served, tokens=tokens, samples=samples, complaint=complaint)
