"""Hardware and software: what the attempts ran on, and whether it changed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.report.document import Block, Bullets, Heading, Line, Paragraph
from sglsweep.report.machine import gpu_words, host_words, version_words
from sglsweep.report.words import numbers

if TYPE_CHECKING:
    from sglsweep.report.view import RunView


def machine(run: RunView) -> list[Block]:
    """Describe the host and its software as the latest attempt saw them."""
    heading = Heading(2, ("Hardware and software",))
    facts = run.facts
    if not facts and not run.outcomes:
        return []
    lines = [line for line in (gpu_words(facts), host_words(facts), _builds(run)) if line]
    lines += [(line,) for line in version_words(facts)]
    drift = _drift(run)
    if drift:
        lines.append(drift)
    if not lines:
        return [heading, Paragraph(("Not recorded.",))]
    return [heading, Bullets(tuple(lines))]


def _builds(run: RunView) -> Line:
    """Name builds with the SGLang version that their logs showed."""
    versions: dict[str, str] = {}
    for outcome in run.outcomes:
        version = outcome.diagnosis.sglang_version
        if version or outcome.attempt.build not in versions:
            versions[outcome.attempt.build] = version or ""
    words = [f"{b}: SGLang {v}" if v else f"{b}: version not shown" for b, v in versions.items()]
    return (f"Build {'; '.join(words)}",) if words else ()


def _drift(run: RunView) -> Line:
    """Say after which attempt the environment was another one."""
    known = [o for o in run.outcomes if o.facts.get("fingerprint")]
    later = [o for o in known if o.facts["fingerprint"] != known[0].facts["fingerprint"]]
    if not later:
        return ()
    return (
        f"The environment changed during the run: {numbers(later)} ran in another one than "
        f"attempt {known[0].attempt.number}.",
    )
