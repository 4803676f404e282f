"""Hardware and software: what the attempts ran on, and whether it changed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import Block, Bullets, Heading, Line, Paragraph, Strong, joined
from sglsweep.report.launches import host_changes
from sglsweep.report.machine import gpu_words, host_words, version_words
from sglsweep.report.words import changed

if TYPE_CHECKING:
    from sglsweep.report.view import RunView


def machine(run: RunView) -> list[Block]:
    """Describe the host and its software as the latest attempt saw them."""
    if not run.outcomes:
        return []
    facts = run.facts
    if run.world:
        host = host_words(facts)
        words = (" It ran on: ", *host) if host else ()
        return [
            Heading(2, ("Hardware and software",)),
            Paragraph(("A stand-in server: no SGLang, no GPU.", *words)),
        ]
    lines = [line for line in (gpu_words(facts), host_words(facts)) if line]
    lines += [(line,) for line in version_words(facts)] or _versions_in_logs(run)
    lines += _drift(run)
    heading = Heading(2, ("Hardware and software",))
    if not lines:
        return [heading, Paragraph(("Not recorded.",))]
    return [heading, Bullets(tuple(lines))]


def _versions_in_logs(run: RunView) -> list[Line]:
    """Name builds with the SGLang version that their logs showed."""
    versions = {
        o.attempt.build: o.diagnosis.sglang_version
        for o in run.outcomes
        if o.diagnosis.sglang_version
    }
    return [
        (f"Build {build}: SGLang {version}, by its log",) for build, version in versions.items()
    ]


def _drift(run: RunView) -> list[Line]:
    """Say before which attempts the host was changed: across that, nothing is proven."""
    lines: list[Line] = []
    for before, after in zip(run.outcomes, run.outcomes[1:], strict=False):
        made = host_changes(before, after)
        if made:
            lines.append(
                (
                    Strong("The host changed"),
                    f" between attempts {before.attempt.number} and {after.attempt.number}: ",
                    *joined([changed(made)]),
                )
            )
    return lines
