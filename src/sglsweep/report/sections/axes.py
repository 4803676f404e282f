"""What each value of each axis came to, and what became of the hypotheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.catalogue.inert import ALL_OTHERS
from sglsweep.matrix import NO_EFFECT, spell
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
from sglsweep.report.hypotheses import Judged, judged
from sglsweep.report.launches import value_text
from sglsweep.report.numbers import listed
from sglsweep.report.tell import what
from sglsweep.report.view import is_doubtful

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Axis, Value
    from sglsweep.report.blamed import Combination
    from sglsweep.report.view import Hypothesis, RunView


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
        counts = _counts(run, having) if having else (_unlaunched(run, axis, value), ("",))
        rows.append(((Code(axis.name),) if not rows else ("",), _value(value), *counts))
    return rows


def _unlaunched(run: RunView, axis: Axis, value: Value) -> Line:
    """Say of a value without evidence whether it was launched, or what stands for it."""
    wanted = spell(value)
    tried = [
        o.attempt.number
        for o in run.outcomes
        if o.end.kind is not EndKind.EQUAL and spell(o.attempt.cell.get(axis.name)) == wanted
    ]
    if tried:
        return (f"launched in {listed(tried)}, without evidence",)
    acted = [n for n, cell in run.acted.items() if spell(cell.get(axis.name)) == spell(value)]
    if acted:
        return (f"not asked for, but SGLang takes it in {listed(acted)}",)
    acts = run.becomes.get(axis.name, {}).get(spell(value), ())
    named = [v for v in acts if v not in {NO_EFFECT, ALL_OTHERS}]
    if not acts:
        return ("not launched",)
    if not named:
        return ("not launched: other values act alike",)
    return ("not launched: SGLang makes it ", *joined([_value(v) for v in named], " or "))


def _value(value: Value) -> Line:
    return (
        (value_text(value),) if value is None or isinstance(value, bool) else (Code(str(value)),)
    )


def _counts(run: RunView, having: Sequence[Outcome]) -> tuple[Line, Line]:
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


def _hypothesis(run: RunView, item: Hypothesis) -> Line:
    found = judged(run, item)
    says = f": {item.says}" if item.says else ""
    head: Line = (Code(item.id), says, ". ", Strong(found.state.capitalize()))
    if found.is_idle:
        return (*head, ": with and without it SGLang makes the same of the launches")
    parts = [part for part in (_against(item, found), _for(item, found)) if part]
    parts += [_alike(one, other) for one, other in found.alike]
    parts += [_elsewhere(outcome, row) for outcome, row in found.elsewhere]
    if not parts:
        return (*head, ": no attempt decided it")
    return (*head, ": ", *joined(parts, "; "))


def _against(item: Hypothesis, found: Judged) -> Line:
    if not found.disagree:
        return ()
    came_to = ", ".join(f"{o.attempt.number} ({o.verdict.value})" for o in found.disagree)
    other = ""
    if found.pair:
        other = f"; {found.pair[1].attempt.number} fails alike without it, the rest being equal"
    return (f"predicted {item.verdict}, came to {came_to}{other}",)


def _for(item: Hypothesis, found: Judged) -> Line:
    if not found.agree:
        return ()
    numbers = listed([o.attempt.number for o in found.agree])
    other = ""
    if found.pair and not found.disagree:
        other = f", and {found.pair[1].attempt.number} fails without it, the rest being equal"
    return (f"as predicted in {numbers} ({item.verdict}){other}",)


def _alike(outcome: Outcome, other: Outcome) -> Line:
    """Name an attempt that decides nothing, since it came out alike without the prediction."""
    verdict = outcome.verdict.value
    return (
        f"{outcome.attempt.number} came to {verdict} as predicted, but {other.attempt.number} did "
        "so without it, the rest being equal",
    )


def _elsewhere(outcome: Outcome, row: Combination) -> Line:
    """Name an attempt that decides nothing, since something else made it fail."""
    return (f"{outcome.attempt.number} fails for another reason (", *what(row), ")")
