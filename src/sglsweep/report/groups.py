"""Failures that have the same cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.report.document import Link
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Attempts that failed with one cause, by number."""

    verdict: Verdict
    cause: str | None
    outcomes: tuple[Outcome, ...]

    @property
    def name(self) -> str:
        """The cause's id, or the verdict where none is known."""
        return self.cause or self.verdict.value

    @property
    def known_issues(self) -> tuple[Link, ...]:
        """Public reports that fit, each once."""
        found: dict[str, Link] = {}
        for outcome in self.outcomes:
            for issue in outcome.diagnosis.known_issues:
                fixed = f" (fixed in {issue.fixed_in})" if issue.fixed_in else ""
                found.setdefault(issue.url, Link(f"{issue.title}{fixed}", issue.url))
        return tuple(found.values())


def groups(run: RunView) -> tuple[Group, ...]:
    """Return the failures by cause: the most frequent first, then the earlier."""
    return _grouped(run.failing)


def killed(run: RunView) -> tuple[Group, ...]:
    """Return attempts that something outside ended, by cause; they say nothing about flags.

    A server that found its port or its card's memory in somebody else's hands is one of them.
    """
    return _grouped(
        tuple(o for o in run.outcomes if o.verdict is Verdict.KILLED or o.is_from_outside)
    )


def group_of(run: RunView, outcome: Outcome) -> Group | None:
    """Return the group an outcome belongs to."""
    return next((g for g in groups(run) if outcome in g.outcomes), None)


def _grouped(outcomes: tuple[Outcome, ...]) -> tuple[Group, ...]:
    found: dict[tuple[Verdict, str | None], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.verdict, outcome.diagnosis.cause), []).append(outcome)
    result = [
        Group(verdict=verdict, cause=cause, outcomes=tuple(members))
        for (verdict, cause), members in found.items()
    ]
    return tuple(sorted(result, key=lambda g: (-len(g.outcomes), g.outcomes[0].attempt.number)))
