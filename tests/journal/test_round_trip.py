"""Whatever an attempt holds comes back from its file as it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sglsweep.attempt import (
    Attempt,
    Blame,
    Diagnosis,
    End,
    EndKind,
    KnownIssue,
    Outcome,
    Proof,
    ProofStep,
    StepState,
    Suspect,
    Timings,
)
from sglsweep.journal.codec import from_json, to_json
from sglsweep.matrix import Cell, spell
from sglsweep.verdict import Milestone, MilestoneState, Phase, Verdict

TEXT = st.text(max_size=12)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
SCALAR: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | NUMBER | TEXT
SCALARS = st.dictionaries(TEXT, SCALAR, max_size=3)
SECONDS = st.none() | st.floats(0, 1e6)

ATTEMPTS = st.builds(
    Attempt,
    number=st.integers(1, 9999),
    cell=st.builds(Cell, SCALARS),
    argv=st.lists(TEXT, max_size=3).map(tuple),
    env=st.dictionaries(TEXT, TEXT, max_size=2),
    relaunch_of=st.none() | st.integers(1, 9),
)
DIAGNOSES = st.builds(
    Diagnosis,
    verdict=st.sampled_from(Verdict),
    phase=st.sampled_from(Phase),
    cause=st.none() | TEXT,
    rank=st.none() | TEXT,
    line=st.none() | st.integers(1),
    evidence=TEXT,
    blames=st.lists(st.builds(Blame, TEXT, SCALAR), max_size=2).map(tuple),
    suspects=st.lists(st.builds(Suspect, TEXT, st.integers(1), TEXT), max_size=2).map(tuple),
    remedy=SCALARS,
    known_issues=st.lists(
        st.builds(KnownIssue, title=TEXT, url=TEXT, fixed_in=st.none() | TEXT), max_size=2
    ).map(tuple),
    requested=SCALARS,
    effective=SCALARS,
    milestones=st.dictionaries(
        st.sampled_from(Milestone), st.sampled_from(MilestoneState), max_size=3
    ),
    metrics=SCALARS,
)
STEPS = st.builds(
    ProofStep,
    name=TEXT,
    state=st.sampled_from(StepState),
    detail=TEXT,
    elapsed_s=st.floats(0, 100),
    verdict=st.none() | st.sampled_from(Verdict),
    evidence=TEXT,
)
OUTCOMES = st.builds(
    Outcome,
    attempt=ATTEMPTS,
    end=st.builds(
        End, kind=st.sampled_from(EndKind), exit_status=st.none() | st.integers(-64, 255)
    ),
    diagnosis=DIAGNOSES,
    proof=st.none() | st.builds(Proof, steps=st.lists(STEPS, max_size=3).map(tuple)),
    timings=st.builds(Timings, total_s=st.floats(0, 1e6), ready_s=SECONDS),
    facts=st.dictionaries(TEXT, st.lists(SCALAR, max_size=2) | SCALAR, max_size=2),
)


@given(OUTCOMES)
def test_an_outcome_comes_back_from_its_file_as_it_was(outcome: Outcome) -> None:
    read = from_json(Outcome, json.loads(json.dumps(to_json(outcome))))
    assert read == outcome
    assert repr(read) == repr(outcome)


@given(SCALARS)
def test_a_cell_keeps_the_order_of_its_axes_and_the_kinds_of_its_values(
    values: dict[str, Any],
) -> None:
    read = from_json(Cell, json.loads(json.dumps(to_json(Cell(values)))))
    assert [(k, spell(v)) for k, v in read.values.items()] == [
        (k, spell(v)) for k, v in values.items()
    ]
