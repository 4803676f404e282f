"""Which of a log's events is the cause: earliest in time, closest to the root, never a cascade."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.catalogue.signature import Role, Tier
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.triage.events import Event
    from sglsweep.triage.reading import Reading

WINDOW_S = 10
"""Events of all ranks this close to the first one are one failure."""
WINDOW_LINES = 400
"""The same for lines without a time stamp."""

_CLOCK = re.compile(r"(?:(\d{4})-)?(?:(\d\d)-(\d\d) )?(\d\d):(\d\d):(\d\d)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event with the reason why it was not taken; empty for the one that was."""

    event: Event
    lost: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The event that explains a log, and what was held against it.

    Attributes:
        cause: None where nothing failed.
        first_fatal: the first event after which no server lives.
    """

    cause: Event | None
    candidates: tuple[Candidate, ...]
    first_fatal: Event | None


def choose(reading: Reading) -> Choice:
    """Choose the cause among what was read."""
    stop = _orderly_stop(reading)
    lost: list[Candidate] = []
    causes: list[Event] = []
    cascades: list[Event] = []
    for event in reading.events:
        if stop and event.piece.line > stop:
            lost.append(Candidate(event, f"stands after the orderly stop in line {stop}"))
        elif _is_cascade(event):
            cascades.append(event)
        else:
            causes.append(event)
    ends = [e for e in causes if e.is_fatal] + cascades
    alive = [e for e in causes if e.is_fatal or not _survived(e, reading, ends)]
    lost += [Candidate(e, "the server went on after it") for e in causes if e not in alive]
    fatal = [e for e in alive if e.is_fatal]
    anchor = _first(fatal) or _before_cascade(alive, cascades)
    if anchor is None:
        return Choice(_first(cascades), tuple(lost), _first(cascades))
    group = [e for e in alive if is_one_event(e, anchor)]
    verdicts = {verdict_of(e) for e in group if e.is_fatal}
    cause = min(group, key=lambda e: _rank_of(e, anchor, verdicts))
    lost += [Candidate(e, _why_not(e, cause)) for e in alive if e is not cause]
    lost += [Candidate(e, "only says that another process died") for e in cascades]
    return Choice(cause, tuple(lost), anchor)


def _orderly_stop(reading: Reading) -> int:
    """Line of a SIGTERM that ended a server which was ready; 0 without one."""
    progress = reading.progress
    is_up = progress.ready_line or progress.has_answer or progress.first_decode
    return reading.stop_line if is_up else 0


def _is_cascade(event: Event) -> bool:
    return event.signature is not None and event.signature.role is Role.CASCADE


def _survived(event: Event, reading: Reading, ends: Sequence[Event]) -> bool:
    """Say whether the launch went on after an event that need not be fatal."""
    line, progress = event.piece.line, reading.progress
    later = [end for end in ends if end.piece.line >= line]
    if any(is_one_event(end, event) for end in later):
        return False
    went_on = max(progress.last_request, progress.ready_line, progress.last_advance)
    if verdict_of(event) is Verdict.HANG:
        went_on = max(went_on, progress.last_health)
    return bool(later) or went_on > line


def _first(events: Sequence[Event]) -> Event | None:
    """Earliest by time stamp where both have one, else by place in the file."""
    best: Event | None = None
    for event in events:
        if best is None or _is_earlier(event, best):
            best = event
    return best


def _is_earlier(event: Event, best: Event) -> bool:
    if event.stamp and best.stamp and len(event.stamp) == len(best.stamp):
        return event.stamp < best.stamp
    return False


def _before_cascade(alive: Sequence[Event], cascades: Sequence[Event]) -> Event | None:
    """Return, without a fatal cause, what stands close to the first sign of a death."""
    sign = _first(cascades)
    if sign is None:
        return _first(alive)
    return _first([e for e in alive if is_one_event(e, sign)])


def is_one_event(event: Event, anchor: Event) -> bool:
    """Say whether two events are one failure: one traceback, or close in time."""
    if event.trace is not None and event.trace is anchor.trace:
        return True
    distance = _seconds(event.stamp), _seconds(anchor.stamp)
    if (
        distance[0] is not None
        and distance[1] is not None
        and event.stamp
        and anchor.stamp
        and len(event.stamp) == len(anchor.stamp)
    ):
        return abs(distance[0] - distance[1]) <= WINDOW_S
    return abs(event.piece.line - anchor.piece.line) <= WINDOW_LINES


def _seconds(stamp: str | None) -> float | None:
    match = _CLOCK.search(stamp) if stamp else None
    if not match:
        return None
    year, month, day, hour, minute, second = (int(g or 0) for g in match.groups())
    days = (year * 12 + month) * 31 + day
    return days * 86400 + hour * 3600 + minute * 60 + second


def _rank_of(
    event: Event, anchor: Event, verdicts: set[Verdict]
) -> tuple[int, bool, bool, int, int]:
    """Order: closest to the root; raised, not only logged; earliest; innermost; first."""
    is_aside = bool(verdicts) and not event.is_fatal and verdict_of(event) not in verdicts
    section = event.section if event.trace else 0
    return tier_of(event).order, is_aside, _is_later(event, anchor), section, event.piece.line


def verdict_of(event: Event) -> Verdict:
    """Return what an event makes of a launch; an exception that no signature knows is a crash."""
    if event.signature is None or event.signature.verdict is None:
        return Verdict.CRASH
    return event.signature.verdict


def _is_later(event: Event, anchor: Event) -> bool:
    if event.stamp and anchor.stamp and len(event.stamp) == len(anchor.stamp):
        return event.stamp > anchor.stamp
    return False


def tier_of(event: Event) -> Tier:
    """How close to the root an event is; an exception that no signature knows is a symptom."""
    return event.signature.tier if event.signature else Tier.SYMPTOM


def _why_not(event: Event, cause: Event) -> str:
    if not is_one_event(event, cause):
        return "stands apart from the first failure"
    if tier_of(event).order > tier_of(cause).order:
        return "is explained by the cause"
    if _is_later(event, cause) or event.piece.line > cause.piece.line:
        return "came later"
    return "is less specific"


def explains(event: Event, reading: Reading) -> Event | None:
    """Return the earlier warning whose consequence `event` is, where one names the same thing."""
    if event.signature is None or "import-ignored" not in event.signature.explained_by:
        return None
    words = {_letters(w) for w in re.findall(r"\w{4,}", event.piece.text)}
    for ignored in reversed(reading.ignored_imports):
        match = re.search(r"when loading \S*?(\w+)[:.]? ", ignored.piece.text)
        name = _letters(match[1]) if match else ""
        if len(name) > 3 and any(word.startswith(name) for word in words):  # noqa: PLR2004 - shorter names mean nothing
            return ignored
    return None


def _letters(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
