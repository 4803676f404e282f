"""What each value of each axis came to, and what became of the hypotheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Paragraph,
    Strong,
    Table,
    joined,
)
from sglsweep.report.held import holds
from sglsweep.report.launches import value_text
from sglsweep.report.numbers import listed
from sglsweep.report.view import is_doubtful
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Axis, Value
    from sglsweep.report.view import Hypothesis, RunView

_NO_TEST = frozenset({Verdict.ENV_ERROR, Verdict.COLLECTIVE_ERROR})
"""Failures of the surroundings: a prediction about flags is neither met nor missed by them."""


def axis_effects(run: RunView) -> list[Block]:
    """Count, for each value, the attempts that served and those that failed, by cause."""
    rows = [
        row
        for axis in run.axes
        if len(axis.values) > 1 and run.evidence
        for row in _axis_rows(run, axis)
    ]
    if not rows:
        return []
    return [
        Heading(2, ("Effect of each axis",)),
        Paragraph(
            ("Counts of attempts; other axes differ between them, so no row proves a thing.",)
        ),
        Table(("axis", "value", "served", "failed"), tuple(rows)),
    ]


def _axis_rows(run: RunView, axis: Axis) -> list[tuple[Line, ...]]:
    rows: list[tuple[Line, ...]] = []
    for value in axis.values:
        having = run.having(axis.name, value)
        rows.append(
            ((Code(axis.name),) if not rows else ("",), _value(value), *_counts(run, having))
        )
    return rows


def _value(value: Value) -> Line:
    return (
        (value_text(value),) if value is None or isinstance(value, bool) else (Code(str(value)),)
    )


def _counts(run: RunView, having: Sequence[Outcome]) -> tuple[Line, Line]:
    if not having:
        return ("not launched",), ("",)
    served = [o for o in having if o in run.serving]
    failed = [o for o in having if o not in run.serving]
    names = [o.diagnosis.cause or o.verdict.value for o in failed]
    causes = ", ".join(f"{names.count(n)} {n}" for n in dict.fromkeys(names))
    odd = sum(is_doubtful(o) for o in served)
    doubt = f", {odd} of them suspect" if odd else ""
    return (f"{len(served)}{doubt}",), (causes or "0",)


def hypotheses(run: RunView) -> list[Block]:
    """Say of each hypothesis whether the attempts support or refute it, and which."""
    if not run.hypotheses:
        return []
    lines = tuple(_hypothesis(run, item) for item in run.hypotheses)
    return [Heading(2, ("Hypotheses",)), Bullets(lines)]


def judged(run: RunView, item: Hypothesis) -> tuple[str, list[Outcome], list[Outcome]]:
    """Return open, supported or refuted, with the attempts that agree and disagree."""
    tests = [o for o in run.evidence if _is_test(o, item)]
    agree = [o for o in tests if o.verdict.value == item.verdict]
    disagree = [o for o in tests if o.verdict.value != item.verdict]
    if not tests or not item.verdict:
        return "open", [], []
    return ("refuted" if disagree else "supported"), agree, disagree


def _is_test(outcome: Outcome, item: Hypothesis) -> bool:
    """True if the attempt could show the prediction right or wrong.

    A failure that nobody could name decides nothing: it may be the predicted one.
    """
    is_named = outcome.diagnosis.confidence != "low" and outcome.verdict not in _NO_TEST
    return (is_named or outcome.verdict.value == item.verdict) and all(
        holds(outcome, flag, value) for flag, value in item.when.items()
    )


def _hypothesis(run: RunView, item: Hypothesis) -> Line:
    word, agree, disagree = judged(run, item)
    says = f": {item.says}" if item.says else ""
    head: Line = (Code(item.id), says, ". ", Strong(word.capitalize()))
    if word == "open":
        return (*head, ": no attempt decided it")
    parts: list[Line] = []
    if disagree:
        against = ", ".join(f"{o.attempt.number} ({o.verdict.value})" for o in disagree)
        parts.append((f"predicted {item.verdict}, came to {against}",))
    if agree:
        parts.append(
            (f"as predicted in {listed([o.attempt.number for o in agree])} ({item.verdict})",)
        )
    return (*head, ": ", *joined(parts, "; "))
