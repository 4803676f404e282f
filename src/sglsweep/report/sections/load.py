"""How fast the servers are: each rung of their ladders, and how they bore a soak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import Block, Bullets, Heading, Line, Paragraph, Strong, Table
from sglsweep.report.numbers import count, duration, milliseconds, rate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sglsweep.attempt import Ladder, Outcome, Rung
    from sglsweep.report.view import RunView

_WORTH_IT = 1.05
"""So much faster a rung must be than a smaller one, or the server is saturated there."""


def under_load(run: RunView) -> list[Block]:
    """Return a row for each rung, where each ladder ends and why, and what the soaks said."""
    measured = [o for o in run.outcomes if o.ladder is not None and o.ladder.rungs]
    blocks: list[Block] = []
    if measured:
        blocks.append(_table(measured))
        blocks.append(Paragraph((_legend(measured),)))
        blocks.append(Bullets(tuple(_ending(o, o.ladder) for o in measured if o.ladder)))
    soaks = tuple(_soak(o) for o in run.outcomes if o.soak is not None)
    blocks += [Bullets(soaks)] if soaks else []
    return [Heading(2, ("Under load",)), *blocks] if blocks else []


def _table(measured: Sequence[Outcome]) -> Table:
    rungs = [(o, r) for o in measured if o.ladder for r in o.ladder.rungs]
    front = {id(r) for r in pareto([r for _, r in rungs])}
    columns = [c for c in _COLUMNS if any(c[1](r) != "-" for _, r in rungs)]
    rows = tuple(
        (
            (str(o.attempt.number),),
            (str(r.concurrency),),
            (Strong(rate(r.tokens_per_s)),) if id(r) in front else (rate(r.tokens_per_s),),
            *((word(r),) for _, word in columns),
        )
        for o, r in rungs
    )
    return Table(("#", "at once", "output", *(title for title, _ in columns)), rows)


def pareto(rungs: Sequence[Rung]) -> list[Rung]:
    """Return rungs that no other beats in throughput and in the time for each token."""
    return [
        r
        for r in rungs
        if not any(
            o.tokens_per_s >= r.tokens_per_s and _each(o) <= _each(r) and _key(o) != _key(r)
            for o in rungs
        )
    ]


def _each(rung: Rung) -> float:
    return rung.numbers.get("tpot_p50_s", float("inf"))


def _key(rung: Rung) -> tuple[float, float]:
    return (rung.tokens_per_s, _each(rung))


def _pair(name: str) -> Callable[[Rung], str]:
    return lambda r: milliseconds(r.numbers.get(f"{name}_p50_s"), r.numbers.get(f"{name}_p99_s"))


def _memory(rung: Rung) -> str:
    used = rung.numbers.get("gpu_used_mib")
    return "-" if used is None else f"{used / 1024:.1f} GB"


def _power(rung: Rung) -> str:
    watts = rung.numbers.get("gpu_power_w")
    return "-" if watts is None else f"{count(watts)} W"


def _errors(rung: Rung) -> str:
    return f"{rung.errors} of {rung.requests}" if rung.errors else "-"


def _in_the_log(rung: Rung) -> str:
    running, queued = rung.numbers.get("log_running"), rung.numbers.get("log_queued")
    return "-" if running is None else f"{running:.0f} + {queued or 0:.0f}"


def _kv_share(rung: Rung) -> str:
    share = rung.numbers.get("log_kv_share")
    return "-" if share is None else f"{share:.0%}"


def _objectives(rung: Rung) -> str:
    return {True: "met", False: "missed", None: "-"}[rung.meets_slo]


_COLUMNS: tuple[tuple[str, Callable[[Rung], str]], ...] = (
    ("first token, p50 / p99", _pair("ttft")),
    ("each further token, p50 / p99", _pair("tpot")),
    ("not answered", _errors),
    ("objectives", _objectives),
    ("log: running + queued", _in_the_log),
    ("log: KV pool used", _kv_share),
    ("fullest card", _memory),
    ("power, all cards", _power),
)


def _legend(measured: Sequence[Outcome]) -> str:
    sizes = {(o.ladder.input, o.ladder.output) for o in measured if o.ladder}
    shown = " or ".join(f"{count(i)} + {count(out)}" for i, out in sorted(sizes))
    objectives = next((o.ladder.slo for o in measured if o.ladder and o.ladder.slo), {})
    said = ", ".join(f"{name} {duration(limit)}" for name, limit in objectives.items())
    words = [
        f"Requests of {shown} random tokens, answers of exactly that length, two for each one at"
        " once.",
        "Bold: no other row is as fast both in all and for each request.",
        f"Objectives: {said}." if said else "",
    ]
    return " ".join(word for word in words if word)


def _ending(outcome: Outcome, ladder: Ladder) -> Line:
    parts = [*_saturation(ladder), *_objective_end(ladder)]
    failed = outcome.proof.first_failure if outcome.proof else None
    if failed is not None and failed.name == "ladder":
        parts.append(f"served up to {ladder.rungs[-1].concurrency} at once, then it broke")
    parts.append(f"ended: {ladder.ended_because}" if ladder.ended_because else "")
    parts.append("a short ladder, for the race" if ladder.is_short else "")
    parts.append(_asked_by(ladder))
    return (f"{outcome.attempt.number}: ", "; ".join(p for p in parts if p))


def _asked_by(ladder: Ladder) -> str:
    """Name the load tool; numbers of different ones are not compared unawares."""
    by = "sglsweep's own ladder" if ladder.tool == "own" else ladder.tool
    return f"measured with {by}" + (f", since {ladder.note}" if ladder.note else "")


def _saturation(ladder: Ladder) -> list[str]:
    """Say from which rung on more at once brings nothing more, if that was seen."""
    most = max(ladder.rungs, key=lambda r: r.tokens_per_s)
    enough = next(r for r in ladder.rungs if r.tokens_per_s * _WORTH_IT >= most.tokens_per_s)
    if enough is ladder.rungs[-1]:
        return [f"still rising at {enough.concurrency} at once"] if len(ladder.rungs) > 1 else []
    return [f"saturated from {enough.concurrency} at once on"]


def _objective_end(ladder: Ladder) -> list[str]:
    met = [r for r in ladder.rungs if r.meets_slo]
    missed = [r for r in ladder.rungs if r.meets_slo is False]
    if not missed:
        return ["objectives met on every rung"] if met else []
    if not met:
        return ["objectives met on no rung"]
    last = max(met, key=lambda r: r.concurrency)
    return [f"objectives met up to {last.concurrency} at once ({rate(last.tokens_per_s)})"]


def _soak(outcome: Outcome) -> Line:
    soak = outcome.soak
    if soak is None:
        return ()
    whole = soak.lasted_s >= soak.asked_s
    lasted = duration(soak.lasted_s) + ("" if whole else f" of {duration(soak.asked_s)}")
    speeds = [v for v in (soak.first_tokens_per_s, soak.last_tokens_per_s) if v is not None]
    said = f"soaked for {lasted} at {soak.concurrency} at once: {count(soak.requests)} requests, "
    said += f"{soak.errors} not answered"
    if speeds:
        said += f", {rate(speeds[0])} in its first quarter, {rate(speeds[-1])} in its last"
    return (f"{outcome.attempt.number} ", said)
