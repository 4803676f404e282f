"""What fails, by cause: the evidence, who is to blame and how that was shown, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Paragraph,
    joined,
    one_line,
    prose,
)
from sglsweep.report.groups import Group, groups, killed
from sglsweep.report.held import did_not_help
from sglsweep.report.numbers import listed
from sglsweep.report.remedy import remedies, remedy_line
from sglsweep.report.tell import tell_all
from sglsweep.report.words import evidence, numbers, warnings
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView

_PLACES_SHOWN = 6
_WARNINGS_SHOWN = 3


def fails(run: RunView) -> list[Block]:
    """Return one part for each cause."""
    found = groups(run)
    if not found:
        return []
    blocks: list[Block] = [Heading(2, ("What fails",))]
    for group in found:
        blocks += _group(run, group)
    return blocks


def _group(run: RunView, group: Group) -> list[Block]:
    first = group.outcomes[0]
    verdict = "" if group.cause in {None, group.verdict.value} else f" ({group.verdict.value})"
    phases = sorted({o.diagnosis.phase for o in group.outcomes}, key=lambda phase: phase.order)
    where = " and ".join(phase.value for phase in phases)
    lines: list[Line] = [("Evidence: ", *evidence(first), *_status(first), *_elsewhere(group))]
    lines += tell_all(run, group)
    useless = did_not_help(group.outcomes)
    if useless:
        lines.append(
            ("Did not help by itself: ", *joined([_useless(c.text, n) for c, n in useless]))
        )
    lines += _warnings(run, group)
    if group.known_issues:
        lines.append(("Known: ", *joined([(issue,) for issue in group.known_issues], "; ")))
    lines += _next(group)
    lines += [remedy_line(run, remedy) for remedy in remedies(run, group)]
    heading = (f"{group.name}{verdict}: {numbers(group.outcomes)}, in {where}",)
    return [Heading(3, heading), Bullets(tuple(lines))]


def _useless(text: str, number: int) -> Line:
    return (Code(text), f" ({number})")


def _status(outcome: Outcome) -> Line:
    """Tell the exit status where it is a clue; SGLang ends most failures by SIGKILL to itself."""
    status = outcome.end.exit_status
    if outcome.verdict is not Verdict.CRASH or status is None:
        return ()
    return (f" (exit status {status})",)


def _elsewhere(group: Group) -> Line:
    rest = group.outcomes[1:]
    if not rest:
        return ()
    shown_places = [
        f"{o.attempt.number:04d}/log" + (f":{o.diagnosis.line}" if o.diagnosis.line else "")
        for o in rest[:_PLACES_SHOWN]
    ]
    more = f" and {len(rest) - _PLACES_SHOWN} more" if len(rest) > _PLACES_SHOWN else ""
    return (f"; likewise {', '.join(shown_places)}{more}",)


def _warnings(run: RunView, group: Group) -> list[Line]:
    """Name warnings that stand beside the failure; one that serving attempts have is innocent."""
    found = {s.id: s for o in group.outcomes for s in warnings(o)}
    lines: list[Line] = []
    for suspect in list(found.values())[:_WARNINGS_SHOWN]:
        served = [o.attempt.number for o in run.serving if _has(o, suspect.id)]
        serve = f"{listed(served)} {_serve(served)} with it"
        innocent = f", harmless by itself: {serve}" if served else ""
        lines.append((f"Warning beside it: {suspect.id} ", Code(one_line(suspect.text)), innocent))
    return lines


def _serve(numbers: Sequence[int]) -> str:
    return "serves" if len(numbers) == 1 else "serve"


def _has(outcome: Outcome, suspect: str) -> bool:
    return any(s.id == suspect for s in warnings(outcome))


def _next(group: Group) -> list[Line]:
    diagnosis = group.outcomes[0].diagnosis
    lines: list[Line] = []
    if diagnosis.next_step:
        lines.append(("Next: ", *prose(diagnosis.next_step)))
    if diagnosis.confidence != "high":
        lines.append((f"The diagnosis is of {diagnosis.confidence} confidence: read the log.",))
    return lines


def without_verdict(run: RunView) -> list[Block]:
    """Return attempts that say nothing about their flags, and why."""
    silent = [
        o
        for o in run.outcomes
        if o.verdict
        in {Verdict.INTERRUPTED, Verdict.HOST_LOST, Verdict.INCOMPLETE, Verdict.GRAPH_CAPTURE_OK}
        and o.end.kind is not EndKind.EQUAL
    ]
    lines = [_silent(o) for o in silent]
    lines += [_killed(group) for group in killed(run)]
    if not lines:
        return []
    return [
        Heading(2, ("Without evidence",)),
        Paragraph(
            ("Ended from outside or too early: for or against their flags these say nothing.",)
        ),
        Bullets(tuple(lines)),
    ]


def _killed(group: Group) -> Line:
    first = group.outcomes[0]
    which = listed([o.attempt.number for o in group.outcomes])
    where = first.diagnosis.phase.value
    step = prose(first.diagnosis.next_step)
    return (
        f"{which} {group.verdict.value} in {where} ({group.name}): ",
        *evidence(first),
        *((". Next: ", *step) if step else ()),
    )


def _silent(outcome: Outcome) -> Line:
    diagnosis = outcome.diagnosis
    cause = f" ({diagnosis.cause})" if diagnosis.cause not in {None, diagnosis.verdict} else ""
    said = diagnosis.next_step if outcome.is_due_alone else outcome.end.detail
    why = prose(said or diagnosis.next_step, limit=300)
    head = f"{outcome.attempt.number} {diagnosis.verdict.value}{cause} in {diagnosis.phase.value}"
    return (f"{head}: ", *why) if why else (head,)
