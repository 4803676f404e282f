"""What earlier runs tell of a sweep to come: how long an attempt takes, what it leaves of memory.

Looked at, best first: this sweep's own run, the runs named under `prior`, then whatever lies in
the same folder of runs and was made on the same host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.errors import SglsweepError
from sglsweep.flags import canonical
from sglsweep.journal import Journal
from sglsweep.plan.memory import Memory, memory_of
from sglsweep.report.launches import flags_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sglsweep.attempt import Outcome
    from sglsweep.config.sweep import Sweep


THIS_RUN = "this run"
_PRIOR = "named under prior"
_SAME = "the same model on this host"
_OTHER = "another model on this host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One attempt's memory.

    Attributes:
        kv_dtype: of its KV cache, as its log says; "" where it does not.
    """

    attempt: int
    kv_dtype: str
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What one earlier run tells.

    Attributes:
        where: the run, as a reader finds it.
        relation: "this run", "named under prior", "the same model on this host", "another model
            on this host".
        attempts_s: seconds of each attempt that says something.
        seen: attempts whose memory is known; only of the same model.
    """

    where: str
    relation: str
    attempts_s: tuple[float, ...] = ()
    seen: tuple[Seen, ...] = ()

    @property
    def mean_s(self) -> float | None:
        """Seconds an attempt took on average; None where none did."""
        return sum(self.attempts_s) / len(self.attempts_s) if self.attempts_s else None


def past_of(sweep: Sweep) -> tuple[Past, ...]:
    """Return what earlier runs tell, the nearest first; runs that cannot be read are left out."""
    runs = sweep.source.parent / "runs"
    own = runs / sweep.name
    found = [*_run(own, sweep, THIS_RUN)]
    for path in sweep.prior:
        found += [*(_findings(path, sweep) if path.is_file() else _run(path, sweep, _PRIOR))]
    named = {own.resolve(), *(path.resolve() for path in sweep.prior)}
    others = [p for p in sorted(runs.glob("*")) if p.resolve() not in named]
    beside = [past for path in others for past in _beside(path, sweep)]
    beside.sort(key=lambda past: past.relation != _SAME)
    return (*found, *beside)


def _run(folder: Path, sweep: Sweep, relation: str) -> Iterator[Past]:
    """Yield what a run's folder tells; nothing where there is none, or no attempt."""
    try:
        journal = Journal.read(folder)
        outcomes = journal.history()
    except SglsweepError:
        return
    if outcomes and _is_rehearsed(journal.facts) == (sweep.build.rehearsal is not None):
        is_same = _model(journal.facts) == sweep.model.name
        where = f"{folder.parent.name}/{folder.name}"
        seen = tuple(_seen_by(outcomes, sweep)) if is_same else ()
        telling = [o for o in outcomes if o.verdict.is_evidence and o.timings.total_s > 0]
        times = tuple(o.timings.total_s for o in telling)
        yield Past(where=where, relation=relation, attempts_s=times, seen=seen)


def _beside(folder: Path, sweep: Sweep) -> Iterator[Past]:
    try:
        facts = Journal.read(folder).facts
    except SglsweepError:
        return
    if facts.get("host") == sweep.host:
        relation = _SAME if _model(facts) == sweep.model.name else _OTHER
        yield from _run(folder, sweep, relation)


def _seen_by(outcomes: Sequence[Outcome], sweep: Sweep) -> Iterator[Seen]:
    for outcome in outcomes:
        memory = memory_of(outcome)
        if memory and memory.smallest is not None and _is_alike(outcome.attempt.argv, sweep):
            dtype = str(outcome.diagnosis.metrics.get("kv_dtype") or "")
            yield Seen(attempt=outcome.attempt.number, kv_dtype=dtype, memory=memory)


def _is_alike(argv: Sequence[str], sweep: Sweep) -> bool:
    """True if a launch had the weights on as many GPUs as this sweep, as far as it says."""
    passed = {canonical(name): text for name, text in flags_of(argv).items()}
    wanted = {canonical(name): value for name, value in sweep.launch.flags.items()}
    varied = {canonical(axis.name) for axis in sweep.axes}
    return all(
        name in varied or passed.get(name) == _text(wanted.get(name)) for name in _OF_WEIGHTS
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


_OF_WEIGHTS = ("tp-size", "pp-size", "dp-size", "ep-size", "quantization")


def _is_rehearsed(facts: Mapping[str, object]) -> bool:
    return bool(facts.get("rehearsal"))


def _model(facts: Mapping[str, object]) -> str:
    """Return a run's model without its revision."""
    return str(facts.get("model") or "").partition("@")[0]


# -- findings as a stranger may have sent them --------------------------------------------------


def _findings(path: Path, sweep: Sweep) -> Iterator[Past]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if not isinstance(document, Mapping) or _is_rehearsed(document) != (
        sweep.build.rehearsal is not None
    ):
        return
    is_same = _model(document) == sweep.model.name
    yield Past(
        where=path.name,
        relation=_PRIOR,
        attempts_s=tuple(
            total
            for entry in _entries(document.get("attempts"))
            if isinstance(total := entry.get("total_s"), int | float) and total > 0
        ),
        seen=tuple(_seen(document, sweep)) if is_same else (),
    )


def _seen(document: Mapping[str, object], sweep: Sweep) -> Iterator[Seen]:
    memory = document.get("memory")
    listed = memory.get("attempts") if isinstance(memory, Mapping) else None
    dtypes = {
        entry.get("number"): _object(entry.get("metrics")).get("kv_dtype")
        for entry in _entries(document.get("attempts"))
    }
    launched = {e.get("number"): _words(e.get("argv")) for e in _entries(document.get("attempts"))}
    for entry in _entries(listed):
        number, fraction = entry.get("attempt"), _number(entry.get("fraction"))
        if not isinstance(number, int) or fraction is None:
            continue
        if not _is_alike(launched.get(number, ()), sweep):
            continue
        tokens = _number(_object(entry.get("tokens")).get("measured"))
        yield Seen(
            attempt=number,
            kv_dtype=str(dtypes.get(number) or ""),
            memory=Memory(
                fraction=fraction,
                before_weights_gb=_number(entry.get("before_weights_gb")),
                after_weights_gb=_number(entry.get("after_weights_gb")),
                after_graphs_gb=_number(_object(entry.get("left_gb")).get("measured")),
                pool_gb=_number(_object(entry.get("pool_gb")).get("measured")),
                pool_tokens=None if tokens is None else int(tokens),
            ),
        )


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def _entries(value: object) -> list[Mapping[str, object]]:
    return [e for e in value if isinstance(e, Mapping)] if isinstance(value, list) else []


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]  # seen to above
