"""What the catalogue knows, as frozen types."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Blame, KnownIssue
    from sglsweep.matrix import Value
    from sglsweep.verdict import Phase, Verdict


class Role(StrEnum):
    """What a line that matches means for the diagnosis."""

    CAUSE = "cause"
    CASCADE = "cascade"
    ADVICE = "advice"
    HARMLESS = "harmless"


class Site(StrEnum):
    """Where in a log a signature is looked for."""

    LINE = "line"
    """Any line that holds one of the literals."""
    EXCEPTION = "exception"
    """The line that ends a traceback; literals are optional."""


class Tier(StrEnum):
    """How close to the root a signature is; decides within one event, before time does."""

    ROOT = "root"
    """The thing itself: a device assertion's text, the compiler's own complaint."""
    PLAIN = "plain"
    """An error that says what went wrong."""
    SYMPTOM = "symptom"
    """An error that another one usually explains."""
    TRACE = "trace"
    """Only what dead processes leave behind: an exit code, a bare "Killed"."""

    @property
    def order(self) -> int:
        """0 for the root."""
        return list(Tier).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One entry of the catalogue.

    Attributes:
        literals: one of them stands in every line that the pattern can match.
        pattern: regular expression, searched in the line's text without prefixes.
        unless: a line that matches this as well is not one.
        phases: phases in which it holds; empty = all.
        frames: regular expression on the traceback's frames, `path:function` joined by newlines.
        or_frames: the same; where it matches, `phases` and `frames` need not hold.
        or_pattern: searched in the line's text; where it matches, nothing else needs to hold.
        when: effective flag -> regular expression that its value must match (`model` is the
            architecture or path, `version` SGLang's).
        refines: causes that become this one where `when` holds.
        is_fatal: seen once, the server cannot live, whatever is printed afterwards.
        next_step: by phase; the key "" is the answer for all others, a key `~REGEX` the answer
            for evidence that it matches. `{name}` is a named group of `pattern` or of that key.
        remedy: changes that are known to help, `env.NAME` or flag -> value; None removes a flag.
        explained_by: ids whose earlier line is the better evidence.
    """

    id: str
    title: str
    role: Role
    verdict: Verdict | None = None
    site: Site = Site.LINE
    tier: Tier = Tier.PLAIN
    literals: tuple[str, ...] = ()
    pattern: str = ""
    unless: str = ""
    phases: tuple[Phase, ...] = ()
    frames: str = ""
    or_frames: str = ""
    or_pattern: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    refines: tuple[str, ...] = ()
    is_fatal: bool = False
    blames: tuple[Blame, ...] = ()
    next_step: Mapping[str, str] = field(default_factory=dict)
    remedy: Mapping[str, Value] = field(default_factory=dict)
    explained_by: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    why: str = ""
    source: str = ""
    samples: tuple[str, ...] = ()

    def step_for(self, phase: Phase | None, text: str = "") -> str:
        """What to do next when it struck in `phase`, with `text` as its evidence."""
        groups = self.groups(text)
        for key, step in self.next_step.items():
            if key.startswith("~") and (match := compiled(key[1:]).search(text)):
                return _filled(step, groups | match.groupdict())
        return _filled(self.next_step.get(phase or "", self.next_step.get("", "")), groups)

    def groups(self, text: str) -> dict[str, str | None]:
        """Return the named groups of `pattern` and `or_pattern` in `text`."""
        found: dict[str, str | None] = {}
        for pattern in filter(None, (self.pattern, self.or_pattern)):
            if match := compiled(pattern).search(text):
                found |= match.groupdict()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueRule:
    """A public report and the condition under which it holds for a log.

    Attributes:
        causes: ids of signatures; one of them must be the cause.
        when: as in `Signature.when`.
        evidence: regular expression on the evidence line; empty = any.
    """

    id: str
    issue: KnownIssue
    causes: tuple[str, ...]
    when: Mapping[str, str] = field(default_factory=dict)
    evidence: str = ""
    remedy: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """All signatures and known issues; compared by identity, so that it can be a cache's key.

    Attributes:
        version: edition and a hash of the content.
    """

    version: str
    signatures: Mapping[str, Signature]
    issues: tuple[IssueRule, ...] = ()


def _filled(step: str, groups: Mapping[str, str | None]) -> str:
    return re.sub(r"\{(\w+)\}", lambda hole: groups.get(hole[1]) or "?", step)


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; most of the catalogue is never needed for one log."""
    return re.compile(pattern)
