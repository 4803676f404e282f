"""Where a sweep stands, in a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.plan.spent import spent_s
from sglsweep.report.best import best_serving
from sglsweep.report.blamed import combinations
from sglsweep.report.document import Line, clean, joined, plain
from sglsweep.report.numbers import duration, listed, plural
from sglsweep.report.outlook import forecast_words, helps
from sglsweep.report.tell import status_words, values_json, what
from sglsweep.report.times import times_json, times_sentence
from sglsweep.report.words import cell_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.report.view import RunView

_LAST_SHOWN = 5
_BLAMED_SHOWN = 3
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An attempt that was begun and not closed, as far as its stored log tells.

    Attributes:
        phase: "" where there is no log yet.
        quiet_s: seconds since its log last grew.
    """

    attempt: Attempt
    phase: str = ""
    elapsed_s: float | None = None
    quiet_s: float | None = None


def status_text(run: RunView, running: Sequence[Running], *, holder: str) -> str:
    """Return the lines to print; `holder` is who writes to the run now, "" for nobody."""
    best = best_serving(run)
    lines = [
        f"{run.run}: {plural(len(run.outcomes), 'attempt')} finished"
        + (f", {_spent(run)}" if run.outcomes else ""),
        f"serving: {_serving(run)}" if best else "serving: nothing yet",
        *(_running_line(one, holder) for one in running),
        *(f"  {_last(outcome)}" for outcome in run.outcomes[-_LAST_SHOWN:]),
        *_blamed(run),
        *_budget_lines(run),
        *_forecast_lines(run),
        *_time_lines(run),
        f"ended: {run.finish}" if run.finish and not running else "",
        f"written by {holder}" if holder else "",
        ""
        if holder or run.finish
        else "not running: the same `sglsweep sweep` command resumes it",
    ]
    return "".join(f"{clean(line)}\n" for line in lines if line)


def _spent(run: RunView) -> str:
    return duration(spent_s(run.outcomes))


def _serving(run: RunView) -> str:
    best = best_serving(run)
    numbers = ", ".join(str(o.attempt.number) for o in run.serving)
    word = f"; best {best.attempt.number}" if best and len(run.serving) > 1 else ""
    return f"attempt {numbers}{word} (sglsweep report {run.run})"


def _running_line(one: Running, holder: str) -> str:
    words: list[Line] = [(f"in {one.phase}",)] if one.phase else [("no log yet",)]
    if one.elapsed_s is not None:
        words.append((f"since {duration(one.elapsed_s)}",))
    if one.quiet_s is not None:
        words.append((f"log quiet for {duration(one.quiet_s)}",))
    state = "running" if holder else "left open, to be taken over"
    head = f"attempt {one.attempt.number} {state}: {plain(cell_words(one.attempt.cell))}"
    return f"{head} ({plain(joined(words))})"


def _last(outcome: Outcome) -> str:
    cause = f" ({outcome.diagnosis.cause})" if outcome.diagnosis.cause else ""
    spent = duration(outcome.timings.total_s)
    return f"{outcome.attempt.number:>4} {outcome.verdict.value}{cause}, {spent}"


def _blamed(run: RunView) -> list[str]:
    """Name what is known to fail, or likelier than all else; what is proven first."""
    rows = [row for row in combinations(run) if row.is_named]
    return [
        f"blamed: {plain(what(row))}, {status_words(row)} ({row.cause} in "
        f"{listed([o.attempt.number for o in row.failing])})"
        for row in rows[:_BLAMED_SHOWN]
    ]


def _forecast_lines(run: RunView) -> list[str]:
    words = forecast_words(run)
    outside = [item.why for item in helps(run)] if words else []
    return [
        *([f"forecast: {words}"] if words else []),
        *([f"outside the matrix: {outside[0]}"] if outside else []),
    ]


def _time_lines(run: RunView) -> list[str]:
    sentence = times_sentence(run.outcomes)
    return [f"time: {sentence}"] if sentence else []


def _budget_lines(run: RunView) -> list[str]:
    left = budget_left(run)
    words = [
        plural(int(left["attempts"]), "attempt") if "attempts" in left else "",
        duration(left["hours"] * _SECONDS_PER_HOUR) if "hours" in left else "",
    ]
    said = " or ".join(word for word in words if word)
    return [f"budget left: {said}"] if said else []


def budget_left(run: RunView) -> Mapping[str, float]:
    """Return what is left of the budget by what it limits; never below 0."""
    spent = {
        "attempts": float(len(run.outcomes)),
        "hours": spent_s(run.outcomes) / _SECONDS_PER_HOUR,
    }
    return {
        name: round(max(0.0, limit - spent[name]), 3)
        for name in spent
        if isinstance(limit := run.budget.get(name), int | float) and not isinstance(limit, bool)
    }


def status_json(run: RunView, running: Sequence[Running], *, holder: str) -> dict[str, object]:
    """Return the same as data."""
    verdicts = [o.verdict.value for o in run.outcomes]
    best = best_serving(run)
    return {
        "schema": 1,
        "run": run.run,
        "name": run.name,
        "finished": len(run.outcomes),
        "verdicts": {word: verdicts.count(word) for word in dict.fromkeys(verdicts)},
        "serving": [o.attempt.number for o in run.serving],
        "best": best.attempt.number if best else None,
        "running": [
            {
                "number": one.attempt.number,
                "cell": dict(one.attempt.cell.values),
                "phase": one.phase or None,
                "elapsed_s": one.elapsed_s,
                "quiet_s": one.quiet_s,
            }
            for one in running
        ],
        "last": [
            {
                "number": o.attempt.number,
                "verdict": o.verdict.value,
                "cause": o.diagnosis.cause,
                "phase": o.diagnosis.phase.value,
                "total_s": o.timings.total_s,
            }
            for o in run.outcomes[-_LAST_SHOWN:]
        ],
        "blame": [
            {
                "values": values_json(row.values),
                "cause": row.cause,
                "status": row.status.value,
                "chance": None if row.chance is None else round(row.chance, 3),
                "attempts_for": [o.attempt.number for o in row.failing],
            }
            for row in combinations(run)
        ],
        "budget_left": dict(budget_left(run)),
        "forecast": dict(run.forecast) or None,
        "times": {k: v for k, v in times_json(run.outcomes).items() if k != "attempts"},
        "written_by": holder or None,
        "finish": run.finish or None,
    }
