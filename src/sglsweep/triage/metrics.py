"""Numbers that the log states, per rank and over all ranks; stragglers and imbalance."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Scalar

STRAGGLER_FACTOR = 2.0
"""A rank that takes this many times the median is named, if it is also 10 s slower."""
STRAGGLER_S = 10.0
IMBALANCE_GB = 2.0
"""Ranks whose free memory differs by more than this are named."""

_N = r"(-?[\d.]+)"
_LOAD_BEGIN = re.compile(rf"oad weight begin\. avail mem={_N} GB")
_LOAD_END = re.compile(
    rf"oad weight end\.(?: elapsed={_N} s,)? type=(\w+),(?: dtype=([\w.]+),)?.*?"
    rf" avail mem={_N} GB(?:, mem usage={_N} GB)?"
)
_KV = re.compile(
    rf"KV Cache is allocated\.(?: dtype: ([\w.]+),)?(?: #tokens: (\d+),)? "
    rf"(?:K size: {_N} GB, V size: {_N} GB|KV size: {_N} GB)"
)
_KV_POST = re.compile(
    r"Post-capture KV sizing: KV cache allocated\. dtype: ([\w.]+), #tokens: (\d+),"
    rf" KV size: {_N} GB"
)
_KV_DTYPE = re.compile(r"Using KV cache dtype: (\S+)")
_POOL = re.compile(rf"emory pool end\. avail mem={_N} GB")
_GRAPH_END = re.compile(
    r"Capture (?P<kind>[\w -]{1,60}?) end\..*?(?:Time elapsed: |elapsed=)(?P<s>[\d.]+) s"
    r"(?:.*?mem usage=(?P<gb>-?[\d.]+) GB)?(?:.*?avail mem=(?P<left>-?[\d.]+) GB)?"
)
_SIZED = re.compile(
    r"max_total_num_tokens=(\d+),.*?max_running_requests=(\d+), context_len=(\d+)"
    r"(?:, available_[cg]pu_mem=(-?[\d.]+) GB)?"
)
_TIMINGS = re.compile(r"Engine startup timings \(s\): (.*)")
_TIMING = re.compile(r"(\w+)=(-?[\d.]+)")
_DECODE = re.compile(
    rb"Decode batch.*?#running-req: (\d+),.*?gen throughput \(token/s\): ([\d.]+)"
)
_PREFILL = re.compile(rb"Prefill batch.*?input throughput \(token/s\): ([\d.]+)")
_DEVICE = re.compile(r"device_name=([\w-]+?)(?:,|\.json|\b_down)")

MARKS = (
    "oad weight begin",
    "oad weight end",
    "KV Cache is allocated",
    "Post-capture KV sizing: KV cache allocated",
    "Using KV cache dtype",
    "emory pool end",
    "graph end.",
    "draft extend end",
    "max_total_num_tokens=",
    "Engine startup timings",
    "device_name=",
)


@dataclass(slots=True)
class Numbers:
    """Numbers of one log, by rank ("" where a line names none)."""

    by_rank: dict[str, dict[str, float]] = field(default_factory=dict)
    facts: dict[str, Scalar] = field(default_factory=dict)
    last_decode: bytes = b""
    last_prefill: bytes = b""
    best_tok_s: float = 0.0

    def copy(self) -> Numbers:
        """Return a copy that can go on by itself."""
        return Numbers(
            {rank: dict(values) for rank, values in self.by_rank.items()},
            dict(self.facts),
            self.last_decode,
            self.last_prefill,
            self.best_tok_s,
        )

    def read(self, text: str, rank: str | None) -> None:
        """Take what a line of a launch says."""
        own = self.by_rank.setdefault(rank or "", {})
        if match := _LOAD_BEGIN.search(text):
            own.setdefault("avail_before_weights_gb", float(match[1]))
        elif match := _LOAD_END.search(text):
            self._loaded(own, match)
        elif match := _KV.search(text):
            self._pool(own, match)
        elif match := _KV_POST.search(text):
            self.facts["kv_dtype"] = match[1].removeprefix("torch.")
            own["kv_tokens"], own["kv_gb"] = float(match[2]), float(match[3])
        elif match := _POOL.search(text):
            own.setdefault("avail_after_pool_gb", float(match[1]))
        elif match := _GRAPH_END.search(text):
            self._captured(own, match)
        else:
            self._said_once(text)

    def _loaded(self, own: dict[str, float], match: re.Match[str]) -> None:
        is_draft = "weights_gb" in own
        if match[1] and not is_draft:
            own["weights_s"] = float(match[1])
        if not is_draft:
            self.facts.setdefault("model_class", match[2])
        if match[3]:
            self.facts.setdefault("dtype", match[3].removeprefix("torch."))
        own["avail_after_weights_gb"] = float(match[4])
        if match[5]:
            key = "draft_weights_gb" if is_draft else "weights_gb"
            own[key] = float(match[5])

    def _pool(self, own: dict[str, float], match: re.Match[str]) -> None:
        if match[1]:
            self.facts["kv_dtype"] = match[1].removeprefix("torch.")
        if match[2]:
            own["kv_tokens"] = float(match[2])
        size = float(match[5]) if match[5] else round(float(match[3]) + float(match[4]), 4)
        own["kv_gb"] = size

    def _captured(self, own: dict[str, float], match: re.Match[str]) -> None:
        kind = match["kind"].lower().replace(" cuda graph", "").replace(" graph", "")
        slug = re.sub(r"\W+", "_", kind.removeprefix("target ")).strip("_") or "decode"
        slug = "decode" if slug == "cuda" else slug
        own[f"graph_{slug}_s"] = float(match["s"])
        own["graph_s"] = round(own.get("graph_s", 0.0) + float(match["s"]), 3)
        if match["gb"]:
            own[f"graph_{slug}_gb"] = float(match["gb"])
            own["graph_gb"] = round(own.get("graph_gb", 0.0) + float(match["gb"]), 3)
        if match["left"]:
            own["avail_after_graphs_gb"] = float(match["left"])

    def _said_once(self, text: str) -> None:
        if match := _SIZED.search(text):
            self.facts["max_total_num_tokens"] = int(match[1])
            self.facts["max_running_requests"] = int(match[2])
            self.facts["context_len"] = int(match[3])
            if match[4]:
                self.facts["available_gpu_mem_gb"] = float(match[4])
        elif match := _TIMINGS.search(text):
            for name, value in _TIMING.findall(match[1]):
                if float(value):
                    self.facts[f"startup_{name}_s"] = float(value)
        elif match := _KV_DTYPE.search(text):
            self.facts["kv_dtype"] = match[1].removeprefix("torch.")
        elif match := _DEVICE.search(text):
            self.facts.setdefault("gpu", match[1].replace("_", " "))

    def read_serving(self, decode: bytes, prefill: bytes) -> None:
        """Take the last decode and prefill line so far."""
        self.last_decode = decode or self.last_decode
        self.last_prefill = prefill or self.last_prefill


_WORST = {
    "avail_before_weights_gb": min,
    "avail_after_weights_gb": min,
    "avail_after_pool_gb": min,
    "avail_after_graphs_gb": min,
    "kv_tokens": min,
}


def summary(numbers: Numbers) -> dict[str, Scalar]:
    """Return one number per name, the worst rank's, then each rank's own as `TP3/name`."""
    flat: dict[str, Scalar] = dict(numbers.facts)
    names = sorted({name for own in numbers.by_rank.values() for name in own})
    for name in names:
        values = [own[name] for own in numbers.by_rank.values() if name in own]
        flat[name] = _whole(_WORST.get(name, max)(values), name)
    if match := _DECODE.search(numbers.last_decode):
        flat["decode_running"] = int(match[1])
        flat["decode_tok_s"] = float(match[2])
    if match := _PREFILL.search(numbers.last_prefill):
        flat["prefill_tok_s"] = float(match[1])
    for rank, own in sorted(numbers.by_rank.items()):
        if rank:
            flat.update({f"{rank}/{name}": _whole(value, name) for name, value in own.items()})
    return flat


def _whole(value: float, name: str) -> Scalar:
    return int(value) if name == "kv_tokens" else value


def oddities(numbers: Numbers) -> list[tuple[str, str]]:
    """Return (id, text) of what the numbers show: slow ranks, uneven memory, a pool too small."""
    found: list[tuple[str, str]] = []
    for name, label in (("weights_s", "loading weights"), ("graph_s", "capturing graphs")):
        found += [("straggler", text) for text in _slow(_of(numbers, name), label)]
    for name, label in (
        ("avail_before_weights_gb", "before the weights"),
        ("avail_after_graphs_gb", "after graph capture"),
    ):
        found += [("memory-imbalance", text) for text in _uneven(_of(numbers, name), label)]
    tokens, context = (numbers.facts.get(n) for n in ("max_total_num_tokens", "context_len"))
    if isinstance(tokens, int) and isinstance(context, int) and tokens < context:
        text = f"the KV pool holds {tokens} tokens, one request may have {context}"
        found.append(("pool-below-context", text))
    return found


def _of(numbers: Numbers, name: str) -> Mapping[str, float]:
    return {r: own[name] for r, own in numbers.by_rank.items() if r and name in own}


def _slow(values: Mapping[str, float], label: str) -> list[str]:
    if len(values) < 3:  # noqa: PLR2004 - no median worth the name
        return []
    median = sorted(values.values())[len(values) // 2]
    rank = max(values, key=lambda r: values[r])
    worst = values[rank]
    if worst < STRAGGLER_FACTOR * median or worst - median < STRAGGLER_S:
        return []
    return [
        f"{rank} took {worst:.1f} s for {label}, the median is {median:.1f} s "
        f"(named from {STRAGGLER_FACTOR:g}x and {STRAGGLER_S:g} s on)"
    ]


def _uneven(values: Mapping[str, float], label: str) -> list[str]:
    if len(values) < 2 or max(values.values()) - min(values.values()) <= IMBALANCE_GB:  # noqa: PLR2004
        return []
    low, high = min(values, key=lambda r: values[r]), max(values, key=lambda r: values[r])
    return [
        f"{low} had {values[low]:.2f} GB free {label}, {high} had {values[high]:.2f} GB "
        f"(named from {IMBALANCE_GB:g} GB on)"
    ]
