"""A build's answer about its cells, read: refusals by the catalogue's word."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from sglsweep import catalogue
from sglsweep.expand.asked import Resolved, State
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.ending import Ending
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Diagnosis
    from sglsweep.matrix import Cell

_EXCEPTION = re.compile(r"\w+(Error|Exception|Interrupt)\b")
_TRACEBACK = (
    'Traceback (most recent call last):\n  File "sglang/launch_server.py", line 1, in <module>\n'
)
"""Stands before an exception of which only the words are known."""


def answers_of(said: Mapping[str, Any], cells: Sequence[Cell]) -> dict[str, Resolved]:
    """Return what a build's answer says of each of the cells that it was asked about."""
    base = said["base"]
    return {
        cell.key: answer_of(base, entry) for cell, entry in zip(cells, said["cells"], strict=True)
    }


def answer_of(base: Mapping[str, object], entry: Mapping[str, Any]) -> Resolved:
    """Return one cell's answer; `base` is what all cells share."""
    state = State(entry["state"])
    told = _judged(entry) if state is State.REFUSED else None
    effective: dict[str, object] = {}
    if state is State.RESOLVED:
        effective = {**base, **entry["changes"]}
        for name in entry["missing"]:
            del effective[name]
    return Resolved(
        state=state,
        effective=effective,
        error=_headline(entry),
        verdict=_verdict(told) if told else None,
        cause=(told.cause or "") if told else "",
        next_step=_way_out(told) if told else "",
        lines=tuple(f"{line['level']}: {line['text']}" for line in entry.get("lines", ())),
        unknown=tuple(entry.get("unknown", ())),
    )


def _judged(entry: Mapping[str, Any]) -> Diagnosis:
    """Return what the catalogue says of a refusal, as of a log that ends with it."""
    error = str(entry.get("error") or "")
    log = str(entry.get("trace") or "") or f"launch_server.py: error: {error}\n"
    if _EXCEPTION.match(error) and not entry.get("trace"):
        log = f"{_TRACEBACK}{error}\n"
    return _judgement(log)


@cache
def _judgement(log: str) -> Diagnosis:
    ending = Ending(exit_status=1)
    return diagnose(log.encode("utf-8", "replace"), catalogue.load(), ending=ending)


def _verdict(told: Diagnosis) -> Verdict:
    unsupported = told.verdict is Verdict.KERNEL_UNSUPPORTED
    return Verdict.KERNEL_UNSUPPORTED if unsupported else Verdict.BAD_CONFIG


def _way_out(told: Diagnosis) -> str:
    """Return what helps; of a cause that the catalogue does not know SGLang's words are all."""
    return "" if (told.cause or "unknown:").startswith("unknown:") else told.next_step


def _headline(entry: Mapping[str, Any]) -> str:
    """Return the first line of an error; a parser's words say by themselves that it is one."""
    lines = str(entry.get("error") or "").strip().splitlines()
    return lines[0].strip() if lines else ""
