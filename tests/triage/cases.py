"""Case files: a log with the answer it must get in its head.

    # evidence: real | reported | format-string    how much of the log a machine really printed
    # source: where it comes from
    # verdict: oom
    # phase: graph-capture
    # cause: oom-graph-capture                     none for a log that names none
    # rank: TP3                                    none where the log names none
    # line-text: part of the line that shows it    left out where there is no such line
    # also: other verdicts that can be defended    optional, as are the next two
    # exit-status: -9
    # silence-s: 600
    # ---
    the log, byte for byte

`SGLSWEEP_BLESS=1 pytest tests/triage/test_cases.py` writes today's answers into the heads.
Read the diff.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Diagnosis

LOGS = Path(__file__).parent / "logs"
END_OF_HEAD = b"# ---\n"
EVIDENCE = ("real", "reported", "format-string")
NONE = "none"
HEALTHY = ("serving", "graph-capture-ok", "incomplete")


@dataclass(frozen=True, slots=True)
class LogCase:
    """One case file."""

    path: Path
    head: Mapping[str, str]
    log: bytes

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def ending(self) -> Ending:
        status, silence = self.head.get("exit-status"), self.head.get("silence-s")
        return Ending(
            exit_status=int(status) if status else None,
            silence_s=float(silence) if silence else None,
        )

    @property
    def is_healthy(self) -> bool:
        return self.head["verdict"] in HEALTHY

    def diagnosed(self) -> Diagnosis:
        return diagnose(self.log, catalogue.load(), ending=self.ending)

    def wrong(self, answer: Diagnosis) -> list[str]:
        """Return what the answer has and the head has otherwise."""
        got = marked(answer)
        wanted = {key: self.head.get(key, NONE) for key in got}
        found = [f"{k}: {v}, got {got[k]}" for k, v in wanted.items() if got[k] != v]
        text = self.head.get("line-text")
        shown = line_of(self.log, answer.line)
        if text is not None and text not in shown and text not in answer.evidence:
            found.append(f"line-text: {text!r}, got line {answer.line}: {answer.evidence[:200]!r}")
        return found


def cases() -> list[LogCase]:
    """Return every case file, by name."""
    return [read_case(path) for path in sorted(LOGS.glob("*/*.log"))]


def read_case(path: Path) -> LogCase:
    """Read a case file."""
    raw = path.read_bytes()
    head, end, log = raw.partition(END_OF_HEAD)
    if not end:
        raise ValueError(f"{path}: no line '# ---' ends the head")
    fields = dict(_field(path, line) for line in head.decode().splitlines())
    return LogCase(path, fields, log)


def _field(path: Path, line: str) -> tuple[str, str]:
    key, colon, value = line.removeprefix("# ").partition(": ")
    if not line.startswith("# ") or not colon:
        raise ValueError(f"{path}: not a '# key: value' line: {line!r}")
    return key, value.strip()


def write_case(case: LogCase) -> None:
    """Write a case file."""
    head = "".join(f"# {key}: {value}\n" for key, value in case.head.items())
    case.path.parent.mkdir(parents=True, exist_ok=True)
    case.path.write_bytes(head.encode() + END_OF_HEAD + case.log)


def marked(answer: Diagnosis) -> dict[str, str]:
    """Return what a head says of an answer."""
    return {
        "verdict": str(answer.verdict),
        "phase": str(answer.phase),
        "cause": answer.cause or NONE,
        "rank": answer.rank or NONE,
    }


def line_of(log: bytes, number: int | None) -> str:
    """Return a line by its 1-based number; lines end at a newline alone."""
    if number is None:
        return ""
    return log.split(b"\n")[number - 1].decode("utf-8", "replace")
