"""The top of the page: what it is about, and the command that works or the nearest miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import EndKind
from sglsweep.flags import canonical
from sglsweep.plan.spent import spent_s
from sglsweep.report.best import best_serving, nearest_miss
from sglsweep.report.blamed import Combination, Pair, combinations
from sglsweep.report.caveats import caveats
from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Link,
    Listing,
    Paragraph,
    Strong,
    joined,
    prose,
)
from sglsweep.report.groups import group_of, groups
from sglsweep.report.innocent import innocent, remedy
from sglsweep.report.launches import changes
from sglsweep.report.machine import gpu_hours
from sglsweep.report.numbers import duration, listed, plural
from sglsweep.report.outlook import Help, forecast_words, helps
from sglsweep.report.quality import is_doubtful_model
from sglsweep.report.rehearsal import sglang_command, shown_command
from sglsweep.report.remedy import Remedy, remedies, remedy_command, remedy_line
from sglsweep.report.tell import status_words
from sglsweep.report.view import cells_left, is_doubtful
from sglsweep.report.words import cell_word, changed, evidence, numbers, proof_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Value
    from sglsweep.report.view import RunView

_CHANGES_SHOWN = 6
_MODELS_NAMED = 3


def title(run: RunView) -> list[Block]:
    """Say what was swept, where, and how much of it there is."""
    spent = spent_s(run.outcomes)
    hosts = sorted({o.attempt.host for o in run.outcomes})
    models = _models(run) or [run.model]
    words = [
        ", ".join(models) if len(models) <= _MODELS_NAMED else plural(len(models), "model"),
        f"on {', '.join(hosts)}" if hosts else "",
        plural(len(run.outcomes), "attempt"),
        duration(spent) if spent else "",
        gpu_hours(run.facts, spent),
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
    else:
        miss = nearest_miss(run)
        blocks += _nothing_serves(run, miss) if miss else [Paragraph(_nothing_known(run))]
    return blocks + [Paragraph(line) for line in _state(run)]


def _serves(run: RunView, best: Outcome) -> list[Block]:
    again = [o.attempt.number for o in run.repeats(best) if o is not best]
    also = f", repeated as {listed(again)}" if again else ""
    is_map = "map" in run.goals
    word = "Answers, but most answers are suspect." if is_doubtful(best) else "Serves."
    if is_doubtful_model(run, best):
        word = "Serves, but answers unlike the model that was asked for."
    several = len(_models(run)) > 1
    of = f" ({best.attempt.model})" if several else ""
    head = f" Attempt {best.attempt.number}{also}{of}: {proof_words(best.proof, best.ladder)}."
    blocks: list[Block] = [
        Paragraph((Strong(word), head)),
        *commands(run, best),
        *(_bullets("By model", _by_model(run)) if several else []),
        *([] if is_map else _bullets("What made it serve", _what_made(run, best))),
        *_bullets("Before you rely on it", caveats(run, best)),
    ]
    others = [o for o in run.serving if o not in run.repeats(best)]
    sound = [o.attempt.number for o in others if not is_doubtful(o)]
    if sound:
        blocks.append(Paragraph((f"Also serving: {listed(sound)}, under What works.",)))
    if is_map:
        blocks += _bullets("Values that served in no attempt", _never_served(run))
    return blocks


def _models(run: RunView) -> list[str]:
    return list(dict.fromkeys(o.attempt.model for o in run.outcomes))


def _launched(run: RunView, model: str) -> list[Outcome]:
    return [
        o for o in run.outcomes if o.attempt.model == model and o.end.kind is not EndKind.EQUAL
    ]


def _by_model(run: RunView) -> list[Line]:
    """Say of each model what came of it: one's command is no answer for another."""
    lines: list[Line] = []
    for model in _models(run):
        having = [o for o in run.evidence if o.attempt.model == model]
        served = [o for o in having if o in run.serving]
        said = f"{len(served)} of {plural(len(having), 'attempt')} served"
        if served:
            first = best_serving(run, served)
            said += f", first choice {first.attempt.number}" if first else ""
        elif having:
            which = "its one attempt" if len(having) == 1 else f"all {len(having)} attempts"
            said = f"{which} failed: {_causes(having)}"
        else:
            said = "no attempt that tells"
        silent = [o for o in _launched(run, model) if o not in having]
        which = listed([o.attempt.number for o in silent])
        more = f"; without evidence: {which}" if silent else ""
        lines.append((Code(model), f": {said}{more}"))
    return lines


def _bullets(title: str, lines: list[Line]) -> list[Block]:
    return [Paragraph((Strong(title),)), Bullets(tuple(lines))] if lines else []


def commands(run: RunView, outcome: Outcome) -> list[Block]:
    """Return the command to copy; for a rehearsal first the one that it stands for."""
    if not run.world:
        return [*_folder(outcome), Listing(shown_command(outcome.attempt), "bash")]
    return [
        Paragraph(("The SGLang command that this cell stands for:",)),
        Listing(sglang_command(outcome.attempt), "bash"),
        Paragraph(("What the rehearsal ran:",)),
        Listing(shown_command(outcome.attempt), "bash"),
    ]


def _folder(outcome: Outcome) -> list[Block]:
    """Say where to stand, if the interpreter is named by a relative path."""
    python = outcome.attempt.python
    if "/" not in python or python.startswith(("/", "~")):
        return []
    return [Paragraph(("In the folder of SWEEP.yaml:",))]


def _what_made(run: RunView, best: Outcome) -> list[Line]:
    return [*_against_first(run, best), *_proven(run, best)]


def _against_first(run: RunView, best: Outcome) -> list[Line]:
    """Say what the user's first launch lacks, where that failed and is near enough to tell."""
    first = run.outcomes[0]
    made = changes(first, best)
    if first not in run.failing or not 1 < len(made) <= _CHANGES_SHOWN:
        return []
    return [("All that differs from attempt 1: ", *changed(made, limit=_CHANGES_SHOWN))]


def _proven(run: RunView, best: Outcome) -> list[Line]:
    """Return changes that the recommended command has and a failing one has not."""
    return [
        line
        for row in combinations(run)
        if row.is_proven
        for pair in row.proofs
        if pair.better is best
        for line in (_proof_line(row, pair), *remedy(pair), *innocent(run, row, pair))
    ]


def _proof_line(row: Combination, pair: Pair) -> Line:
    bad, good = pair.failing.attempt.number, pair.better.attempt.number
    return (
        Strong("Proven"),
        ": ",
        *changed(row.telling(pair)),
        f" ({bad} fails with {row.cause}, {good} serves, nothing else differs)",
    )


def _never_served(run: RunView) -> list[Line]:
    """Name the values of the matrix that failed every time they were launched."""
    shown = _alone(run)
    return [
        (
            Code(cell_word(axis.name, value)),
            f": {plural(len(having), 'attempt')}, {_causes(having)}, ",
            shown.get(setting_of(axis.name, value), "by itself not shown"),
        )
        for axis in run.axes
        for value in axis.values
        if value is not None
        and (having := run.having(axis.name, value))
        and not any(o in run.serving for o in having)
    ]


def _causes(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(dict.fromkeys(o.diagnosis.cause or o.verdict.value for o in outcomes))


def _alone(run: RunView) -> dict[tuple[str, str], str]:
    """Return the settings that fail by themselves, with what shows it."""
    found: dict[tuple[str, str], str] = {}
    for row in combinations(run):
        if row.is_named and len(row.values) == 1:
            ((name, text),) = row.values.items()
            said = status_words(row)
            if row.is_proven and row.proofs:
                bad, good = row.proofs[0].failing, row.proofs[0].better
                said = f"proven by {bad.attempt.number} against {good.attempt.number}"
            found.setdefault(setting_of(name, text), said)
    return found


def setting_of(name: str, value: Value) -> tuple[str, str]:
    """Return a key that a cell's value and a launch's setting have in common."""
    return canonical(name), "" if value is True else str(value)


def _nothing_serves(run: RunView, miss: Outcome) -> list[Block]:
    diagnosis = miss.diagnosis
    return [
        Paragraph(
            (
                Strong("Nothing serves" if run.finish else "Nothing serves yet"),
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
        *commands(run, miss),
        *_bullets("Try next", _try_next(run, miss)),
    ]


def _one_cause(run: RunView) -> Line:
    found = groups(run)
    if len(found) != 1 or len(run.failing) == 1:
        return ()
    return (" All of them failed for the same reason, ", Strong(found[0].name), ".")


def _try_next(run: RunView, miss: Outcome) -> list[Line]:
    lines: list[Line] = []
    group = group_of(run, miss)
    if miss.diagnosis.next_step:
        lines.append(("The catalogue says: ", *prose(miss.diagnosis.next_step)))
    lines += [("Outside the matrix: ", *_help(item)) for item in helps(run)]
    if group is not None:
        told = [dict(item.values) for item in helps(run)]
        lines += [
            _remedy(run, remedy)
            for remedy in remedies(run, group)
            if remedy.tried or dict(remedy.values) not in told
        ]
        lines += [("Known issue: ", issue) for issue in group.known_issues]
    untried = _untried(run) if run.finish else []
    if untried:
        lines.append(("Values of the matrix that no attempt had yet: ", *joined(untried)))
    rest = cells_left(run)
    if rest and run.finish:
        odds = f" ({words})" if (words := forecast_words(run)) else ""
        lines.append(
            (f"{plural(rest, 'cell')} not launched yet: a larger budget goes on here{odds}",)
        )
    return lines


def _help(item: Help) -> Line:
    why = prose(item.why)
    return (*why, " (", Link("known issue", item.url), ")") if item.url else why


def _remedy(run: RunView, remedy: Remedy) -> Line:
    if remedy.tried or remedy.in_place:
        return remedy_line(run, remedy)
    return (Code(remedy_command(run, remedy)), " launches the catalogue's remedy")


def _untried(run: RunView) -> list[Line]:
    return [
        (Code(cell_word(axis.name, value)),)
        for axis in run.axes
        for value in axis.values
        if value is not None and not run.having(axis.name, value)
    ]


def _nothing_known(run: RunView) -> Line:
    if not run.outcomes:
        return ("No attempt has ended yet.",)
    silent = joined([(f"{o.attempt.number} {o.verdict.value}",) for o in run.outcomes[-5:]])
    last = run.outcomes[-1]
    why = last.end.detail or last.diagnosis.next_step
    return (
        Strong("Nothing is known."),
        f" {numbers(run.outcomes).capitalize()} ended without a word on any flag: ",
        *silent,
        *((". The last one: ", *prose(why.rstrip("."), limit=300)) if why else ()),
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
        lines.append(("The sweep ended: ", *prose(run.finish.rstrip(".")), "."))
    else:
        lines.append(
            prose("The sweep is not at its end; the same `sglsweep sweep` command goes on.")
        )
    words = forecast_words(run)
    if words and not run.finish:
        lines.append((f"Forecast: {words}.",))
    lines += [prose(note) for note in run.notes]
    return lines
