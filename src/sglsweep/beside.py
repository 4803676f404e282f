"""Which attempts of a run were on the host at once, and which life signs are an attempt's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglsweep.report.rehearsal import is_rehearsal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sglsweep.attempt import Attempt, End
    from sglsweep.journal import Journal
    from sglsweep.keeper_files import Life


def with_neighbours(
    end: End, journal: Journal, attempt: Attempt, facts: Mapping[str, object]
) -> End:
    """Write into an end which other attempts ran while this one did, by the run's records.

    By the records and not by what a process remembers: after a kill -9 they are all there is.
    """
    others = sorted(_neighbours(journal, attempt), key=lambda other: other.number)
    return replace(
        end,
        beside=tuple(other.number for other in others),
        sharing=tuple(o.number for o in others if _shares_memory(attempt, o, facts)),
    )


def own_signs(life: Life, *, shares_gpus: bool) -> Life:
    """Return life signs without those of the whole machine, which neighbours give as well.

    With neighbours on the same cards the cards' figures say nothing of this attempt either; that
    there are cards stays known.
    """
    own = replace(life, net_rx_bytes=0, page_cache_bytes=0)
    if not shares_gpus:
        return own
    unmoved = tuple(0 for _ in own.gpu_used_mib)
    return replace(own, gpu_used_mib=unmoved, gpu_util=(), gpu_power_w=())


def _neighbours(journal: Journal, attempt: Attempt) -> Iterable[Attempt]:
    for outcome in (*journal.history(), *journal.stopping_outcomes()):
        # Stamps are whole seconds: the attempt before this one may have ended within its first.
        if outcome.attempt.number != attempt.number and outcome.ended_at > attempt.started_at:
            yield outcome.attempt
    for other in journal.open_attempts():
        if other.number != attempt.number:
            yield other


def _shares_memory(one: Attempt, other: Attempt, facts: Mapping[str, object]) -> bool:
    """Tell whether two attempts had memory in common: of a card, or of a host without any."""
    if one.gpus and other.gpus:
        return not set(one.gpus).isdisjoint(other.gpus)
    is_made_up = is_rehearsal(one) or is_rehearsal(other)
    return not (is_made_up and not facts.get("gpus"))
