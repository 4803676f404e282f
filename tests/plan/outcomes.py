"""Outcomes and questions for tests of what a sweep does next."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sglsweep.attempt import Attempt, Diagnosis, End, EndKind, KnownIssue, Outcome
from sglsweep.matrix import Axis, Cell, Cells
from sglsweep.plan import strategies
from sglsweep.plan.question import Question
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.matrix import Value

AXES = (
    Axis("attention-backend", ("flashinfer", "triton", "fa3")),
    Axis("disable-cuda-graph", (False, True)),
)
CELLS = Cells(AXES, list(product(range(3), range(2))))


def cell(*codes: int) -> Cell:
    return Cell({axis.name: axis.values[code] for axis, code in zip(AXES, codes, strict=True)})


def passed_flags(cell: Cell) -> str:
    """Return a launch's key: flags that are passed make it; one that is null does not."""
    return ",".join(sorted(f"{n}={v}" for n, v in cell.values.items() if v is not None))


def outcome(
    number: int, launched: Cell, diagnosis: Diagnosis, *, launch_key: str | None = None
) -> Outcome:
    attempt = Attempt(
        number=number,
        cell=launched,
        build="default",
        model="m",
        python="python3",
        argv=("-m", "sglang.launch_server"),
        env={},
        launch_key=launched.key if launch_key is None else launch_key,
        host="local",
        port=30000,
        why="because",
        started_at="2026-11-29T10:00:00Z",
        keeper_dir="/home/me/.sglsweep/runs/x/0001",
    )
    return Outcome(attempt=attempt, end=End(kind=EndKind.EXITED), diagnosis=diagnosis)


def served(number: int, *codes: int) -> Outcome:
    diagnosis = Diagnosis(verdict=Verdict.SERVING, phase=Phase.DECODE, cause=None)
    return outcome(number, cell(*codes), diagnosis)


def failed(
    number: int,
    *codes: int,
    cause: str = "custom-allreduce",
    remedy: Mapping[str, Value] | None = None,
    fixed_in: str | None = None,
) -> Outcome:
    issues = (KnownIssue(title="it fails", url="https://x/1", fixed_in=fixed_in),)
    diagnosis = Diagnosis(
        verdict=Verdict.CRASH,
        phase=Phase.GRAPH_CAPTURE,
        cause=cause,
        remedy=remedy or {},
        known_issues=issues if fixed_in else (),
    )
    return outcome(number, cell(*codes), diagnosis)


QUESTION = Question(
    cells=CELLS,
    includes=(),
    outcomes=(),
    goals=("first-serving",),
    strategy=lambda goal: strategies.make(goal=goal),
    launch_key=lambda one: one.key,
)
