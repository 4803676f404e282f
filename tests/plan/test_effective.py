"""Strategies decide over what acts in a cell; what is launched is what was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from plan.outcomes import outcome as finished
from plan.outcomes import passed_flags as launch_key
from sglsweep.attempt import Blame, Diagnosis, Outcome
from sglsweep.catalogue import inert
from sglsweep.matrix import NO_EFFECT, Axis, Cell, Cells
from sglsweep.plan import blame, strategies
from sglsweep.plan.decide import NONE_LEFT, decide
from sglsweep.plan.effective import project, recorded, to_record
from sglsweep.plan.equal_cells import Candidate, merge
from sglsweep.plan.hypotheses import Claim, is_decided, next_decision, on_effective
from sglsweep.plan.question import Question
from sglsweep.plan.strategy import Evidence, Finish, Launch
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.matrix import Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.strategy import Strategy

ATTENTION = Axis("attention-backend", ("flashinfer", "nsa"))
KV = Axis("kv-cache-dtype", (None, "fp8_e4m3", "bf16"))
DECODE = Axis("nsa-decode-backend", (None, "flashmla_kv", "trtllm"))
RULES = inert.rules_for(version="0.5.9", model="GlmMoeDsaForCausalLM")


def lead_case(cell: Cell) -> dict[str, object]:
    """Resolve as SGLang 0.5.9 does on SM120."""
    asked = cell.get("kv-cache-dtype") or "fp8_e4m3"
    own = "flashmla_kv" if asked == "fp8_e4m3" else "trtllm"
    return {
        "attention_backend": cell.get("attention-backend"),
        "kv_cache_dtype": "bfloat16" if asked == "bf16" else asked,
        "nsa_decode_backend": cell.get("nsa-decode-backend") or own,
        "page_size": 64,
    }


def seen_of(
    axes: Sequence[Axis],
    resolve: Callable[[Cell], Mapping[str, object]],
    *,
    unknown: Sequence[Cell] = (),
) -> EffectiveCells:
    """Ask about every cell, take out those that equal another, and project the rest."""
    cells = list(Cells(axes, list(product(*(range(len(axis.values)) for axis in axes)))))
    known = {c.key: c for c in cells if c not in unknown}
    candidates = {
        key: Candidate(cell=cell, setting="main", effective=resolve(cell), rules=RULES)
        for key, cell in known.items()
    }
    merged = {item.cell.key: item.speaker for item in merge(candidates.values())}
    codes = [
        tuple(a.values.index(c.get(a.name)) for a in axes) for c in cells if c.key not in merged
    ]
    return project(Cells(axes, codes), candidates, merged)


def words(seen: EffectiveCells) -> set[tuple[Value, ...]]:
    return {tuple(cell.values.values()) for cell in seen.cells}


def test_what_is_not_passed_is_the_value_that_sglang_takes() -> None:
    seen = seen_of((KV,), lead_case)
    assert words(seen) == {("fp8_e4m3",), ("bf16",)}
    launched = [seen.asked_for(cell).get("kv-cache-dtype") for cell in seen.cells]
    assert launched == [None, "bf16"]
    assert seen.of(Cell({"kv-cache-dtype": None})) == Cell({"kv-cache-dtype": "fp8_e4m3"})


def test_an_inert_flag_has_no_value_and_one_with_a_part_to_play_keeps_that() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    assert words(seen) == {
        ("flashinfer", "fp8_e4m3", inert.ALL_OTHERS),
        ("flashinfer", "fp8_e4m3", "trtllm"),
        ("flashinfer", "bf16", NO_EFFECT),
        ("nsa", "fp8_e4m3", "flashmla_kv"),
        ("nsa", "fp8_e4m3", "trtllm"),
        ("nsa", "bf16", "trtllm"),
        ("nsa", "bf16", "flashmla_kv"),
    }


def test_a_number_that_sglang_works_out_stays_not_passed() -> None:
    seen = seen_of((Axis("mem-fraction-static", (None, 0.9)),), lambda c: {
        "mem_fraction_static": c.get("mem-fraction-static") or 0.8431
    })  # fmt: skip
    assert words(seen) == {(None,), (0.9,)}


def test_cells_that_differ_in_what_is_no_axis_are_told_apart_by_what_they_ask_for() -> None:
    moe = Axis("moe-runner-backend", (None, "triton"))

    def resolve(cell: Cell) -> dict[str, object]:
        own = cell.get("moe-runner-backend")
        return {"moe_runner_backend": "triton", "disable_shared_experts_fusion": own is None}

    seen = seen_of((moe,), resolve)
    assert words(seen) == {(None,), ("triton",)}


def test_a_cell_that_nothing_is_known_of_is_as_requested() -> None:
    unknown = Cell({"kv-cache-dtype": "fp8_e4m3"})
    seen = seen_of((KV,), lead_case, unknown=[unknown])
    assert len(seen.cells) == 3
    assert seen.of(unknown) == unknown
    assert {seen.asked_for(cell).key for cell in seen.cells} >= {unknown.key}


def test_what_a_launch_printed_of_itself_corrects_what_was_foreseen() -> None:
    seen = seen_of((KV,), lead_case)
    asked = Cell({"kv-cache-dtype": None})
    assert seen.after([(asked, {"kv-cache-dtype": "fp8_e4m3"})]) is seen
    after = seen.after([(asked, {"kv-cache-dtype": "fp8_e5m2"})])
    assert after.of(asked).get("kv-cache-dtype") == "fp8_e5m2"
    assert after.asked_for(after.of(asked)) == asked
    # A place that another cell has is not taken twice.
    same = seen.after([(asked, {"kv-cache-dtype": "bfloat16"})])
    assert words(same) == {("fp8_e4m3",), ("bf16",)}


def test_of_a_cell_that_nobody_asked_about_the_launch_itself_tells_what_acted() -> None:
    """An attempt by hand, with a value that the matrix does not have."""
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    asked: dict[str, Value] = {"attention-backend": "triton", "tp": 8}
    by_hand = Cell(asked)
    assert seen.of(by_hand) == by_hand
    own = {
        "attention-backend": "triton",
        "kv-cache-dtype": "fp8_e4m3",
        "nsa-decode-backend": "flashmla_kv",
        "tp-size": 8,
    }
    assert dict(seen.after([(by_hand, own)]).of(by_hand).values) == {
        "attention-backend": "triton",
        "tp": 8,
        "kv-cache-dtype": "fp8_e4m3",
        "nsa-decode-backend": inert.ALL_OTHERS,
    }


def test_a_cell_that_another_speaks_for_is_where_its_own_launch_came_out() -> None:
    seen = seen_of((KV,), lead_case)
    merged = Cell({"kv-cache-dtype": "fp8_e4m3"})
    after = seen.after([(merged, {"kv-cache-dtype": "fp8_e5m2"})])
    assert after.of(merged).get("kv-cache-dtype") == "fp8_e5m2"
    assert words(after) == words(seen)


def test_what_a_cell_names_beside_the_axes_stays() -> None:
    seen = seen_of((KV,), lead_case)
    relaunched = Cell({"kv-cache-dtype": None, "env.CUDA_LAUNCH_BLOCKING": "1"})
    assert seen.of(relaunched).values == {
        "kv-cache-dtype": "fp8_e4m3",
        "env.CUDA_LAUNCH_BLOCKING": "1",
    }


def test_reports_read_what_acted_from_the_record() -> None:
    kept = {3: Cell({"kv-cache-dtype": "fp8_e4m3"})}
    assert recorded(to_record(kept.items())) == kept
    assert recorded(None) == {}


# -- the planner --------------------------------------------------------------------------------


@dataclass
class Watching:
    """A strategy that keeps what it is asked."""

    inner: Strategy
    seen: list[tuple[Cells, Sequence[Evidence]]] = field(default_factory=list)

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        self.seen.append((cells, history))
        return self.inner.decide(cells, history)


def outcome(number: int, cell: Cell, verdict: Verdict, *blames: str) -> Outcome:
    diagnosis = Diagnosis(
        verdict=verdict,
        phase=Phase.DECODE,
        cause=None if verdict is Verdict.SERVING else "nan-probability-tensor",
        blames=tuple(Blame(flag) for flag in blames),
    )
    return finished(number, cell, diagnosis, launch_key=launch_key(cell))


def asking(
    seen: EffectiveCells, outcomes: Sequence[Outcome], strategy: Strategy, goal: str
) -> Question:
    listed = [seen.asked_for(cell) for cell in seen.cells]
    axes = (ATTENTION, KV, DECODE)
    codes = [tuple(a.values.index(c.get(a.name)) for a in axes) for c in listed]
    return Question(
        cells=Cells(axes, codes),
        includes=(),
        outcomes=outcomes,
        goals=[goal],
        strategy=lambda _: strategy,
        launch_key=launch_key,
        effective=seen,
    )


def cell_of(attention: str, kv: Value, decode: Value) -> Cell:
    return Cell(
        {"attention-backend": attention, "kv-cache-dtype": kv, "nsa-decode-backend": decode}
    )


def test_the_strategy_sees_what_acts_and_the_launch_is_what_was_asked_for() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    first = outcome(1, cell_of("flashinfer", None, "flashmla_kv"), Verdict.NAN_IN_PROBS)
    watching = Watching(strategies.make("one-at-a-time"))
    step = decide(asking(seen, [first], watching, "first-serving")).step
    (cells, history), *_ = watching.seen
    assert cells is seen.cells
    assert dict(history[0].cell.values) == {
        "attention-backend": "flashinfer",
        "kv-cache-dtype": "fp8_e4m3",
        "nsa-decode-backend": inert.ALL_OTHERS,
    }
    assert isinstance(step, Launch)
    assert step.cell in [seen.asked_for(cell) for cell in seen.cells]


@dataclass(frozen=True)
class Again:
    """Wants the cell of the first attempt once more."""

    def decide(self, cells: Cells, history: Sequence[Evidence]) -> Launch | Finish:
        assert history[0].cell in list(cells)
        return Launch(history[0].cell, "its failure may be a flake")


def test_what_is_launched_again_is_launched_in_the_same_spelling() -> None:
    """In another one its server_args would be known, and it would be ended as an equal."""
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    spelled = cell_of("nsa", "fp8_e4m3", "flashmla_kv")
    assert seen.asked_for(seen.of(spelled)) != spelled
    failed = outcome(1, spelled, Verdict.CRASH)
    step = decide(asking(seen, [failed], Again(), "first-serving")).step
    assert isinstance(step, Launch)
    assert step.cell == spelled


def test_the_sentence_says_what_becomes_of_what_it_names() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    told = seen.told("changes kv-cache-dtype; chance 40 %", cell_of("nsa", None, "trtllm"))
    assert told == (
        "changes kv-cache-dtype; chance 40 % (kv-cache-dtype not passed resolves to fp8_e4m3)"
    )
    told = seen.told("with nsa-decode-backend", cell_of("flashinfer", "bf16", None))
    assert told.endswith("(nsa-decode-backend not passed: it selects nothing there)")


def test_an_inert_flag_is_no_difference_and_is_never_blamed() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    history = [
        Evidence(
            number=1,
            cell=seen.of(cell_of("nsa", "bf16", "flashmla_kv")),
            verdict=Verdict.SERVING,
            phase=Phase.DECODE,
        ),
        Evidence(
            number=2,
            cell=seen.of(cell_of("flashinfer", "bf16", "flashmla_kv")),
            verdict=Verdict.NAN_IN_PROBS,
            phase=Phase.DECODE,
            cause="nan-probability-tensor",
        ),
    ]
    assert history[0].cell.difference(history[1].cell) == ("attention-backend",)
    (row,) = blame.table(seen.cells.axes, history)
    assert dict(row.values) == {"attention-backend": "flashinfer"}
    assert row.status is blame.Status.PROVEN
    lone = blame.table(seen.cells.axes, history[1:])
    assert not any("nsa-decode-backend" in row.values for row in lone)


def test_the_signatures_word_against_an_inert_flag_is_not_heard() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    cell = cell_of("flashinfer", "bf16", None)
    failed = outcome(1, cell, Verdict.NAN_IN_PROBS, "nsa-decode-backend", "kv-cache-dtype")
    watching = Watching(strategies.make("adaptive"))
    decide(asking(seen, [failed], watching, "first-serving"))
    assert watching.seen[0][1][0].blames == ("kv-cache-dtype",)


def test_a_failure_with_an_inert_flag_does_not_speak_against_its_values() -> None:
    """Whatever decode backend a bf16 cell of flashinfer asks for, the next step is the same."""
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    steps = []
    for decode in (None, "flashmla_kv", "trtllm"):
        failed = outcome(1, cell_of("flashinfer", "bf16", decode), Verdict.NAN_IN_PROBS)
        step = decide(asking(seen, [failed], strategies.make("adaptive"), "first-serving")).step
        assert isinstance(step, Launch)
        steps.append(step.cell)
    assert len(set(steps)) == 1


def test_a_launch_that_came_out_otherwise_is_not_launched_for_ever() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    outcomes: list[Outcome] = []
    for number in range(1, 30):
        step = decide(asking(seen, outcomes, strategies.make("grid"), "map")).step
        if isinstance(step, Finish):
            break
        done = outcome(number, step.cell, Verdict.NAN_IN_PROBS)
        effective = {"attention-backend": "nsa", "kv-cache-dtype": "fp8_e5m2"}
        outcomes.append(replace(done, diagnosis=replace(done.diagnosis, effective=effective)))
    assert len(outcomes) == len(seen.cells)


def evidence(number: int, cell: Cell, *, serves: bool) -> Evidence:
    return Evidence(
        number=number,
        cell=cell,
        verdict=Verdict.SERVING if serves else Verdict.NAN_IN_PROBS,
        phase=Phase.DECODE,
        cause=None if serves else "nan-probability-tensor",
    )


def test_a_change_that_wakes_a_flag_is_taken_back_with_the_value_of_the_start() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    start = evidence(1, seen.of(cell_of("nsa", None, "trtllm")), serves=False)
    good = evidence(2, seen.of(cell_of("flashinfer", "bf16", None)), serves=True)
    strategy = strategies.make("adaptive", goal="explain")
    wanted = set()
    history = [start, good]
    while isinstance(step := strategy.decide(seen.cells, history), Launch):
        wanted.add(tuple(step.cell.values.values()))
        history.append(evidence(len(history) + 1, step.cell, serves=False))
    # Only the KV type back: then the decode backend acts again, as it did at the start.
    assert ("flashinfer", "fp8_e4m3", "trtllm") in wanted
    assert ("nsa", "bf16", "trtllm") in wanted


def test_a_matrix_of_which_nothing_is_left_is_not_said_to_have_been_tried() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    nothing = replace(
        asking(seen, [], strategies.make("adaptive"), "first-serving"),
        cells=Cells((ATTENTION,), []),
        effective=None,
    )
    assert decide(nothing).step == Finish(NONE_LEFT)


# -- hypotheses ---------------------------------------------------------------------------------


def test_a_claim_about_what_is_requested_speaks_of_what_that_becomes() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    claim = on_effective(Claim("fp8", {"kv-cache-dtype": (None,)}), seen)
    assert claim == Claim("fp8", {"kv-cache-dtype": ("fp8_e4m3",)})
    effective = on_effective(Claim("kv", {"effective.kv-cache-dtype": ("bfloat16",)}), seen)
    assert effective == Claim("kv", {"kv-cache-dtype": ("bf16",)})


def test_a_claim_about_a_value_that_acts_nowhere_asks_for_no_launch() -> None:
    seen = seen_of((Axis("attention-backend", ("flashinfer",)), KV, DECODE), lead_case)
    assert (
        on_effective(Claim("sparse", {"nsa-decode-backend": ("flashmla_sparse",)}), seen) is None
    )


def test_a_claim_is_decided_across_a_flag_that_it_wakes() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    claim = on_effective(Claim("bf16", {"kv-cache-dtype": ("bf16",)}), seen)
    assert claim is not None
    with_it = evidence(1, seen.of(cell_of("flashinfer", "bf16", None)), serves=True)
    step = next_decision(seen.cells, [with_it], [claim])
    assert step is not None
    assert step.cell.get("kv-cache-dtype") == "fp8_e4m3"
    assert step.cell.get("attention-backend") == "flashinfer"
    assert is_decided(claim, [with_it, evidence(2, step.cell, serves=False)])


def test_an_axis_that_is_inert_decides_nothing() -> None:
    seen = seen_of((ATTENTION, KV, DECODE), lead_case)
    claim = on_effective(Claim("trtllm", {"nsa-decode-backend": ("trtllm",)}), seen)
    assert claim is not None
    both = [
        Evidence(number=n, cell=seen.of(cell), verdict=Verdict.SERVING, phase=Phase.DECODE)
        for n, cell in enumerate(
            [cell_of("flashinfer", "bf16", "trtllm"), cell_of("flashinfer", "bf16", None)], start=1
        )
    ]
    assert not is_decided(claim, both)
