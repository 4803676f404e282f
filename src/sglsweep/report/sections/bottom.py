"""The top of the page: what it is about, and the command that works or the nearest miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.best import best_serving, nearest_miss
from sglsweep.report.caveats import caveats
from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Listing,
    Paragraph,
    Strong,
    joined,
    one_line,
)
from sglsweep.report.groups import group_of, groups
from sglsweep.report.launches import command
from sglsweep.report.numbers import duration, listed, plural
from sglsweep.report.rehearsal import sglang_command
from sglsweep.report.shown import Standing, shown
from sglsweep.report.words import changed, evidence, numbers, proof_words, remedy_options

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView


def title(run: RunView) -> list[Block]:
    """Say what was swept, where, and how much of it there is."""
    spent = sum(o.timings.total_s for o in run.outcomes)
    hosts = sorted({o.attempt.host for o in run.outcomes})
    words = [
        run.model,
        f"on {', '.join(hosts)}" if hosts else "",
        plural(len(run.outcomes), "attempt"),
        duration(spent) if spent else "",
    ]
    blocks: list[Block] = [
        Heading(1, (f"{run.name}: findings",)),
        Paragraph((" · ".join(word for word in words if word),)),
    ]
    if run.world:
        blocks.append(Paragraph(_rehearsal(run)))
    return blocks


def _rehearsal(run: RunView) -> Line:
    return (
        Strong("Rehearsal."),
        " No SGLang and no GPU took part: every outcome below was made up by the world ",
        Code(run.world),
        ".",
    )


def bottom_line(run: RunView) -> list[Block]:
    """Give the command that works, or the nearest miss and what to try next."""
    best = best_serving(run)
    blocks: list[Block] = [Heading(2, ("Bottom line",))]
    if best is not None:
        blocks += _serves(run, best)
    elif run.failing:
        blocks += _nothing_serves(run)
    else:
        blocks.append(Paragraph(_nothing_known(run)))
    blocks += [Paragraph(line) for line in _state(run)]
    return blocks


def _serves(run: RunView, best: Outcome) -> list[Block]:
    again = [o.attempt.number for o in run.repeats(best) if o is not best]
    also = f", repeated as {listed(again)}" if again else ""
    blocks: list[Block] = [
        Paragraph(
            (
                Strong("Serves."),
                f" Attempt {best.attempt.number}{also}: {proof_words(best.proof)}.",
            )
        ),
        *_commands(run, best),
    ]
    proven = _proven(run, best)
    if proven:
        blocks += [Paragraph((Strong("Proven to matter"),)), Bullets(tuple(proven))]
    warned = caveats(run, best)
    if warned:
        blocks += [Paragraph((Strong("Before you rely on it"),)), Bullets(tuple(warned))]
    others = [
        o.attempt.number for o in run.serving if o is not best and o not in run.repeats(best)
    ]
    if others:
        blocks.append(Paragraph((f"Also serving: {listed(others)}, under What works.",)))
    return blocks


def _commands(run: RunView, outcome: Outcome) -> list[Block]:
    if not run.world:
        return [Listing(command(outcome.attempt), "bash")]
    return [
        Paragraph(("The SGLang command that this cell stands for:",)),
        Listing(sglang_command(outcome.attempt), "bash"),
        Paragraph(("What the rehearsal ran:",)),
        Listing(command(outcome.attempt), "bash"),
    ]


def _proven(run: RunView, best: Outcome) -> list[Line]:
    """Return changes that the recommended command has and a failing one has not."""
    lines: list[Line] = []
    for group in groups(run):
        for item in shown(run, group.outcomes):
            pair = item.pair
            if item.standing is not Standing.PROVEN or pair is None or pair.serving is not best:
                continue
            lines.append(
                (
                    *changed(pair.changes),
                    f": {pair.failing.attempt.number} fails ({group.name}), "
                    f"{best.attempt.number} serves, nothing else differs",
                )
            )
    return lines


def _nothing_serves(run: RunView) -> list[Block]:
    miss = nearest_miss(run)
    assert miss is not None  # noqa: S101 - asked only where there are failures
    diagnosis = miss.diagnosis
    blocks: list[Block] = [
        Paragraph(
            (
                Strong("Nothing serves"),
                f" in {plural(len(run.evidence), 'attempt')}.",
                *_one_cause(run),
            )
        ),
        Paragraph(
            (
                f"Nearest miss: attempt {miss.attempt.number} reached {diagnosis.phase.value}, "
                f"then {diagnosis.verdict.value}: ",
                *evidence(miss),
            )
        ),
        *_commands(run, miss),
    ]
    tries = _try_next(run, miss)
    if tries:
        blocks += [Paragraph((Strong("Try next"),)), Bullets(tuple(tries))]
    return blocks


def _one_cause(run: RunView) -> Line:
    found = groups(run)
    if len(found) != 1 or len(run.failing) == 1:
        return ()
    return (" All of them failed for the same reason, ", Strong(found[0].name), ".")


def _try_next(run: RunView, miss: Outcome) -> list[Line]:
    lines: list[Line] = []
    diagnosis = miss.diagnosis
    if diagnosis.next_step:
        lines.append((one_line(diagnosis.next_step, limit=500),))
    if diagnosis.remedy:
        options = remedy_options(diagnosis.remedy)
        tried = f"sglsweep relaunch {run.run} {miss.attempt.number} {options}"
        lines.append((Code(tried), " launches it with the remedy that the catalogue knows"))
    group = group_of(run, miss)
    lines += [
        ("Known issue: ", issue) for issue in (group.known_issues if group is not None else ())
    ]
    return lines


def _nothing_known(run: RunView) -> Line:
    if not run.outcomes:
        return ("No attempt has ended yet.",)
    silent = joined([(f"{o.attempt.number} {o.verdict.value}",) for o in run.outcomes[-5:]])
    return (
        Strong("Nothing is known."),
        f" {numbers(run.outcomes).capitalize()} ended without a word on any flag: ",
        *silent,
        ".",
    )


def _state(run: RunView) -> list[Line]:
    lines: list[Line] = []
    if run.running:
        going = listed([a.number for a in run.running])
        lines.append(
            (f"The sweep is not over: attempt {going} was begun and has no outcome yet.",)
        )
    elif run.finish:
        lines.append(("The sweep ended: ", one_line(run.finish, limit=300), "."))
    lines += [(one_line(note, limit=300),) for note in run.notes]
    return lines
