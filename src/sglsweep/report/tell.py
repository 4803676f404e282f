"""How something was shown, in one sentence that claims no more than the attempts do."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from sglsweep.report.document import Code, Line, Strong, joined
from sglsweep.report.numbers import listed
from sglsweep.report.shown import Pair, Shown, Standing
from sglsweep.report.words import blamed, cell_word, changed

if TYPE_CHECKING:
    from sglsweep.attempt import Blame, Outcome
    from sglsweep.report.groups import Group
    from sglsweep.report.view import RunView


def tell(run: RunView, group: Group, item: Shown) -> Line:
    """Say who is to blame and how that is known."""
    match item.standing:
        case Standing.PROVEN:
            return _proven(run, item.pair)
        case Standing.NARROWED:
            return _narrowed(run, item.pair)
        case Standing.SHARED:
            return _shared(group, item)
        case Standing.SUSPECTED:
            return ("Suspected by the signature, not shown: ", _blame(item.blame))
        case Standing.NOT_ALONE:
            served = listed(list(item.served_by))
            return (
                "The signature names ",
                _blame(item.blame),
                f", but {served} serves with it: not to blame alone",
            )
        case _:
            assert_never(item.standing)


def _proven(run: RunView, pair: Pair | None) -> Line:
    if pair is None:
        return ()
    (change,) = pair.changes
    bad, good = pair.failing.attempt.number, pair.serving.attempt.number
    cure = changed((change,))
    return (
        "Blamed: ",
        blamed(change.name, change.before),
        ", ",
        Strong("proven"),
        f": {bad} fails{_times(run, pair.failing)}, {good} serves{_times(run, pair.serving)}, "
        "and only this differs: ",
        *cure,
    )


def _times(run: RunView, outcome: Outcome) -> str:
    times = len(run.repeats(outcome))
    return f" ({times} of {times})" if times > 1 else ""


def _narrowed(run: RunView, pair: Pair | None) -> Line:
    if pair is None:
        return ()
    bad, good = pair.failing.attempt.number, pair.serving.attempt.number
    return (
        "Narrowed down, not proven: ",
        *changed(pair.changes),
        f" is all that {good}, which serves, has different from {bad}; ",
        Code(f"sglsweep bisect {run.run} {bad} {good}"),
        " finds which",
    )


def _shared(group: Group, item: Shown) -> Line:
    parts: list[Line] = [(blamed(name, value),) for name, value in item.settings]
    return (
        f"In common to all {len(group.outcomes)} and to no serving attempt, not proven: ",
        *joined(parts),
    )


def _blame(blame: Blame | None) -> Code:
    if blame is None:
        return Code("?")
    return Code(blame.flag if blame.value is None else cell_word(blame.flag, blame.value))
