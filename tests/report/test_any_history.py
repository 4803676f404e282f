"""Whatever a run holds, every form of its report is written."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
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
from sglsweep.matrix import Axis, Cell, Value
from sglsweep.report import RunView, brief, findings_json, issue, page
from sglsweep.report.compare import compare_runs, comparison_json, document
from sglsweep.report.findings import BEGIN, END, merge, render
from sglsweep.report.markdown import to_markdown
from sglsweep.report.status import Running, status_json, status_text
from sglsweep.report.view import Hypothesis, LeftOut
from sglsweep.verdict import Phase, Verdict

TEXT = st.text(max_size=8) | st.sampled_from(["`|`", END, "<b>", "\x1b[1m", "a\nb", "\ud800"])
VALUES: tuple[Value, ...] = (None, True, False, 1, 1.0, "1", "fp8", "|")
VALUE = st.sampled_from(VALUES)
CELLS = st.dictionaries(st.sampled_from(["a", "b", "env.X", "model"]), VALUE, max_size=4)
SCALARS = st.dictionaries(
    st.sampled_from(["a", "kv_tokens", "context_len", "attention-backend"]),
    VALUE | st.floats(),
    max_size=3,
)
STEPS = st.builds(
    ProofStep, name=TEXT, state=st.sampled_from(StepState), detail=TEXT, evidence=TEXT
)
DIAGNOSES = st.builds(
    Diagnosis,
    verdict=st.sampled_from(Verdict),
    phase=st.sampled_from(Phase),
    cause=st.none() | st.sampled_from(["oom", "nan"]) | TEXT,
    line=st.none() | st.integers(1, 9),
    evidence=TEXT,
    blames=st.lists(st.builds(Blame, st.sampled_from(["a", "b"]), VALUE), max_size=2).map(tuple),
    suspects=st.lists(st.builds(Suspect, TEXT, st.integers(0, 9), TEXT), max_size=2).map(tuple),
    next_step=TEXT,
    remedy=CELLS,
    known_issues=st.lists(st.builds(KnownIssue, title=TEXT, url=TEXT), max_size=1).map(tuple),
    effective=SCALARS,
    metrics=SCALARS,
)


def outcomes(
    parts: list[tuple[dict[str, Value], Diagnosis, Proof | None, EndKind]],
) -> tuple[Outcome, ...]:
    return tuple(_outcome(number, *part) for number, part in enumerate(parts, 1))


def _outcome(
    number: int, cell: dict[str, Value], diagnosis: Diagnosis, proof: Proof | None, kind: EndKind
) -> Outcome:
    flags = [f"--{name}={value}" for name, value in cell.items() if value is not None]
    attempt = Attempt(
        number=number,
        cell=Cell(cell),
        build="stock",
        model="m",
        python="python3",
        argv=("-m", "sglang.launch_server", *flags),
        env={},
        launch_key=str(flags),
        host="h",
        port=1,
        why="`why`",
        started_at="",
        keeper_dir="",
    )
    equal = 1 if kind is EndKind.EQUAL else None
    return Outcome(
        attempt=attempt,
        end=End(kind=kind, detail="|", equal_to=equal),
        diagnosis=diagnosis,
        proof=proof,
        timings=Timings(total_s=3.0),
    )


RUNS = st.builds(
    RunView,
    run=st.just("r"),
    name=TEXT,
    model=TEXT,
    outcomes=st.lists(
        st.tuples(
            CELLS,
            DIAGNOSES,
            st.none() | st.builds(Proof, steps=st.lists(STEPS, max_size=3).map(tuple)),
            st.sampled_from(EndKind),
        ),
        max_size=5,
    ).map(outcomes),
    axes=st.just(
        tuple(
            Axis(n, (None, True, False, 1, 1.0, "1", "fp8", "|"))
            for n in ("a", "b", "env.X", "model")
        )
    ),
    cells=st.none() | st.integers(0, 9),
    left_out=st.lists(st.builds(LeftOut, kind=st.just("equal"), because=TEXT)).map(tuple),
    goals=st.sampled_from([(), ("map",), ("fastest",)]),
    need=st.sampled_from([{}, {"context": 9}, {"context": 9, "concurrent": 2}]),
    hypotheses=st.lists(
        st.builds(Hypothesis, id=TEXT, says=TEXT, when=CELLS, verdict=st.just("serving")),
        max_size=1,
    ).map(tuple),
    world=st.sampled_from(["", "glm5"]),
    finish=TEXT,
)

SETTINGS = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@SETTINGS
@given(RUNS, RUNS)
def test_every_form_of_the_report_is_written(run: RunView, other: RunView) -> None:
    text = render(run)
    lines = text.split("\n")
    assert lines.count(BEGIN) == lines.count(END) == 1
    assert merge(f"mine\n{text}mine\n", text) == f"mine\n{text}mine\n"
    text.encode()
    page(run).encode()
    brief(run).encode()
    json.dumps(findings_json(run), allow_nan=False)
    for outcome in run.outcomes:
        issue(run, outcome.attempt.number, b"one\ntwo\xff\n").encode()
    to_markdown(document(("a", "b"), compare_runs(run, other))).encode()
    json.dumps(comparison_json(("a", "b"), compare_runs(run, other)))
    running = [Running(attempt=o.attempt) for o in other.outcomes[:1]]
    status_text(run, running, holder="pid 1").encode()
    json.dumps(status_json(run, running, holder=""))


@SETTINGS
@given(RUNS)
def test_nothing_is_called_proven_without_an_attempt_that_serves(run: RunView) -> None:
    if not run.serving:
        assert "**proven**" not in render(run)
