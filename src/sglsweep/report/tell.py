"""How something was shown, in one sentence that claims no more than the attempts do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.plan.why import percent
from sglsweep.report.blamed import Combination, Pair, combinations_of, twins_of
from sglsweep.report.by_signature import by_signature
from sglsweep.report.document import Code, Line, Strong, joined
from sglsweep.report.evidence import key
from sglsweep.report.held import value_in
from sglsweep.report.launches import (
    BARE,
    HOST,
    Change,
    changes,
    distance,
    setting_text,
)
from sglsweep.report.numbers import listed
from sglsweep.report.watchers import WATCHERS
from sglsweep.report.words import changed
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView

_WORTH_NAMING = 0.2
_NARROW = 3
"""More differences than this narrow nothing down for a reader."""


def tell_all(run: RunView, group: Group) -> list[Line]:
    """Return all that is shown about a cause; what only the signature says shares a line."""
    rows = combinations_of(run, group)
    lines = [tell(run, row) for row in rows if not row.is_refuted]
    if not rows and group.verdict is Verdict.ENV_ERROR:
        lines.append(("No flag is blamed: an error of the machine, not of the launch",))
    lines += [_seen(run, bad, twin) for bad, twin in twins_of(run, group)]
    refuted = [_refuted(row) for row in rows if row.is_refuted]
    if refuted:
        lines.append(("Named, but not to blame by itself: ", *joined(refuted, "; ")))
    if len(twins_of(run, group)) == len(group.outcomes):
        return lines
    said = {name for row in rows if row.is_named or row.is_refuted for name in row.keys}
    return lines + by_signature(run, group, said)


def _seen(run: RunView, number: int, twin: int) -> Line:
    other = run.outcome(twin)
    cause = other.diagnosis.cause if other else None
    return (
        f"{number} is the launch of {twin} with a check that only looks on: who is to blame "
        f"stands at {cause or 'that attempt'}",
    )


def tell(run: RunView, row: Combination) -> Line:
    """Say who is to blame, how sure that is, and what shows it."""
    if row.is_refuted:
        return ("Named, but not to blame by itself: ", *_refuted(row))
    if is_open(row):
        return ("Nothing narrows it down yet: ", *shown_by(run, row))
    if not row.is_named:
        return ("Not decided: likeliest ", *likeliest(row), "; ", *shown_by(run, row))
    sure = _sureness(row)
    standing: Line = (Strong(sure),) if row.is_proven else (sure,)
    return (
        "Blamed: ",
        *what(row),
        ", ",
        *standing,
        ": ",
        *shown_by(run, row),
        *_without(row),
    )


def is_open(row: Combination) -> bool:
    """True where so much is possible that naming the likeliest would mislead."""
    return not row.is_refuted and row.chance is not None and row.chance < _WORTH_NAMING


def status_words(row: Combination) -> str:
    """Return the status for a table: "proven", "supported, 78 % likely", "refuted", "open"."""
    if row.is_refuted:
        return "refuted"
    return "open" if is_open(row) else _sureness(row)


def _sureness(row: Combination) -> str:
    if row.is_proven:
        return "proven"
    if row.chance is None:
        return "supported"
    return f"supported, {percent(row.chance)} likely"


def what(row: Combination) -> Line:
    """Write a combination as the failing attempt passed it."""
    sample = row.failing[0]
    return joined([_setting(sample, n, v) for n, v in row.values.items()], " with ")


def _setting(sample: Outcome, name: str, value: str | None) -> Line:
    """Write one setting; of a flag that is not passed, what SGLang chose."""
    if value is not None:
        return (Code(setting_text(name, value)),)
    chosen = value_in(sample, name)
    return (
        Code(_bare(name)),
        " not passed",
        f" (SGLang chose {chosen})" if chosen and chosen not in {"false", "true"} else "",
    )


def _bare(name: str) -> str:
    if name.startswith((HOST, "env.")) or name in {"build", "model"}:
        return name.removeprefix("env.")
    return f"--{name}"


def likeliest(row: Combination) -> Line:
    """Name the likeliest combinations with their chances, where none stands out."""
    sample = row.failing[0]
    rivals = [
        (
            *joined([_setting(sample, n, v) for n, v in values.items()], " with "),
            f" ({percent(chance)})",
        )
        for values, chance in row.rivals
    ]
    first = (*what(row), f" ({percent(row.chance or 0.0)})")
    return joined([first, *rivals], ", or ")


def shown_by(run: RunView, row: Combination) -> Line:
    """Say which attempts show it."""
    if row.is_refuted:
        return _refutation(row)
    if row.proofs and row.is_proven:
        return joined([_proof(run, pair, row) for pair in row.proofs], "; ")
    shown: list[Line] = []
    further = _further(run, row)
    near = further or _nearest(run, row)
    if near is not None:
        shown.append(_near(near))
    else:
        shown.append((_in_common(run, row),))
    shown += _to_prove(run, row)
    return joined(shown, "; ")


def _proof(run: RunView, pair: Pair, row: Combination) -> Line:
    bad, good = pair.failing, pair.better
    head = f"{_number(bad)} fails{_times(run, bad)}, {_number(good)} serves{_times(run, good)}"
    how = " (bisect)" if row.is_bisected else ""
    made = row.telling(pair)
    if len(made) != 1:
        return (f"{head} and differs in just these{how}",)
    return (f"{head} ", *_instead(made[0]), f", the rest being equal{_but_for(row, pair)}{how}")


def _but_for(row: Combination, pair: Pair) -> str:
    """Name what differs too and has no part in it."""
    others = [c.name for c in pair.changes if key(c.name) not in row.keys]
    if not others or len(others) == len(pair.changes):
        return ""
    names = ", ".join(_bare(name) for name in others)
    verb = "has" if len(others) == 1 else "have"
    why = "only looks on" if WATCHERS.issuperset(map(key, others)) else f"{verb} no effect there"
    return f" but for {names}, which {why}"


def _instead(change: Change) -> Line:
    if change.after is None:
        return ("without it",)
    return ("with ", Code(setting_text(change.name, change.after)))


def _number(outcome: Outcome) -> int:
    return outcome.attempt.number


def _times(run: RunView, outcome: Outcome) -> str:
    times = len(run.repeats(outcome))
    return f" ({times} of {times})" if times > 1 else ""


def _without(row: Combination) -> Line:
    """Say that it is not the only thing that ends in this cause."""
    if not row.without:
        return ()
    numbers = [_number(o) for o in row.without]
    verb = "fails" if len(numbers) == 1 else "fail"
    return (f"; not the only one: {listed(numbers)} {verb} alike without it",)


def _further(run: RunView, row: Combination) -> Pair | None:
    """Return a pair that differs in just the combination, of which one gets further."""
    pairs = _pairs(row, [o for o in run.failing if o not in row.failing and not run.is_flaky(o)])
    return next(
        (
            pair
            for pair in pairs
            if {key(c.name) for c in pair.changes} == row.keys
            and pair.better.diagnosis.phase.order > pair.failing.diagnosis.phase.order
        ),
        None,
    )


def _nearest(run: RunView, row: Combination) -> Pair | None:
    """Return the pair with the fewest differences, one of which is of the combination."""
    pairs = _pairs(row, [o for o in run.serving if not run.is_flaky(o)])
    near = [p for p in pairs if {key(c.name) for c in p.changes} & row.keys]
    return min(near, key=lambda p: len(p.changes), default=None)


def _pairs(row: Combination, better: Sequence[Outcome]) -> list[Pair]:
    return [
        Pair(failing=bad, better=good, changes=changes(bad, good))
        for bad in row.failing
        for good in better
        if 0 < distance(bad, good) <= _NARROW
    ]


def _near(pair: Pair) -> Line:
    better = pair.better
    if better.verdict is not Verdict.SERVING:
        got = f"gets on to {better.diagnosis.phase.value} ({better.verdict.value})"
        with_what = _instead(pair.changes[0]) if len(pair.changes) == 1 else ("without these",)
        head = f"{_number(pair.failing)} fails, {_number(better)} {got} "
        return (head, *with_what, ", the rest being equal")
    return (
        f"{_number(better)} serves and differs from {_number(pair.failing)} in ",
        *changed(pair.changes),
    )


def _in_common(run: RunView, row: Combination) -> str:
    """Say what the failures tell where no attempt is near enough to compare with."""
    count = len(row.failing)
    every = "both" if count == 2 else f"all {count}"  # noqa: PLR2004 - both
    have = "" if row.without or count == 1 else f"{every} have it, "
    return f"{have}{'no serving attempt is near' if run.serving else 'no attempt serves yet'}"


def _to_prove(run: RunView, row: Combination) -> Iterator[Line]:
    """Yield the command that proves it, where there is something to compare with."""
    if run.serving and not (row.is_bisected and row.chance is None):
        yield (Code(f"sglsweep bisect {run.run} {_number(row.failing[0])}"), " settles it")


def _refuted(row: Combination) -> Line:
    return (*what(row), " (", *_refutation(row), ")")


def _refutation(row: Combination) -> Line:
    served = [_number(o) for o in row.against]
    verb = "serves" if len(served) == 1 else "serve"
    who = "bisect" if row.is_bisected else "the signature"
    bad = listed([_number(o) for o in row.failing])
    return (f"named by {who} in {bad}; {listed(served)} {verb} with it",)


def values_json(values: Mapping[str, str | None]) -> dict[str, str | bool | None]:
    """Return a combination as data: null = not passed, true = passed without a value."""
    return {name: True if text == BARE else text for name, text in values.items()}
