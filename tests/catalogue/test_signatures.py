"""Every entry of the catalogue is complete, can match, is fast, and has a case."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from sglsweep import catalogue
from sglsweep.catalogue import Role, Signature, Site
from sglsweep.catalogue.loader import compile_content
from sglsweep.triage.signature import best, holds
from sglsweep.verdict import Phase
from triage.cases import cases

KNOWN = catalogue.load()
ENTRIES = list(KNOWN.signatures.values())
BY_ENGINE = {"serving", "graph-capture-ok", "killed-sigterm", "exit-status", "argparse-exit"}
"""Causes that the engine gives without a signature."""
SILENT = {f"silent-{phase.value}" for phase in Phase}
NARROWER = [
    s for s in ENTRIES if s.id == "import-ignored-then-needed" or not (s.literals or s.pattern)
]
"""Entries that match no line by themselves: another one becomes them."""
HOSTILE = (
    "A" * 40_000,
    "Error: " * 6_000,
    "[" * 20_000 + "]" * 20_000,
    "assert (((((" * 3_000,
    "not supported on SM1 " * 2_000,
    "/usr/lib/python3/" * 2_500,
    "0.123 GB, avail mem=1.0 " * 1_700,
    " " * 40_000,
)
BUDGET_S = 0.25
"""What one pattern may take for one line of 40 kB on a busy machine."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda s: s.id)
def test_entry_says_what_it_is_and_what_to_do(entry: Signature) -> None:
    assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", entry.id)
    assert entry.title
    assert entry.source
    assert entry.step_for(None)
    assert entry.role is not Role.CAUSE or entry.verdict or entry.refines


@pytest.mark.parametrize("entry", [s for s in ENTRIES if s not in NARROWER], ids=lambda s: s.id)
def test_entry_matches_its_samples(entry: Signature) -> None:
    assert entry.samples
    phase = entry.phases[0] if entry.phases else Phase.WEIGHTS
    for sample in entry.samples:
        assert not entry.literals or any(text in sample for text in entry.literals), sample
        if not entry.frames:
            assert holds(entry, sample, phase, ""), sample


@pytest.mark.parametrize("entry", [s for s in ENTRIES if s not in NARROWER], ids=lambda s: s.id)
def test_entry_is_not_shadowed_by_another_one(entry: Signature) -> None:
    phase = entry.phases[0] if entry.phases else Phase.WEIGHTS
    winners = set()
    for sample in entry.samples:
        rivals = [
            s
            for s in ENTRIES
            if (s.literals or s.site is Site.EXCEPTION)
            and (not s.literals or any(text in sample for text in s.literals))
            and (s is entry or holds(s, sample, phase, ""))
        ]
        winner = best(rivals)
        winners.add(winner.id if winner else "")
    assert entry.id in winners, f"its samples are taken for {winners}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda s: s.id)
def test_pattern_does_not_stall_on_a_hostile_line(entry: Signature) -> None:
    pattern = entry.pattern
    for text in HOSTILE if pattern else ():
        probe = re.compile(pattern)
        literal = entry.literals[0] if entry.literals else ""
        started = time.process_time()
        probe.search(literal + text + literal)
        assert time.process_time() - started < BUDGET_S


@pytest.mark.parametrize("entry", [s for s in ENTRIES if s.role is Role.CAUSE], ids=lambda s: s.id)
def test_cause_has_a_case_file(entry: Signature) -> None:
    assert any(case.head["cause"] == entry.id for case in CASES)


CASES = cases()


def test_every_case_s_cause_is_known() -> None:
    named = {c.head["cause"] for c in CASES} - BY_ENGINE - {"none"}
    strangers = {c for c in named if not c.startswith(("unknown:", "silent-"))}
    assert strangers <= set(KNOWN.signatures)


def test_known_issues_name_causes_that_exist() -> None:
    for rule in KNOWN.issues:
        assert set(rule.causes) <= set(KNOWN.signatures) | BY_ENGINE | SILENT, rule.id


def test_compiled_copy_is_up_to_date() -> None:
    copy = Path(catalogue.__file__).with_name("compiled.json")
    assert copy.read_text("ascii") == compile_content(), "run python -m sglsweep.catalogue"


def test_narrower_entries_name_causes_that_exist() -> None:
    by_proof = {"proof-garbage"}
    for entry in ENTRIES:
        assert set(entry.refines) <= set(KNOWN.signatures) | by_proof, entry.id
