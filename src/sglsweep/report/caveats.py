"""What to know before relying on a server that passed its proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.attempt import StepState
from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.plan.memory import FRACTION, MARGIN_GB
from sglsweep.report.best import holds_need, needed_tokens
from sglsweep.report.document import Code, Line, Strong, joined, one_line, prose
from sglsweep.report.launches import flags_of
from sglsweep.report.memory import headroom
from sglsweep.report.numbers import CONTEXT, KV_TOKENS, MAX_RUNNING, count, listed, metric
from sglsweep.report.quality import warning
from sglsweep.report.same_model import same_model
from sglsweep.report.words import flaky, warnings

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome, ProofStep, Scalar
    from sglsweep.report.view import RunView

_SUSPECTS_SHOWN = 4
_STEPS_SHOWN = 4


def caveats(run: RunView, outcome: Outcome) -> list[Line]:
    """Return what the proof did not test, what is odd, what was overridden."""
    lines = [
        _answers(run, outcome),
        flaky(run, outcome),
        _once(run, outcome),
        _weights(outcome),
        *same_model(outcome),
        _beside(run, outcome),
        _room(run, outcome),
        *_steps(outcome),
        _redirected(outcome),
        *_suspects(outcome),
        _headroom(run, outcome),
    ]
    return [line for line in lines if line]


def _answers(run: RunView, outcome: Outcome) -> Line:
    said = warning(run, outcome)
    return (Strong("Not the same model"), f" by its answers: {said}.") if said else ()


def _once(run: RunView, outcome: Outcome) -> Line:
    if len(run.repeats(outcome)) > 1:
        return ()
    again = f"sglsweep relaunch {run.run} {outcome.attempt.number}"
    return ("Launched once; ", Code(again), " repeats it.")


def _weights(outcome: Outcome) -> Line:
    if _effective(outcome).get("load-format") != "dummy":
        return ()
    return (
        Strong("Random weights"),
        " (load-format dummy): the answers mean nothing, only that it computes.",
    )


def _beside(run: RunView, outcome: Outcome) -> Line:
    """Say in whose neighbourhood its figures were taken."""
    beside, sharing = outcome.end.beside, outcome.end.sharing
    if not beside:
        return ()
    others = sharing or beside
    which = f"attempt{'s' if len(others) > 1 else ''} {listed(list(others))}"
    if sharing:
        said = (
            f"beside {which} with memory in common: its speed and free memory are what they left"
        )
    elif outcome.attempt.gpus:
        said = f"beside {which} on other GPUs: its speed may suffer from that"
    else:
        said = f"beside {which} on the same host: its speed may suffer from that"
    again = f"sglsweep relaunch {run.run} {outcome.attempt.number}"
    return (Strong("Not alone"), f": it ran {said}; ", Code(again), " measures it alone.")


def _room(run: RunView, outcome: Outcome) -> Line:
    tokens = metric(outcome, KV_TOKENS)
    if tokens is None:
        return ()
    needed = needed_tokens(run)
    if needed is not None:
        return _against_need(run, outcome, tokens, needed)
    context = metric(outcome, CONTEXT)
    if not context:
        return (f"Room: {count(tokens)} KV tokens.",)
    running = metric(outcome, MAX_RUNNING)
    shared = f"; {count(tokens / running)} each at {count(running)} at once" if running else ""
    return (
        f"Room: {count(tokens)} KV tokens = {tokens / context:.1f} requests of the full "
        f"{count(context)} tokens of context{shared}.",
    )


def _headroom(run: RunView, outcome: Outcome) -> Line:
    """Say what a larger fraction would hold; not of figures that others had a part in."""
    found = None if outcome.end.sharing else headroom(run.outcomes, outcome)
    if found is None:
        return ()
    fraction, tokens = found
    return (
        "Not launched: by arithmetic ",
        Code(f"--{FRACTION} {fraction:g}"),
        f" holds {count(tokens)} KV tokens and leaves {MARGIN_GB:g} GB after capture or more.",
    )


def _against_need(run: RunView, outcome: Outcome, tokens: float, needed: int) -> Line:
    context, at_once = run.need["context"], run.need.get("concurrent", 1)
    need = f"your need {at_once} x {count(context)} = {count(needed)}"
    if holds_need(run, outcome):
        return (f"Room: {count(tokens)} KV tokens hold {need}.",)
    return (
        Strong("Too small"),
        f": {count(tokens)} KV tokens, {need}; {tokens / context:.1f} requests fit.",
    )


def _steps(outcome: Outcome) -> list[Line]:
    proof = outcome.proof
    if proof is None:
        return [(Strong("Not proven"), ": no request was sent to it.")]
    states = (
        (StepState.SUSPECT, "Suspect answer"),
        (StepState.NOT_RUN, "Not tested"),
        (StepState.NOT_APPLICABLE, "Not tested"),
    )
    return [
        (f"{title}: ", *_listed_steps([s for s in proof.steps if s.state is state]), ".")
        for state, title in states
        if any(s.state is state for s in proof.steps)
    ]


def _listed_steps(steps: list[ProofStep]) -> Line:
    shown: list[Line] = [_step(step) for step in steps[:_STEPS_SHOWN]]
    if len(steps) > _STEPS_SHOWN:
        rest = ", ".join(step.name for step in steps[_STEPS_SHOWN:])
        shown.append((f"likewise {rest}",))
    return joined(shown, "; ")


def _step(step: ProofStep) -> Line:
    detail = prose(step.detail.rstrip("."), limit=160)
    return (f"{step.name}: ", *detail) if detail else (step.name,)


def _redirected(outcome: Outcome) -> Line:
    """Name flags that were asked for and came out otherwise."""
    effective = _effective(outcome)
    asked = {canonical(k): (k, v) for k, v in flags_of(outcome.attempt.argv).items()}
    parts: list[Line] = [
        (Code(f"--{name} {value}"), " became ", Code(_word(effective[key])))
        for key, (name, value) in asked.items()
        if value and key in effective and not _is_same(key, value, effective[key])
    ]
    if not parts:
        return ()
    return (Strong("SGLang overrode"), ": ", *joined(parts, "; "), ".")


def _effective(outcome: Outcome) -> dict[str, Scalar]:
    return {
        canonical(name.replace("_", "-")): value
        for name, value in outcome.diagnosis.effective.items()
    }


def _word(value: Scalar) -> str:
    return "null" if value is None else str(value)


def _is_same(flag: str, asked: str, got: Scalar) -> bool:
    if isinstance(got, bool) or got is None:
        return asked.lower() == _word(got).lower()
    if isinstance(got, int | float):
        try:
            return float(asked) == float(got)
        except ValueError:
            return False
    return got.strip() in {asked.strip(), *same_values(flag, asked.strip())}


def _suspects(outcome: Outcome) -> list[Line]:
    found = warnings(outcome)
    lines: list[Line] = [
        (
            f"Warning {s.id} ",
            Code(f"attempts/{outcome.attempt.number:04d}/log:{s.line}"),
            " ",
            Code(one_line(s.text, limit=160)),
        )
        for s in found[:_SUSPECTS_SHOWN]
    ]
    rest = len(found) - _SUSPECTS_SHOWN
    return [*lines, (f"{rest} more warnings in its log.",)] if rest > 0 else lines
