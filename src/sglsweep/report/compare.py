"""Two runs, or two logs, side by side: what came out otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from sglsweep.report.document import Block, Bullets, Code, Heading, Line, Paragraph, Strong, joined
from sglsweep.report.machine import stable
from sglsweep.report.numbers import plural
from sglsweep.report.words import cell_words
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Diagnosis, Outcome, Scalar
    from sglsweep.matrix import Cell
    from sglsweep.report.view import RunView

_NOISE = 0.1
"""Speeds and times that differ by less than this share are called equal."""
_PER_LAUNCH = frozenset({"random-seed", "port", "nccl-port", "host"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in A and B."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """A cell launched in both runs, with everything that changed; nothing = as before."""

    cell: Cell
    build: str
    before: Outcome
    after: Outcome
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        only_before: cells that only the first run launched.
        only_after: cells that only the second run launched.
    """

    changed: tuple[CellChange, ...] = ()
    same: tuple[CellChange, ...] = ()
    only_before: tuple[Outcome, ...] = ()
    only_after: tuple[Outcome, ...] = ()
    software: tuple[Difference, ...] = ()


def compare_runs(before: RunView, after: RunView) -> Comparison:
    """Compare the latest telling attempt of each cell."""
    old, new = _latest(before), _latest(after)
    both = [
        CellChange(
            cell=old[key].attempt.cell,
            build=old[key].attempt.build,
            before=old[key],
            after=new[key],
            differences=compare_outcomes(old[key], new[key]),
        )
        for key in old
        if key in new
    ]
    return Comparison(
        changed=tuple(c for c in both if c.differences),
        same=tuple(c for c in both if not c.differences),
        only_before=tuple(o for key, o in old.items() if key not in new),
        only_after=tuple(o for key, o in new.items() if key not in old),
        software=_software(before, after),
    )


def _latest(run: RunView) -> dict[tuple[str, str], Outcome]:
    return {(o.attempt.cell.key, o.attempt.build): o for o in run.evidence}


def compare_outcomes(before: Outcome, after: Outcome) -> tuple[Difference, ...]:
    """Compare verdicts, numbers and effective flags of two attempts."""
    numbers = _numbers(_measured(before), _measured(after))
    return (*compare_diagnoses(before.diagnosis, after.diagnosis), *numbers)


def compare_diagnoses(before: Diagnosis, after: Diagnosis) -> tuple[Difference, ...]:
    """Compare what two logs came to, their numbers and their effective flags."""
    said = [
        Difference("verdict", before.verdict.value, after.verdict.value),
        Difference("cause", before.cause or "none", after.cause or "none"),
        Difference("phase", before.phase.value, after.phase.value),
        Difference("SGLang", before.sglang_version or "?", after.sglang_version or "?"),
    ]
    return (
        *(d for d in said if d.before != d.after),
        *_flags(before.effective, after.effective),
        *_numbers(before.metrics, after.metrics),
    )


def _flags(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> list[Difference]:
    """Compare flags that both logs show; a flag that one version lacks is no change of ours."""
    return [
        Difference(f"effective {name}", _word(before[name]), _word(after[name]))
        for name in before
        if name in after
        and name.replace("_", "-") not in _PER_LAUNCH
        and _word(before[name]) != _word(after[name])
    ]


def _measured(outcome: Outcome) -> dict[str, Scalar]:
    proof = outcome.proof
    return {
        "ready_s": outcome.timings.ready_s,
        "tokens_per_s": proof.tokens_per_s if proof else None,
    }


def _numbers(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> list[Difference]:
    found: list[Difference] = []
    for name, old in before.items():
        new = after.get(name)
        # A rank's own numbers ("TP3/weights_gb") repeat the summary.
        if "/" in name or not (_is_number(old) and _is_number(new)):
            continue
        if abs(new - old) > _NOISE * max(abs(new), abs(old)):
            found.append(Difference(name, f"{old:g}", f"{new:g}{_share(old, new)}"))
    return found


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _share(old: float, new: float) -> str:
    return f" ({(new - old) / old:+.0%})" if old else ""


def _software(before: RunView, after: RunView) -> tuple[Difference, ...]:
    old, new = stable(before.facts), stable(after.facts)
    return tuple(
        Difference(name, old.get(name, "absent"), new.get(name, "absent"))
        for name in sorted({*old, *new})
        if old and new and old.get(name) != new.get(name)
    )


def _word(value: Scalar) -> str:
    return "null" if value is None else str(value)


def document(names: tuple[str, str], result: Comparison) -> list[Block]:
    """Return two runs side by side as a page."""
    before, after = names
    total = len(result.changed) + len(result.same)
    counts = (
        f"{plural(total, 'cell')} launched in both: {len(result.changed)} changed, "
        f"{len(result.same)} as before."
    )
    verdict = [c for c in result.changed if c.before.verdict is not c.after.verdict]
    other = [c for c in result.changed if c not in verdict]
    return [
        Heading(1, (f"{before} against {after}",)),
        Paragraph((counts,)),
        *_part("Machine and software", list(lines(result.software))),
        *_part("Verdict changed", [_cell(change) for change in verdict]),
        *_part("Same verdict, other numbers or flags", [_cell(change) for change in other]),
        *_part(f"Only in {before}", [_only(o) for o in result.only_before]),
        *_part(f"Only in {after}", [_only(o) for o in result.only_after]),
    ]


def log_document(names: tuple[str, str], found: tuple[Difference, ...]) -> list[Block]:
    """Return two logs side by side as a page."""
    heading = Heading(1, (f"{names[0]} against {names[1]}",))
    if not found:
        return [heading, Paragraph(("Same diagnosis, numbers and effective flags.",))]
    return [heading, Bullets(lines(found))]


def _part(title: str, items: list[Line]) -> list[Block]:
    return [Heading(2, (title,)), Bullets(tuple(items))] if items else []


def _cell(change: CellChange) -> Line:
    numbers = f" ({change.before.attempt.number} and {change.after.attempt.number}): "
    return (*cell_words(change.cell), numbers, *joined(list(lines(change.differences)), "; "))


def _only(outcome: Outcome) -> Line:
    verdict = outcome.verdict
    word = Strong(verdict.value) if verdict is Verdict.SERVING else Code(verdict.value)
    return (*cell_words(outcome.attempt.cell), ": ", word)


def lines(found: tuple[Difference, ...]) -> tuple[Line, ...]:
    """Return each difference as a line: what, before, after."""
    return tuple((f"{d.what} ", Code(d.before), " -> ", Code(d.after)) for d in found)


def comparison_json(names: tuple[str, str], result: Comparison) -> dict[str, object]:
    """Return two runs side by side as data."""
    return {
        "schema": 1,
        "before": names[0],
        "after": names[1],
        "software": differences_json(result.software),
        "changed": [
            {
                "cell": dict(change.cell.values),
                "build": change.build,
                "attempts": [change.before.attempt.number, change.after.attempt.number],
                "verdicts": [change.before.verdict.value, change.after.verdict.value],
                "differences": differences_json(change.differences),
            }
            for change in result.changed
        ],
        "same": len(result.same),
        "only_before": [dict(o.attempt.cell.values) for o in result.only_before],
        "only_after": [dict(o.attempt.cell.values) for o in result.only_after],
    }


def differences_json(found: tuple[Difference, ...]) -> list[dict[str, str]]:
    """Return differences as data."""
    return [{"what": d.what, "before": d.before, "after": d.after} for d in found]
