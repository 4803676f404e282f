"""Mistakes that only show when parts of a sweep's file are held against each other."""

from __future__ import annotations

from collections.abc import Iterator

from sglsweep.config.document import Document, Loc
from sglsweep.config.mistakes import Mistake, Note
from sglsweep.config.names import axis_names, condition_names, flag_names
from sglsweep.config.schema import HypothesisEntry, SweepEntry
from sglsweep.config.values import AutoFraction
from sglsweep.flags import canonical, nearest
from sglsweep.matrix import Value, spell
from sglsweep.plan.goal import Goal
from sglsweep.verdict import Phase, Verdict

AUTO_FLAG = "mem-fraction-static"


def misnamed(document: Document, entry: SweepEntry) -> Iterator[Mistake]:
    """Names that cannot be what they stand for, whatever the build."""
    yield from flag_names(document, entry.launch.flags, ("launch", "flags"))
    yield from axis_names(document, entry.matrix, ("matrix",))
    for index, cell in enumerate(entry.include):
        yield from axis_names(document, cell, ("include", index))
    for index, rule in enumerate(entry.exclude):
        yield from condition_names(document, rule.when, ("exclude", index, "when"))
    for index, claim in enumerate(entry.hypotheses):
        at: Loc = ("hypotheses", index, "predicts")
        yield from condition_names(document, claim.predicts, at, foretells=True)
        yield from _foretold(document, claim, at)
    yield from _twice(document, entry)


def _foretold(document: Document, claim: HypothesisEntry, at: Loc) -> Iterator[Mistake]:
    known: dict[str, list[str]] = {"verdict": list(Verdict), "phase": list(Phase)}
    for key, words in known.items():
        for value in claim.predicts.get(key, ()):
            if value not in words:
                near = nearest(str(value), words, count=1)
                instead = f"Write '{near[0]}'." if near else f"Write one of {', '.join(words)}."
                what = f"'{value}' is no {key}"
                yield Mistake(where=document.where((*at, key)), what=what, instead=instead)


def _twice(document: Document, entry: SweepEntry) -> Iterator[Mistake]:
    """One flag under two names, as an axis or in `launch`; and axes that want their own kind."""
    for names, at in ((entry.matrix, ("matrix",)), (entry.launch.flags, ("launch", "flags"))):
        first: dict[str, str] = {}
        for name in names:
            other = first.setdefault(canonical(name), name)
            if other != name:
                what = f"'{name}' and '{other}' are the same flag"
                where = document.where((*at, name))
                yield Mistake(where=where, what=what, instead="Delete one of the two.")
    for name, values in entry.matrix.items():
        loc: Loc = ("matrix", name)
        if isinstance(values, AutoFraction) and name != AUTO_FLAG:
            yield Mistake(
                where=document.where(loc),
                what=f"{{auto: true}} cannot solve '{name}'",
                instead=f"Write a list; only {AUTO_FLAG} is solved.",
            )
        elif name in {"build", "model"}:
            yield from _not_text(document, name, values, loc)
        elif name.startswith("env.") and not isinstance(values, AutoFraction):
            yield from _booleans(document, values, loc)


def _not_text(document: Document, name: str, values: object, loc: Loc) -> Iterator[Mistake]:
    for index, value in enumerate(values if isinstance(values, tuple) else ()):
        if not isinstance(value, str):
            what = f"{spell(value)} is no name of a {name}"
            where = document.where((*loc, index))
            yield Mistake(where=where, what=what, instead="Write its name as text.")


def _booleans(document: Document, values: tuple[Value, ...], loc: Loc) -> Iterator[Mistake]:
    for index, value in enumerate(values):
        if isinstance(value, bool):
            word = str(value).lower()
            yield Mistake(
                where=document.where((*loc, index)),
                what=f"{word} is a boolean, an environment variable is text",
                instead=f'Write "1" or "{word}" in quotes, or null not to set it.',
            )


def mislinked(document: Document, entry: SweepEntry) -> Iterator[Mistake]:
    """Links that name no axis, one axis twice, or lists of unequal length."""
    taken: dict[str, int] = {}
    for index, names in enumerate(entry.link):
        lengths = {n: len(v) for n in names if isinstance(v := entry.matrix.get(n), tuple)}
        for position, name in enumerate(names):
            where = document.where(("link", index, position))
            if name not in lengths:
                near = nearest(name, entry.matrix, count=1)
                instead = f"Write '{near[0]}'." if near else "Name axes of the matrix."
                yield Mistake(where=where, what=f"'{name}' is no axis", instead=instead)
            elif name in taken:
                what, instead = (
                    f"axis '{name}' is linked twice",
                    "Write one link with all of them.",
                )
                yield Mistake(where=where, what=what, instead=instead)
            taken.setdefault(name, index)
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            yield Mistake(
                where=document.where(("link", index)),
                what=f"linked axes have lists of unequal length: {shown}",
                instead="Give each as many values; they go together by position.",
            )


def overspent(document: Document, entry: SweepEntry) -> Iterator[Mistake]:
    """A `budget.keep` that leaves nothing to spend, or that is a share of nothing."""
    keep, budget = entry.budget.keep, entry.budget
    where = document.where(("budget", "keep"))
    if keep is None:
        return
    if keep >= 1:
        what = "budget.keep: 100% leaves first-serving nothing to spend"
        yield Mistake(where=where, what=what, instead="Write less than 100%, 25% say.")
    if keep > 0 and budget.hours is None and budget.attempts is None:
        what = "budget.keep is a share of a budget that has no limit"
        instead = "Add `hours:` or `attempts:` to `budget`, or delete `keep`."
        yield Mistake(where=where, what=what, instead=instead)


def kept_for_nothing(document: Document, entry: SweepEntry) -> Iterator[Note]:
    """Say where `budget.keep` keeps nothing: no goal stands behind first-serving."""
    goals = list(dict.fromkeys(entry.goal))
    if entry.budget.keep and Goal.FIRST_SERVING not in goals[:-1]:
        why = "budget.keep keeps nothing: no goal stands behind first-serving"
        yield Note(document.where(("budget", "keep")), why)
