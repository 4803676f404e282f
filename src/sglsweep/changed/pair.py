"""Which two launches are compared: one that served, and one that failed later, or now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.changed.compare import differences, unknown
from sglsweep.changed.difference import Difference, Kind
from sglsweep.errors import ConfigError
from sglsweep.report.launches import changes, distance, setting_text
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.changed.difference import Facts
    from sglsweep.report.launches import Change

_RESTLESS = frozenset({"random_seed", "nccl_port", "port", "host", "dist_init_addr"})
_MOST_RESOLVED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An attempt that served, and what came later.

    Attributes:
        failed: the failing attempt whose cause helps to rank; None where nothing failed since.
        facts: of the host at the later time.
        is_now: the facts are today's, not an attempt's.
    """

    served: Outcome
    failed: Outcome | None
    facts: Facts
    is_now: bool

    @property
    def is_same_launch(self) -> bool:
        """True if the two attempts launched the same thing."""
        return (
            self.failed is None or self.served.attempt.launch_key == self.failed.attempt.launch_key
        )

    @property
    def is_same_asking(self) -> bool:
        """True if the host was asked only once, before both attempts."""
        return not self.is_now and self.served.facts == self.facts

    def differences(self) -> list[Difference]:
        """Return what is not as it was: of the host, and of the launch where both are known."""
        attempt = self.served.attempt
        found = differences(
            self.served.facts, self.facts, build=attempt.build, model=attempt.model
        )
        if self.failed is None:
            return found
        return [*_launch(self.served, self.failed), *_resolved(self), *found]

    def unknown(self) -> list[str]:
        """Return what could not be compared."""
        attempt = self.served.attempt
        return unknown(self.served.facts, self.facts, build=attempt.build, model=attempt.model)


def pair_of(history: Sequence[Outcome], number: int) -> Pair | None:
    """Return attempt N beside the last that served before it; None where none serves.

    Raises:
        ConfigError: N does not exist, serves, or says nothing.
    """
    failed = next((o for o in history if o.attempt.number == number), None)
    if failed is None:
        known = ", ".join(str(o.attempt.number) for o in history) or "none"
        raise ConfigError(
            f"no finished attempt {number} in this run", next_step=f"Finished attempts: {known}."
        )
    if failed.verdict is Verdict.SERVING:
        raise ConfigError(
            f"attempt {number} serves: there is nothing to explain",
            next_step="Give the number of the failing attempt, or none to compare with today.",
        )
    served = _last_served(history, failed)
    if served is None:
        return None
    return Pair(served=served, failed=failed, facts=failed.facts, is_now=False)


def pair_now(history: Sequence[Outcome], served: Outcome, facts: Facts) -> Pair:
    """Return a serving attempt beside the host as it is now, and the same launch's failure."""
    later = [
        o
        for o in history
        if o.attempt.number > served.attempt.number
        and o.attempt.launch_key == served.attempt.launch_key
        and o.verdict.is_evidence
        and o.verdict is not Verdict.SERVING
    ]
    return Pair(served=served, failed=later[-1] if later else None, facts=facts, is_now=True)


def _last_served(history: Sequence[Outcome], failed: Outcome) -> Outcome | None:
    """Return the last serving attempt of the same launch, else of the one nearest to it."""
    serving = [o for o in history if o.verdict is Verdict.SERVING]
    earlier = [o for o in serving if o.attempt.number < failed.attempt.number] or serving
    if not earlier:
        return None
    return min(
        earlier,
        key=lambda o: (
            o.attempt.launch_key != failed.attempt.launch_key,
            distance(o, failed),
            -o.attempt.number,
        ),
    )


def _launch(served: Outcome, failed: Outcome) -> Iterator[Difference]:
    if served.attempt.python != failed.attempt.python:
        old, new = served.attempt.python, failed.attempt.python
        sentence = f"launched by {new}, was {old}"
        yield Difference(
            kind=Kind.LAUNCH, name="interpreter", before=old, after=new, sentence=sentence
        )
    for change in changes(served, failed):
        if not change.is_of_host:
            yield Difference(
                kind=Kind.LAUNCH,
                name=change.name,
                before=change.before,
                after=change.after,
                sentence=f"launched {_words(change)}",
            )


def _words(change: Change) -> str:
    if change.after is None:
        return f"without {setting_text(change.name, change.before)}"
    was = "was not passed" if change.before is None else f"was {change.before or 'bare'}"
    return f"with {setting_text(change.name, change.after)}, {was}"


def _resolved(pair: Pair) -> list[Difference]:
    """Return what SGLang itself resolved otherwise in the same launch."""
    if pair.failed is None or not pair.is_same_launch:
        return []
    old, new = pair.served.diagnosis.effective, pair.failed.diagnosis.effective
    names = sorted((set(old) & set(new)) - _RESTLESS)
    found = [
        Difference(
            kind=Kind.RESOLVED,
            name=name,
            before=str(old[name]),
            after=str(new[name]),
            sentence=f"SGLang resolves {name} to {new[name]}, was {old[name]}",
        )
        for name in names
        if old[name] != new[name]
    ]
    return found[:_MOST_RESOLVED]
