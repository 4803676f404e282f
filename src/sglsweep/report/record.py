"""The findings as one JSON document, usable as `prior` by strangers with the same GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from sglsweep.attempt import Outcome, Proof, StepState
from sglsweep.flags import canonical
from sglsweep.plan.memory import MARGIN_GB
from sglsweep.plan.prior import arch_of, architecture_of
from sglsweep.report.best import best_serving, nearest_miss
from sglsweep.report.blamed import Combination, combinations, combinations_of, flaky_attempts
from sglsweep.report.document import plain
from sglsweep.report.groups import Group, groups
from sglsweep.report.held import did_not_help
from sglsweep.report.hypotheses import judged
from sglsweep.report.launches import settings
from sglsweep.report.machine import stable
from sglsweep.report.memory import memory_rows, row_json
from sglsweep.report.quality import compared, warning
from sglsweep.report.rehearsal import shown_argv, shown_command
from sglsweep.report.same_model import differs
from sglsweep.report.sections.timeline import change_against
from sglsweep.report.tell import status_words, tell, values_json
from sglsweep.report.times import times_json
from sglsweep.report.view import RunView, is_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Scalar

SCHEMA = 1


def findings_json(run: RunView) -> dict[str, object]:
    """Return what FINDINGS.md says as data: no clock, no path of this machine."""
    best = best_serving(run)
    top = best or nearest_miss(run)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "run": run.run,
        "name": run.name,
        "model": run.model,
        "rehearsal": run.world or None,
        "goal": list(run.goals),
        "finish": run.finish or None,
        "catalogue": run.catalogue,
        "serves": best is not None,
        "attempt": top.attempt.number if top else None,
        "command": shown_command(top.attempt) if top else None,
        "host": stable(run.facts),
        "setting": _setting(run),
        "need": run.need,
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in run.axes],
        "attempts": [_attempt(run, index) for index in range(len(run.outcomes))],
        "causes": [_cause(run, group) for group in groups(run)],
        "blame": [_blame(run, row) for row in combinations(run)],
        "forecast": dict(run.forecast) or None,
        "times": times_json(run.outcomes),
        "memory": {
            "margin_gb": MARGIN_GB,
            "attempts": [row_json(row) for row in memory_rows(run.outcomes)],
        },
        "not_repeated": list(flaky_attempts(run)),
        "not_launched": [
            {"kind": e.kind, "because": e.because, "count": e.count, "what": e.what}
            | ({"verdict": e.verdict, "cause": e.cause or None} if e.verdict else {})
            for e in run.left_out
        ],
        "hypotheses": [_hypothesis(run, index) for index in range(len(run.hypotheses))],
    }
    return {name: _strict(value) for name, value in document.items()}


def _setting(run: RunView) -> dict[str, str | None]:
    """Return what `prior` weighs a stranger's run by, beside SGLang's version."""
    model = run.outcomes[-1].attempt.model if run.outcomes else ""
    return {
        "arch": arch_of(run.facts) or None,
        "architecture": architecture_of(run.facts, model) or None,
    }


def _attempt(run: RunView, index: int) -> dict[str, object]:
    outcome = run.outcomes[index]
    attempt, diagnosis = outcome.attempt, outcome.diagnosis
    return {
        "number": attempt.number,
        "cell": dict(attempt.cell.values),
        "build": attempt.build,
        "model": attempt.model,
        "argv": list(shown_argv(attempt)),
        "env": dict(attempt.env),
        "launch_key": attempt.launch_key,
        "gpus": None if attempt.gpus is None else list(attempt.gpus),
        "beside": list(outcome.end.beside),
        "sharing": list(outcome.end.sharing),
        "verdict": outcome.verdict.value,
        "phase": diagnosis.phase.value,
        "cause": diagnosis.cause,
        "is_evidence": is_evidence(outcome),
        "equal_to": outcome.end.equal_to,
        "line": diagnosis.line,
        "evidence": diagnosis.evidence,
        "rank": diagnosis.rank,
        "blames": [{"flag": b.flag, "value": b.value} for b in diagnosis.blames],
        "sglang_version": diagnosis.sglang_version,
        "effective": _effective(run, outcome),
        "metrics": dict(diagnosis.metrics),
        "proof": _proof(outcome.proof),
        "quality": _quality(run, outcome),
        "differs": [asdict(d) for d in differs(outcome)] if outcome.proof is not None else [],
        "ladder": None if outcome.ladder is None else asdict(outcome.ladder),
        "soak": None if outcome.soak is None else asdict(outcome.soak),
        "total_s": outcome.timings.total_s,
        "ready_s": outcome.timings.ready_s,
        "changed": plain(change_against(run, index)),
    }


def _effective(run: RunView, outcome: Outcome) -> dict[str, Scalar]:
    """Return what SGLang made of the flags that any attempt passed, and what it chose itself.

    All of its five hundred arguments would be twenty kilobytes for each attempt.
    """
    passed = {canonical(name) for o in run.outcomes for name in settings(o.attempt)}
    return {
        name: value
        for name, value in outcome.diagnosis.effective.items()
        if canonical(name.replace("_", "-")) in passed or name.endswith(("backend", "dtype"))
    }


def _proof(proof: Proof | None) -> dict[str, object] | None:
    if proof is None:
        return None
    failed = proof.first_failure
    return {
        "holds": proof.holds,
        "passed": [s.name for s in proof.steps if s.state is StepState.OK],
        "failed": failed.name if failed else None,
        "suspect": [s.name for s in proof.steps if s.state is StepState.SUSPECT],
        "tokens_per_s": proof.tokens_per_s,
        "concurrency": proof.concurrency,
    }


def _quality(run: RunView, outcome: Outcome) -> dict[str, object] | None:
    if outcome.quality is None:
        return None
    against = compared(run, outcome)
    return {
        "right": outcome.quality.right,
        "asked": len(outcome.quality.answers),
        "note": outcome.quality.note,
        "warning": warning(run, outcome) or None,
        "answers": [asdict(a) for a in outcome.quality.answers],
        "compared": None if against is None else {**asdict(against), "p": against.chance},
    }


def _cause(run: RunView, group: Group) -> dict[str, object]:
    first = group.outcomes[0].diagnosis
    return {
        "verdict": group.verdict.value,
        "cause": group.cause,
        "attempts": _numbers(group.outcomes),
        "blame": [_blame(run, row) for row in combinations_of(run, group)],
        "did_not_help": [
            {"change": change.text, "attempt": number}
            for change, number in did_not_help(group.outcomes)
        ],
        "known_issues": [{"title": i.text, "url": i.url} for i in group.known_issues],
        "next_step": first.next_step,
        "remedy": {"set": dict(first.remedy)},
    }


def _blame(run: RunView, row: Combination) -> dict[str, object]:
    return {
        "values": values_json(row.values),
        "cause": row.cause,
        "verdict": row.verdict.value,
        "status": row.status.value,
        "chance": None if row.chance is None else round(row.chance, 3),
        "by_bisect": row.is_bisected,
        "attempts_for": _numbers(row.failing),
        "attempts_against": _numbers(row.against),
        "alike_without": _numbers(row.without),
        "pairs": [
            {
                "failing": pair.failing.attempt.number,
                "serving": pair.better.attempt.number,
                "changes": [
                    {"name": c.name, "failing": c.before, "serving": c.after}
                    for c in row.telling(pair)
                ],
            }
            for pair in row.proofs
        ],
        "rivals": [
            {"values": values_json(values), "chance": round(chance, 3)}
            for values, chance in row.rivals
        ],
        "says": f"{status_words(row)}: {plain(tell(run, row))}",
    }


def _hypothesis(run: RunView, index: int) -> dict[str, object]:
    item = run.hypotheses[index]
    found = judged(run, item)
    return {
        "id": item.id,
        "says": item.says,
        "state": found.state,
        "by": _numbers(found.agree),
        "against": _numbers(found.disagree),
        "elsewhere": [
            {"attempt": outcome.attempt.number, "values": values_json(row.values)}
            for outcome, row in found.elsewhere
        ],
        "pair": None if found.pair is None else _numbers(found.pair),
        "is_idle": found.is_idle,
        "alike": [_numbers(pair) for pair in found.alike],
    }


def _numbers(outcomes: Sequence[Outcome]) -> list[int]:
    return [o.attempt.number for o in outcomes]


def _strict(value: object) -> object:
    """Return what strict JSON parsers take: no NaN, no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value
