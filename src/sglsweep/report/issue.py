"""A bug report for one attempt, ready to paste upstream; private details are placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sglsweep.anonymous import Private, anonymize
from sglsweep.errors import ConfigError
from sglsweep.flags import canonical
from sglsweep.report.blamed import combinations_of
from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Listing,
    Paragraph,
    Strong,
    clean,
    one_line,
)
from sglsweep.report.groups import group_of
from sglsweep.report.launches import changes, settings
from sglsweep.report.machine import gpu_words, version_words
from sglsweep.report.markdown import to_markdown
from sglsweep.report.numbers import listed
from sglsweep.report.rehearsal import sglang_command
from sglsweep.report.words import changed
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.report.view import RunView

_BEFORE, _AFTER = 4, 6
_TRACE_SEARCH = 400
_NEAR = 3
_TRACE_HEAD, _TRACE_TAIL = 12, 40


def issue(run: RunView, number: int, log: bytes) -> str:
    """Return the report in Markdown.

    Raises:
        ConfigError: no finished attempt has that number.
    """
    outcome = run.outcome(number)
    if outcome is None:
        known = listed([o.attempt.number for o in run.outcomes]) or "none"
        raise ConfigError(
            f"{run.run}: no finished attempt {number}",
            next_step=f"Finished attempts: {known}.",
        )
    lines = _lines(log)
    blocks: list[Block] = [
        *_head(run, outcome),
        *_environment(run, outcome),
        Heading(2, ("To reproduce",)),
        Listing(sglang_command(outcome.attempt), "bash"),
        *_effective(outcome),
        *_log(outcome, lines),
        *_tried(run, outcome),
    ]
    text, _ = anonymize(to_markdown(blocks), _private(outcome))
    return text


def _lines(log: bytes) -> list[str]:
    # A line ends at a newline alone: a progress bar and what is glued to it count as one.
    text = log.decode("utf-8", "replace")
    return [line.rsplit("\r", 1)[-1] if "\r" in line else line for line in text.split("\n")]


def _head(run: RunView, outcome: Outcome) -> list[Block]:
    diagnosis = outcome.diagnosis
    title = one_line(diagnosis.evidence, limit=90) or diagnosis.cause or diagnosis.verdict.value
    group = group_of(run, outcome)
    known: list[Line] = [("Possibly known: ", i) for i in (group.known_issues if group else ())]
    made_up: list[Block] = [Paragraph((Strong("Rehearsal"), ": made up, nothing to report."))]
    blocks: list[Block] = [
        *(made_up if run.world else []),
        Heading(1, (f"[{outcome.attempt.model}] {title}",)),
        Paragraph(
            (
                f"The server reaches the phase {diagnosis.phase.value}, then: ",
                Code(one_line(diagnosis.evidence) or outcome.end.detail or "no line says why"),
                f". Classified as {diagnosis.verdict.value} ({diagnosis.cause or 'no cause known'}"
                f"{f', {diagnosis.rank}' if diagnosis.rank else ''}).",
            )
        ),
    ]
    return [*blocks, Bullets(tuple(known))] if known else blocks


def _environment(run: RunView, outcome: Outcome) -> list[Block]:
    facts = outcome.facts or run.facts
    lines: list[Line] = []
    if outcome.diagnosis.sglang_version:
        lines.append((f"SGLang {outcome.diagnosis.sglang_version}",))
    lines += [line for line in (gpu_words(facts),) if line]
    lines += [(line,) for line in version_words(facts, outcome.attempt.build)]
    lines.append((f"Exit status {outcome.end.exit_status}, ended by {outcome.end.kind.value}",))
    return [Heading(2, ("Environment",)), Bullets(tuple(lines))]


def _effective(outcome: Outcome) -> list[Block]:
    """Show what SGLang made of the flags that were passed, and the backends that it chose."""
    passed = {canonical(name) for name in settings(outcome.attempt)}
    rows = {
        name: value
        for name, value in sorted(outcome.diagnosis.effective.items())
        if value is not None
        and (canonical(name.replace("_", "-")) in passed or name.endswith(("backend", "dtype")))
    }
    if not rows:
        return []
    text = "\n".join(f"{name} = {value}" for name, value in rows.items())
    return [Heading(2, ("Effective configuration",)), Listing(text)]


def _log(outcome: Outcome, lines: list[str]) -> list[Block]:
    number = outcome.diagnosis.line
    if number is None or not 0 < number <= len(lines):
        return []
    blocks: list[Block] = [Heading(2, (f"Log, around line {number}",))]
    first, last = max(0, number - 1 - _BEFORE), number + _AFTER
    blocks.append(Listing("\n".join(_cut(line) for line in lines[first:last])))
    trace = _traceback(lines, number - 1)
    if len(trace) > _BEFORE + 2:
        blocks += [Heading(2, ("Traceback",)), Listing("\n".join(_cut(line) for line in trace))]
    return blocks


def _cut(line: str) -> str:
    return one_line(line, limit=400) if len(line) > 400 else clean(line)  # noqa: PLR2004 - as cut


def _traceback(lines: list[str], index: int) -> list[str]:
    """Return from the nearest traceback's head above the evidence down to it."""
    for start in range(index, max(-1, index - _TRACE_SEARCH), -1):
        if "Traceback (most recent call last)" in lines[start]:
            found = lines[start : index + 1]
            break
    else:
        return []
    if len(found) <= _TRACE_HEAD + _TRACE_TAIL:
        return found
    left_out = len(found) - _TRACE_HEAD - _TRACE_TAIL
    return [*found[:_TRACE_HEAD], f"... {left_out} lines ...", *found[-_TRACE_TAIL:]]


def _tried(run: RunView, outcome: Outcome) -> list[Block]:
    """Say what other launches came to, in words that need none of our attempt numbers."""
    lines = [*_isolated(run, outcome), *_near(outcome, run.evidence)]
    return [Heading(2, ("What was tried",)), Bullets(tuple(lines))] if lines else []


def _isolated(run: RunView, outcome: Outcome) -> list[Line]:
    group = group_of(run, outcome)
    return [
        (
            Strong("Isolated"),
            ": two launches that differ only in ",
            *changed(row.telling(pair)),
            "; the first fails like this, the second serves",
        )
        for row in (combinations_of(run, group) if group else ())
        if row.is_proven
        for pair in row.proofs
    ]


def _near(outcome: Outcome, others: Sequence[Outcome]) -> list[Line]:
    """Return what launches came to that differ in little from the one reported."""
    lines: list[Line] = []
    for other in others:
        made = changes(outcome, other)
        if not 0 < len(made) <= _NEAR:
            continue
        word = other.verdict.value
        same = ", the same cause" if other.diagnosis.cause == outcome.diagnosis.cause else ""
        came_to = Strong(word) if other.verdict is Verdict.SERVING else Code(word)
        lines.append((*changed(made), ": ", came_to, same))
    return lines


def _private(outcome: Outcome) -> Private:
    """Return what is known to be private of an attempt."""
    user = outcome.facts.get("user")
    name = user.get("name") if isinstance(user, Mapping) else None
    return Private(
        hosts=(outcome.attempt.host,),
        users=(name,) if isinstance(name, str) else (),
        model=outcome.attempt.model,
    )
