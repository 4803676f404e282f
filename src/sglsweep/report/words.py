"""Sentences that several sections share."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.report.document import Code, Line, Strong, joined, one_line
from sglsweep.report.launches import Change, value_text
from sglsweep.report.numbers import listed, plural, rate
from sglsweep.report.view import asked_more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Ladder, Outcome, Proof, Suspect
    from sglsweep.matrix import Cell, Value
    from sglsweep.report.view import RunView


def place(outcome: Outcome) -> str:
    """Return where the evidence stands, below the run's folder."""
    log = f"attempts/{outcome.attempt.number:04d}/log"
    line = outcome.diagnosis.line
    return log if line is None else f"{log}:{line}"


def evidence(outcome: Outcome, *, limit: int = 240) -> Line:
    """Return the place of the evidence and the evidence itself."""
    text = outcome.diagnosis.evidence.strip()
    if not text:
        why = one_line(outcome.end.detail) or "no line says why"
        return (Code(place(outcome)), f" ({why})")
    if outcome.diagnosis.line is None:
        # What a probe was answered stands in no log.
        return ("the probe's answer, ", Code(one_line(text, limit=limit)))
    return (Code(place(outcome)), " ", Code(one_line(text, limit=limit)))


def numbers(outcomes: Sequence[Outcome]) -> str:
    """Write the numbers of attempts: "attempt 3", "attempts 1 and 4"."""
    found = [o.attempt.number for o in outcomes]
    return f"{'attempt' if len(found) == 1 else 'attempts'} {listed(found)}"


def changed(made: Sequence[Change], *, limit: int = 4) -> Line:
    """Write changes one after the other; of many only the first."""
    if not made:
        return ("nothing: the same launch again",)
    parts: list[Line] = [change.code for change in made[:limit]]
    if len(made) > limit:
        parts.append((f"and {len(made) - limit} more",))
    return joined(parts)


def cell_words(cell: Cell) -> Line:
    """Write a cell: what it passes; what it does not is left out."""
    passed = [(name, value) for name, value in cell.values.items() if value is not None]
    if not passed:
        return ("no axis passed",)
    return joined([(Code(cell_word(name, value)),) for name, value in passed], " ")


def cell_word(name: str, value: Value) -> str:
    """Write one value of a cell: "tp=8", "disable-cuda-graph", "SOME_ENV=1"."""
    short = name.removeprefix("env.")
    return short if value is True else f"{short}={value_text(value)}"


def warnings(outcome: Outcome) -> tuple[Suspect, ...]:
    """Return odd lines of the log, each once; what the proof found odd stands with its steps."""
    found = {s.id: s for s in outcome.diagnosis.suspects if s.line > 0}
    return tuple(found.values())


def remedy_options(remedy: Mapping[str, Value]) -> str:
    """Write a remedy as options of `sglsweep relaunch`."""
    return " ".join(
        f"--unset {name}"
        if value is None
        else f"--set {shlex.quote(f'{name}={_set_text(value)}')}"
        for name, value in remedy.items()
    )


def _set_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def proof_words(proof: Proof | None, ladder: Ladder | None = None) -> str:
    """Say in a few words what the proof came to; a ladder knows its speed better."""
    if proof is None:
        return "ready, not proven by a request of ours"
    asked = [s for s in proof.steps if s.state is not StepState.NOT_APPLICABLE]
    passed = sum(s.state is StepState.OK for s in asked)
    speed = ""
    if ladder is not None and (best := ladder.best) is not None:
        speed = f", {rate(best.tokens_per_s)} at {best.concurrency} at once"
    elif proof.tokens_per_s is not None:
        at = f" at {proof.concurrency} at once" if proof.concurrency else ""
        speed = f", {rate(proof.tokens_per_s)}{at}"
    odd = sum(s.state is StepState.SUSPECT for s in asked)
    suspect = f", {odd} suspect" if odd else ""
    return f"proof passed {passed} of {plural(len(asked), 'step')}{suspect}{speed}"


def flaky(run: RunView, outcome: Outcome) -> Line:
    """Say that the same launch served and failed; empty where it did not."""
    if not run.is_flaky(outcome):
        return ()
    again = run.repeats(outcome)
    twins = run.served_as(outcome)
    served = [o.attempt.number for o in twins]
    failed = [o.attempt.number for o in again if o not in twins and not asked_more(o, twins)]
    return (
        Strong("Not reliable"),
        f": the very same command served in {listed(served)} and failed in {listed(failed)}",
    )
