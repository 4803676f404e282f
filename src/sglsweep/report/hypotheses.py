"""What became of the user's hypotheses, in accord with the blame table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.report.blamed import Combination, combinations, known
from sglsweep.report.evidence import is_inert, key
from sglsweep.report.held import holds
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import Hypothesis, RunView

_NO_TEST = frozenset({Verdict.ENV_ERROR, Verdict.COLLECTIVE_ERROR})
"""Failures of the surroundings: a prediction about flags is neither met nor missed by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A hypothesis after the attempts.

    Attributes:
        state: "open", "supported" or "refuted".
        agree: attempts that came out as predicted.
        disagree: attempts that did not, though nothing else explains it.
        elsewhere: attempts that failed, each with the combination that explains it.
        pair: two attempts that differ only in what the hypothesis is about, one with it.
        is_idle: with and without it SGLang makes the same of the launches: nothing could tell.
        alike: attempts that came out as predicted, each with one that did so without what the
            hypothesis is about, the rest being equal: it made no difference there.
    """

    state: str
    agree: tuple[Outcome, ...] = ()
    disagree: tuple[Outcome, ...] = ()
    elsewhere: tuple[tuple[Outcome, Combination], ...] = ()
    pair: tuple[Outcome, Outcome] | None = None
    is_idle: bool = False
    alike: tuple[tuple[Outcome, Outcome], ...] = ()


def judged(run: RunView, item: Hypothesis) -> Judged:
    """Say what the attempts make of a hypothesis.

    A failure that another combination is known to make does not speak against a prediction that
    something serves: unless the same failure is there with and without it, all else being equal,
    and no such pair shows that it helps.
    """
    tests = [o for o in run.evidence if _is_test(run, o, item)]
    if not tests or not item.verdict:
        return Judged(state="open")
    if _is_idle(run, item, tests):
        return Judged(state="open", is_idle=True)
    agree = tuple(o for o in tests if o.verdict.value == item.verdict)
    missed = [o for o in tests if o.verdict.value != item.verdict]
    reasons = {o.attempt.number: _reason(run, item, o) for o in missed}
    elsewhere = tuple((o, row) for o in missed if (row := reasons[o.attempt.number]))
    disagree = tuple(o for o in missed if reasons[o.attempt.number] is None)
    if disagree:
        return Judged(state="refuted", agree=agree, disagree=disagree, elsewhere=elsewhere)
    shown = _pair(run, item, agree, is_alike=False)
    against = _pair(run, item, missed, is_alike=True)
    if against and not shown:
        others = tuple((o, row) for o, row in elsewhere if o is not against[0])
        return Judged(
            state="refuted", agree=agree, disagree=against[:1], elsewhere=others, pair=against
        )
    alike = tuple((o, other) for o in agree if (other := _same_without(run, item, o)))
    if agree and (shown or len(alike) < len(agree)):
        return Judged(state="supported", agree=agree, elsewhere=elsewhere, pair=shown)
    return Judged(state="open", elsewhere=elsewhere, alike=alike)


def _same_without(run: RunView, item: Hypothesis, outcome: Outcome) -> Outcome | None:
    """Return an attempt that came out alike and lacks only what the hypothesis is about.

    What serves with graphs off and with graphs on says nothing about graphs.
    """
    cells, names = known(run), _names(item)
    here = cells.cell(outcome.attempt.number)
    for other in run.evidence:
        there = cells.cell(other.attempt.number)
        if here is None or there is None or other.verdict is not outcome.verdict:
            continue
        differing = here.difference(there)
        if differing and names.issuperset(differing):
            return other
    return None


def _is_test(run: RunView, outcome: Outcome, item: Hypothesis) -> bool:
    """True if the attempt could show the prediction right or wrong.

    A failure that nobody could name decides nothing: it may be the predicted one. Nor does an
    attempt in which a flag of the prediction selects nothing.
    """
    if any(is_inert(run, outcome, name) for name in _names(item)):
        return False
    is_named = outcome.diagnosis.confidence != "low" and outcome.verdict not in _NO_TEST
    return (is_named or outcome.verdict.value == item.verdict) and all(
        holds(outcome, flag, value) for flag, value in item.when.items()
    )


def _is_idle(run: RunView, item: Hypothesis, tests: list[Outcome]) -> bool:
    """True if what the hypothesis is about acts alike in attempts with and without it."""
    cells, names = known(run), _names(item)
    others = [o for o in run.evidence if o not in tests]
    found = [[cells.cell(o.attempt.number) for o in group] for group in (tests, others)]
    pairs = [(here, there) for here in found[0] for there in found[1] if here and there]
    return bool(pairs) and all(
        not names & set(here.difference(there)) and names <= here.values.keys()
        for here, there in pairs
    )


def _names(item: Hypothesis) -> frozenset[str]:
    return frozenset(key(flag.removeprefix("effective.")) for flag in item.when)


def _reason(run: RunView, item: Hypothesis, outcome: Outcome) -> Combination | None:
    """Return what else makes a failure, where the hypothesis says that something serves."""
    if item.verdict != Verdict.SERVING:
        return None
    return next(
        (
            row
            for row in combinations(run)
            if row.is_named and outcome in row.failing and not row.keys & _names(item)
        ),
        None,
    )


def _pair(
    run: RunView, item: Hypothesis, inside: tuple[Outcome, ...] | list[Outcome], *, is_alike: bool
) -> tuple[Outcome, Outcome] | None:
    """Return attempts that differ only in what the hypothesis is about, the one with it first."""
    cells, names = known(run), _names(item)
    for one in inside:
        for other in run.failing:
            here, there = (cells.cell(o.attempt.number) for o in (one, other))
            if here is None or there is None:
                continue
            differing = here.difference(there)
            if differing and names.issuperset(differing) and _is_same(one, other) is is_alike:
                return one, other
    return None


def _is_same(one: Outcome, other: Outcome) -> bool:
    return (one.verdict, one.diagnosis.cause) == (other.verdict, other.diagnosis.cause)
