"""Who carried a log must not matter to what it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose
from triage.cases import LogCase, cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.attempt import Diagnosis

KNOWN = catalogue.load()
CASES = [case for case in cases() if len(case.log) < 20_000]
WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "compose": lambda line: b"sglang-1  | " + line,
    "kubernetes": lambda line: b"2026-02-10T10:00:00.123456789Z stderr F " + line,
    "journald": lambda line: b"Feb 10 10:00:00 gpu7 sglang[4711]: " + line,
    "ray": lambda line: b"(SGLangEngine pid=4711, ip=10.0.0.1) " + line,
    "mpi": lambda line: b"[1,0]<stderr>:" + line,
    "slurm": lambda line: b"0: " + line,
    "box": lambda line: "│ ".encode() + line,
    "json": lambda line: json.dumps({"log": line.decode("utf-8", "replace") + "\n"}).encode(),
    "dos": lambda line: line + b"\r",
    "colour": lambda line: b"\x1b[33m" + line + b"\x1b[0m" if line.strip() else line,
}
UNKNOWN: dict[str, Callable[[bytes], bytes]] = {
    "tab": lambda line: b"node-3\t" + line,
    "pod": lambda line: b"glm5-0 " + line,
    "name in brackets": lambda line: b"[server] " + line,
    "kibana": lambda line: b"May 16, 2026 @ 20:44:54.728    " + line,
    "a launcher's logger": lambda line: b"2025-03-07 23:50:27,531 - __main__ - INFO - " + line,
    "columns": lambda line: b"2026-02-10 10:00:00,123 | stderr | " + line,
}
"""Shippers that no pattern describes; learned from the records themselves."""


def essence(answer: Diagnosis) -> tuple[object, ...]:
    return answer.verdict, answer.phase, answer.cause, answer.rank, answer.line


def wrapped(case: LogCase, wrapper: Callable[[bytes], bytes]) -> Diagnosis:
    log = b"\n".join(wrapper(line) for line in case.log.split(b"\n"))
    return diagnose(log, KNOWN, ending=case.ending)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_wrapper_changes_nothing(case: LogCase) -> None:
    plain = essence(case.diagnosed())
    assert {name: essence(wrapped(case, w)) for name, w in WRAPPERS.items()} == dict.fromkeys(
        WRAPPERS, plain
    )


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_wrapper_is_learned_from_the_log(name: str) -> None:
    kept = [
        essence(wrapped(case, UNKNOWN[name])) == essence(case.diagnosed())
        for case in CASES
        if case.log.count(b"[20") > 1
    ]
    assert sum(kept) >= 0.95 * len(kept)
