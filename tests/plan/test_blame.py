"""The blame table: what fails, and what shows it."""

from __future__ import annotations

from plan.history import AXES, failed, lost, served
from sglsweep.plan import blame
from sglsweep.plan.blame import Status
from sglsweep.verdict import Phase


def test_no_history_blames_nothing() -> None:
    assert blame.table(AXES, []) == ()
    assert blame.table(AXES, [lost(1, 0, 0, 0, 0)]) == ()


def test_a_pair_that_differs_in_one_flag_proves_it() -> None:
    (row,) = blame.table(AXES, [failed(1, 0, 0, 0, 0), served(2, 1, 0, 0, 0)])
    assert row.values == {"attention-backend": "flashinfer"}
    assert (row.status, row.pairs, row.chance) == (Status.PROVEN, ((2, 1),), 1.0)


def test_without_such_a_pair_it_is_supported_only() -> None:
    history = [failed(1, 0, 0, 0, 0), failed(2, 0, 1, 1, 1), served(3, 1, 2, 0, 1)]
    (row,) = blame.table(AXES, history)
    assert row.values == {"attention-backend": "flashinfer"}
    assert row.status is Status.SUPPORTED
    assert row.attempts_for == (1, 2)
    assert 0 < row.chance < 1


def test_two_flags_are_proven_by_a_pair_for_each() -> None:
    history = [failed(1, 0, 0, 0, 0), served(2, 1, 0, 0, 0), served(3, 0, 1, 0, 0)]
    (row,) = blame.table(AXES, history)
    assert row.values == {"attention-backend": "flashinfer", "kv-cache-dtype": None}
    assert row.status is Status.PROVEN
    assert row.pairs == ((2, 1), (3, 1))


def test_one_pair_of_two_flags_proves_neither() -> None:
    history = [
        failed(1, 0, 0, 0, 0),
        served(2, 1, 1, 0, 0),
        served(3, 0, 2, 1, 1),
        served(4, 2, 0, 1, 1),
    ]
    (row,) = blame.table(AXES, history)
    assert row.status is Status.SUPPORTED


def test_a_blamed_value_that_serves_elsewhere_is_refuted() -> None:
    history = [
        failed(1, 0, 0, 0, 0, blames=("moe-runner-backend",)),
        failed(2, 0, 1, 0, 1, blames=("moe-runner-backend",)),
        served(3, 1, 2, 0, 1),
    ]
    rows = blame.table(AXES, history)
    refuted = [row for row in rows if row.status is Status.REFUTED]
    assert [row.values for row in refuted] == [{"moe-runner-backend": "cutlass"}]
    assert refuted[0].attempts_for == (1, 2)
    assert refuted[0].attempts_against == (3,)


def test_each_cause_has_a_row_of_its_own() -> None:
    history = [
        failed(1, 0, 0, 0, 0),
        served(2, 1, 0, 0, 0),
        failed(3, 1, 0, 1, 0, cause="nan-in-probs", phase=Phase.DECODE),
    ]
    rows = blame.table(AXES, history)
    assert [row.cause for row in rows] == ["unsupported-arch", "nan-in-probs"]
    assert rows[1].values == {"moe-runner-backend": "triton"}
    assert rows[1].status is Status.PROVEN


def test_a_failure_that_did_not_repeat_blames_nothing_and_is_called_a_flake() -> None:
    history = [failed(1, 0, 0, 0, 0), served(2, 0, 0, 0, 0)]
    assert blame.table(AXES, history) == ()
    assert blame.flakes(AXES, history) == (1,)
