"""How something was shown, in one sentence that claims no more than the attempts do."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from sglsweep.report.document import Code, Line, Strong, joined
from sglsweep.report.launches import BARE, Change, setting_text
from sglsweep.report.numbers import listed
from sglsweep.report.shown import Pair, Shown, Standing, shown, value_in
from sglsweep.report.words import back_options, cell_word, changed

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView


def tell_all(run: RunView, group: Group) -> list[Line]:
    """Return all that is shown about a cause; mere suspicions share a line."""
    items = shown(run, group.outcomes)
    alone = [tell(run, group, item) for item in items if item.standing not in _NAMED]
    for standing, opening in _NAMED.items():
        named = [_named(item) for item in items if item.standing is standing]
        if named:
            alone.append((opening, *joined(named)))
    return alone


def tell(run: RunView, group: Group, item: Shown) -> Line:
    """Say who is to blame and how that is known."""
    match item.standing:
        case Standing.PROVEN | Standing.PASSED:
            return _single(run, item) if item.pair else ()
        case Standing.POINTED:
            return _pointed(run, item, item.pair) if item.pair else ()
        case Standing.NARROWED:
            return _narrowed(run, item.pair) if item.pair else ()
        case Standing.SHARED:
            return _shared(group, item)
        case Standing.SUSPECTED | Standing.NOT_ALONE | Standing.NOT_NEEDED:
            return (_NAMED[item.standing], *_named(item))
        case _:
            assert_never(item.standing)


def _single(run: RunView, item: Shown) -> Line:
    pair = item.pair
    assert pair is not None  # noqa: S101 - seen to by `tell`
    (change,) = pair.changes
    is_proven = item.standing is Standing.PROVEN
    verb = "serves" if is_proven else _got_to(pair.better)
    also = ""
    if item.against:
        fail = "fails" if len(item.against) == 1 else "fail"
        also = f"; not the only one: {listed(list(item.against))} {fail} alike without it"
    return (
        "Blamed: ",
        *_culprit(change, pair.failing),
        ", ",
        Strong("proven" if is_proven else "shown"),
        f": {pair.failing.attempt.number} fails{_times(run, pair.failing)}, "
        f"{pair.better.attempt.number} {verb}{_times(run, pair.better)} ",
        *_instead(change),
        f", the rest being equal{also}",
    )


def _got_to(better: Outcome) -> str:
    return f"gets on to {better.diagnosis.phase.value} ({better.verdict.value})"


def _culprit(change: Change, failing: Outcome) -> Line:
    """Name what the failing attempt has; of a flag it does not pass, what SGLang chose."""
    if change.before is not None:
        return (Code(setting_text(change.name, change.before)),)
    chosen = None if change.after in {None, BARE} else value_in(failing, change.name)
    what = f" (SGLang chose {chosen})" if chosen else ""
    return (Code(_bare(change.name)), f" not passed{what}")


def _instead(change: Change) -> Line:
    if change.after is None:
        return ("without it",)
    return ("with ", Code(setting_text(change.name, change.after)))


def _bare(name: str) -> str:
    return name.removeprefix("env.") if name.startswith("env.") else f"--{name}"


def _times(run: RunView, outcome: Outcome) -> str:
    times = len(run.repeats(outcome))
    return f" ({times} of {times})" if times > 1 else ""


def _pointed(run: RunView, item: Shown, pair: Pair) -> Line:
    ((name, value),) = item.settings
    change = next(c for c in pair.changes if (c.name, c.before) == (name, value))
    options = back_options([change])
    proof = f"sglsweep relaunch {run.run} {pair.better.attempt.number} {options}"
    against, is_one = listed(list(item.against)), len(item.against) == 1
    return (
        "Points to ",
        *_culprit(change, pair.failing),
        f", not proven: all that its differences from {against}, which "
        f"{'serves' if is_one else 'serve'}, have in common",
        *(("; ", Code(proof), " failing alike would prove it") if options else ()),
    )


def _narrowed(run: RunView, pair: Pair) -> Line:
    bad, good = pair.failing.attempt.number, pair.better.attempt.number
    return (
        f"Among these, not proven which: {good} serves and differs from {bad} in ",
        *changed(pair.changes),
        *_one_of_them(run, pair),
    )


def _one_of_them(run: RunView, pair: Pair) -> Line:
    """Say which launch would tell the settings apart: the serving one with one of them back."""
    options = back_options(pair.changes[:1])
    if not options:
        return ()
    words = f"sglsweep relaunch {run.run} {pair.better.attempt.number} {options}"
    return ("; ", Code(words), " tells the first from the rest")


def _shared(group: Group, item: Shown) -> Line:
    parts: list[Line] = [(Code(setting_text(name, value)),) for name, value in item.settings]
    return (
        f"Not proven, but all {len(group.outcomes)} have it and no serving attempt has: ",
        *joined(parts),
    )


_NAMED = {
    Standing.SUSPECTED: "Suspected, by the signature alone: ",
    Standing.NOT_ALONE: "Named by the signature, but not to blame alone: ",
    Standing.NOT_NEEDED: "Named by the signature, but not needed for it: ",
}


def _named(item: Shown) -> Line:
    """Name what the signature blames, with the attempts that speak against it."""
    blame = item.blame
    if blame is None:
        return ()
    what = Code(blame.flag if blame.value is None else cell_word(blame.flag, blame.value))
    others, is_one = listed(list(item.against)), len(item.against) == 1
    if item.standing is Standing.NOT_ALONE:
        return (what, f" ({others} {'serves' if is_one else 'serve'} with it)")
    if item.standing is Standing.NOT_NEEDED:
        return (what, f" ({others} {'fails' if is_one else 'fail'} alike without it)")
    return (what,)
