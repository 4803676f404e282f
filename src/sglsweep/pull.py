"""An attempt's log as a test case: short, without private details, with the answer in its head.

The format is that of `tests/triage/logs`: lines `# key: value`, a line `# ---`, the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep.anonymous import HF_ID, Private, anonymize
from sglsweep.conclude import ending_of
from sglsweep.triage.diagnose import diagnose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Attempt, Diagnosis, Outcome
    from sglsweep.catalogue import Catalogue
    from sglsweep.triage.ending import Ending

_NONE = "none"
_HEAD, _TAIL = 12, 15
_BEFORE, _AFTER = 40, 15
_TRACE_SEARCH = 400
_MOST_ODD = 30
_ODD_BODY = 40
_LINE_TEXT = 160
_MOST_TRIES = 150
_MOST_BYTES = 300_000_000
"""Of logs diagnosed while trimming: about half a minute."""
_ODD = re.compile(
    rb"Traceback|Error\b|Exception|\bWARN|[Ww]arning|SIG[A-Z]{3}|[Ff]atal|[Aa]ssert|\bXid\b|ERROR"
)
_TRACE = b"Traceback (most recent call last)"
_DIGITS = re.compile(rb"\d+")
_REHEARSAL = "sglsweep.rehearsal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """A case file, and what whoever keeps it should know.

    Attributes:
        content: the file.
        lines: of the log, before and after trimming.
        replaced: kind of private detail -> how many different ones became placeholders.
        checks: sentences: what to look at before the file is published.
    """

    content: bytes
    lines: tuple[int, int]
    replaced: Mapping[str, int]
    checks: tuple[str, ...]


def pull(outcome: Outcome, log: bytes, *, cause: str, catalogue: Catalogue) -> Pulled:
    """Return the log of a finished attempt as a case file.

    Args:
        outcome: the attempt.
        log: its log, up to where we stopped it.
        cause: what the case is to be filed under; the wanted cause where the catalogue has it.
        catalogue: judges that the shorter log says the same.
    """
    ending = ending_of(outcome.end)
    text, replaced = anonymize(log.decode("utf-8", "surrogateescape"), _private(outcome))
    whole = text.encode("utf-8", "surrogateescape")
    raw_answer = diagnose(log, catalogue, ending=ending)
    answer = diagnose(whole, catalogue, ending=ending)
    short = _trimmed(whole, answer, _Judge(catalogue, ending))
    wanted = catalogue.signatures.get(cause)
    marked = {
        "verdict": str(wanted.verdict or answer.verdict) if wanted else str(answer.verdict),
        "phase": str(answer.phase),
        "cause": cause if wanted else answer.cause or _NONE,
        "rank": answer.rank or _NONE,
    }
    version = answer.sglang_version or _installed(outcome)
    head = {"evidence": _evidence(outcome.attempt), "source": _source(outcome, version), **marked}
    head |= _shown(answer, ending)
    written = "".join(f"# {key}: {value}\n" for key, value in head.items())
    return Pulled(
        content=written.encode("utf-8", "surrogateescape") + b"# ---\n" + short,
        lines=(_count(log), _count(short)),
        replaced=replaced,
        checks=tuple(_checks(outcome, raw_answer, answer, marked)),
    )


def _private(outcome: Outcome) -> Private:
    attempt = outcome.attempt
    user = outcome.facts.get("user")
    name = str(user.get("name") or "") if isinstance(user, dict) else ""
    argv = attempt.argv
    model = next(
        (argv[i + 1] for i, word in enumerate(argv[:-1]) if word == "--model-path"), attempt.model
    )
    return Private(
        hosts=() if attempt.host == "local" else (attempt.host,),
        users=(name,) if name else (),
        model=model,
    )


def _evidence(attempt: Attempt) -> str:
    """Return how much of the log a machine really printed: nothing of a rehearsal's."""
    return "format-string" if _REHEARSAL in attempt.argv else "real"


def _installed(outcome: Outcome) -> str:
    """Return the version of SGLang that the build holds, "" where it is not known."""
    builds = outcome.facts.get("builds")
    build = builds.get(outcome.attempt.build) if isinstance(builds, dict) else None
    return str(build.get("sglang") or "") if isinstance(build, dict) else ""


def _source(outcome: Outcome, version: str) -> str:
    attempt = outcome.attempt
    if _REHEARSAL in attempt.argv:
        return "rehearsal server of sglsweep"
    gpus = outcome.facts.get("gpus")
    found = [g for g in gpus if isinstance(g, dict)] if isinstance(gpus, list) else []
    where = f"{len(found)}x {found[0].get('name') or 'GPU'}" if found else "a CPU host"
    model = f" of {attempt.model}" if HF_ID.match(attempt.model) else ""
    return " ".join(f"real launch{model} with SGLang {version} on {where}".split())


def _shown(answer: Diagnosis, ending: Ending) -> dict[str, str]:
    """Return the lines of the head that stand there only where there is something to say."""
    found = {}
    first = answer.evidence.strip().splitlines()[:1]
    if answer.line is not None and first:
        found["line-text"] = first[0][:_LINE_TEXT].strip()
    if ending.exit_status is not None:
        found["exit-status"] = str(ending.exit_status)
    if ending.silence_s is not None:
        found["silence-s"] = f"{ending.silence_s:g}"
    return found


def _checks(
    outcome: Outcome, raw: Diagnosis, answer: Diagnosis, marked: Mapping[str, str]
) -> list[str]:
    told = ["Read it once before you publish it: no program finds every private word."]
    if (raw.verdict, raw.phase, raw.cause) != (answer.verdict, answer.phase, answer.cause):
        told.append(
            f"A placeholder changed the answer ({raw.cause} -> {answer.cause}): the signature"
            " depends on a private word; mend the file by hand."
        )
    if outcome.verdict is not answer.verdict:
        is_old = outcome.diagnosis.catalogue != answer.catalogue
        how = "by an older catalogue" if is_old else "by its proof or its end"
        says = "today's says" if is_old else "the log alone says"
        told.append(
            f"The attempt came to {outcome.verdict.value} {how}; {says}"
            f" {answer.verdict.value}, and that is what the case marks."
        )
    if marked["cause"] != (answer.cause or _NONE):
        told.append(
            f"Today's answer is {answer.verdict.value} ({answer.cause}): the case fails until the"
            f" catalogue says {marked['cause']}."
        )
    if (answer.cause or "").startswith("unknown:"):
        told.append(
            "No signature explains it yet: add one, then SGLSWEEP_BLESS=1 writes its id here."
        )
    if _REHEARSAL in outcome.attempt.argv:
        told.append("A rehearsal printed this log: no evidence of what SGLang prints.")
    return told


class _Judge:
    """Tells whether a shorter log says what the whole one says, within limits of effort."""

    def __init__(self, catalogue: Catalogue, ending: Ending) -> None:
        self._catalogue = catalogue
        self._ending = ending
        self._tries = 0
        self._bytes = 0

    @property
    def is_tired(self) -> bool:
        return self._tries >= _MOST_TRIES or self._bytes >= _MOST_BYTES

    def agrees(self, log: bytes, answer: Diagnosis) -> bool:
        self._tries += 1
        self._bytes += len(log)
        got = diagnose(log, self._catalogue, ending=self._ending)
        return _told(got) == _told(answer)


def _told(answer: Diagnosis) -> tuple[object, ...]:
    return (
        answer.verdict,
        answer.phase,
        answer.cause,
        answer.rank,
        answer.evidence,
        dict(answer.milestones),
    )


def _trimmed(log: bytes, answer: Diagnosis, judge: _Judge) -> bytes:
    """Return the log without the lines that its answer does not need and a reader would skip."""
    lines = log.split(b"\n")
    worth = _worth_keeping(lines, answer.line)
    short = _joined(lines, worth)
    if judge.agrees(short, answer):
        return short
    kept = set(range(len(lines)))
    spare = [number for number in sorted(kept) if number not in worth]
    size = max(1, len(spare) // 2)
    while spare and not judge.is_tired:
        spare, kept = _without(lines, spare, kept, size, answer, judge)
        if size == 1:
            break
        size = max(1, size // 2)
    return _joined(lines, kept)


def _without(  # noqa: PLR0913, PLR0917 - one step of the search above
    lines: list[bytes],
    spare: list[int],
    kept: set[int],
    size: int,
    answer: Diagnosis,
    judge: _Judge,
) -> tuple[list[int], set[int]]:
    """Take away each chunk of spare lines whose absence changes nothing."""
    needed: list[int] = []
    for start in range(0, len(spare), size):
        chunk = spare[start : start + size]
        fewer = kept.difference(chunk)
        if not judge.is_tired and judge.agrees(_joined(lines, fewer), answer):
            kept = fewer
        else:
            needed += chunk
    return needed, kept


def _joined(lines: list[bytes], kept: set[int]) -> bytes:
    return b"\n".join(lines[number] for number in sorted(kept))


def _worth_keeping(lines: list[bytes], evidence: int | None) -> set[int]:
    """Return the lines around the evidence, both ends, the arguments, and what could confuse."""
    last = len(lines)
    kept = {*range(min(_HEAD, last)), *range(max(0, last - _TAIL), last)}
    kept |= {number for number, line in enumerate(lines) if b"server_args=" in line[:200]}
    if evidence is not None:
        centre = evidence - 1
        kept |= set(range(max(0, centre - _BEFORE), min(last, centre + _AFTER + 1)))
        kept |= set(range(_trace_start(lines, centre), centre))
    seen: set[bytes] = set()
    for number, line in enumerate(lines):
        if len(seen) >= _MOST_ODD:
            break
        form = _DIGITS.sub(b"0", line)[:120]
        if _ODD.search(line) and form not in seen:
            seen.add(form)
            kept |= set(range(number, _body_end(lines, number)))
    return kept


def _trace_start(lines: list[bytes], centre: int) -> int:
    for number in range(centre, max(-1, centre - _TRACE_SEARCH), -1):
        if _TRACE in lines[number]:
            return number
    return centre


def _body_end(lines: list[bytes], start: int) -> int:
    """Return where the lines end that belong to an odd one: indented, and the one after them."""
    end = start + 1
    while end < len(lines) and end - start < _ODD_BODY and lines[end].startswith((b" ", b"\t")):
        end += 1
    return min(len(lines), end + (1 if _TRACE in lines[start] else 0))


def _count(log: bytes) -> int:
    return log.count(b"\n") + (0 if log.endswith(b"\n") or not log else 1)
