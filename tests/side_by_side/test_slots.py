from __future__ import annotations

from typing import Any

import pytest

from sglsweep.attempt import Attempt
from sglsweep.config.hosts import HostConfig
from sglsweep.keeper_files import GpuBefore
from sglsweep.matrix import Cell, Value
from sglsweep.slots import Place, Slots, Wanted, alone_because, cards_of, slots_of, used_before

EIGHT = {"gpus": [{"index": number} for number in range(8)]}
ONE = {"gpus": [{"index": 0}]}
NONE: dict[str, Any] = {"gpus": []}


def slots(count: int, facts: dict[str, Any], gpus: tuple[int, ...] | None = None) -> Slots:
    return slots_of(HostConfig(name="h", slots=count, gpus=gpus), facts)


def cards(found: Slots, *, is_made_up: bool = False) -> list[tuple[int, ...] | None]:
    return [found.place(n, {}, is_made_up=is_made_up).gpus for n in range(found.count)]


def test_cards_are_divided_evenly_and_in_order() -> None:
    assert cards(slots(2, EIGHT, (0, 1, 4, 5))) == [(0, 1), (4, 5)]
    assert cards(slots(4, EIGHT)) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert cards(slots(3, EIGHT)) == [(0, 1), (2, 3), (4, 5)]
    assert not slots(3, EIGHT).place(0, {}, is_made_up=False).shares_memory


def test_more_slots_than_cards_have_one_card_each_in_turn_and_share_it() -> None:
    assert cards(slots(3, EIGHT, (2, 7))) == [(2,), (7,), (2,)]
    assert slots(3, EIGHT, (2, 7)).place(1, {}, is_made_up=False).shares_memory
    assert cards(slots(2, ONE)) == [(0,), (0,)]


def test_one_slot_has_the_cards_of_its_host_and_is_alone() -> None:
    assert slots(1, EIGHT).place(0, {}, is_made_up=False) == Place(gpus=None)
    assert slots(1, EIGHT, (3,)).place(0, {}, is_made_up=False) == Place(gpus=(3,))


def test_the_environment_s_own_choice_limits_what_is_divided() -> None:
    limited = {**EIGHT, "environment": {"CUDA_VISIBLE_DEVICES": "4, 6"}}
    assert cards(slots(2, limited)) == [(4,), (6,)]
    by_name = {**EIGHT, "environment": {"CUDA_VISIBLE_DEVICES": "GPU-8f2a"}}
    assert cards(slots(2, by_name)) == [None, None]


def test_cards_that_the_sweep_chooses_are_those_of_every_slot() -> None:
    place = slots(2, EIGHT).place(1, {"CUDA_VISIBLE_DEVICES": "5"}, is_made_up=False)
    assert place.gpus is None
    assert place.shares_memory
    assert place.env({"CUDA_VISIBLE_DEVICES": "5"}) == {"CUDA_VISIBLE_DEVICES": "5"}


def test_without_a_card_the_host_s_memory_is_shared_but_not_by_a_rehearsal() -> None:
    assert slots(2, NONE).place(0, {}, is_made_up=False).shares_memory
    assert not slots(2, NONE).place(0, {}, is_made_up=True).shares_memory
    assert slots(2, {"gpus": None}).place(0, {}, is_made_up=False).shares_memory


def test_a_place_says_its_cards_in_the_environment_by_their_place_on_the_bus() -> None:
    env = Place(gpus=(4, 5)).env({"A": "b"})
    assert env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "A": "b", "CUDA_VISIBLE_DEVICES": "4,5"}
    assert Place(gpus=()).env({})["CUDA_VISIBLE_DEVICES"] == ""


SHARED = slots(2, ONE)
APART = slots(2, EIGHT)


def why(found: Slots, argv: str, cell: dict[str, Value] | None = None, **more: bool) -> str:
    wanted = Wanted(cell=Cell(cell or {}), argv=argv.split(), **more)
    return alone_because(wanted, found.place(1, {}, is_made_up=False), found)


@pytest.mark.parametrize(
    ("found", "argv", "cell"),
    [
        (APART, "--tp 4", {}),
        (APART, "--mem-fraction-static 0.9", {"mem-fraction-static": 0.9}),
        (APART, "--tp 8 --nnodes 2", {}),
        (SHARED, "--max-total-tokens 4096", {}),
        (SHARED, "--mem-fraction-static 0.4", {}),
        (SHARED, "--max-total-tokens 4096", {"mem-fraction-static": None}),
    ],
)
def test_what_may_have_neighbours(found: Slots, argv: str, cell: dict[str, Value]) -> None:
    assert why(found, argv, cell) == ""


@pytest.mark.parametrize(
    ("found", "argv", "cell", "said"),
    [
        (APART, "--tp 8", {}, "cells that need 8 GPUs (a slot has 4)"),
        (APART, "--tp-size 2 --pp 4", {}, "need 8 GPUs"),
        (APART, "--tp 4 --dp 2", {}, "need 8 GPUs"),
        (APART, "--tp 4 --dp 4 --enable-dp-attention", {}, "DP attention"),
        (APART, "--nccl-port 5000", {}, "nccl-port"),
        (SHARED, "", {}, "max-total-tokens is one"),
        (SHARED, "--mem-fraction-static 0.8", {}, "without a cap on memory"),
        (
            SHARED,
            "--max-total-tokens 4096 --mem-fraction-static 0.3",
            {"mem-fraction-static": 0.3},
            "that name mem-fraction-static",
        ),
    ],
)
def test_what_has_to_run_alone(found: Slots, argv: str, cell: dict[str, Value], said: str) -> None:
    assert said in why(found, argv, cell)


def test_repeats_and_speeds_on_a_shared_card_have_to_be_alone() -> None:
    assert why(APART, "", is_repeat=True)
    assert why(SHARED, "--max-total-tokens 4096", is_measured=True)
    assert not why(APART, "", is_measured=True)


def test_what_is_alone_already_needs_no_reason() -> None:
    wanted = Wanted(cell=Cell({}), argv=(), is_repeat=True)
    assert not alone_because(wanted, SHARED.alone({}), SHARED)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (slots(2, EIGHT), "2 slots, ports 31000 to 31001, GPUs 0,1,2,3 | 4,5,6,7"),
        (slots(3, ONE), "3 slots, ports 31000 to 31002, GPUs 0 | 0 | 0 (memory shared)"),
        (slots(2, NONE), "2 slots, ports 31000 to 31001, no GPU"),
        (slots(2, {}), "2 slots, ports 31000 to 31001, GPUs unknown"),
    ],
)
def test_one_line_says_which_slot_has_what(found: Slots, said: str) -> None:
    assert found.told(31000) == said


def launched(*argv: str, gpus: tuple[int, ...] | None = None, **env: str) -> Attempt:
    return Attempt(
        number=1,
        cell=Cell({}),
        build="gpu",
        model="m",
        python="python",
        argv=("-m", "sglang.launch_server", *argv),
        env=env,
        launch_key="k",
        host="h",
        port=30000,
        why="",
        started_at="2026-11-29T20:00:00Z",
        keeper_dir="/d",
        gpus=gpus,
    )


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (launched(), (0,)),
        (launched("--tp-size", "2", "--pp-size=2"), (0, 1, 2, 3)),
        (launched("--base-gpu-id", "2", "--tp", "2", "--gpu-id-step", "2"), (2, 4)),
        (launched("--tp-size", "2", gpus=(4, 5, 6)), (4, 5)),
        (launched(CUDA_VISIBLE_DEVICES="6,7"), (6,)),
        (launched(CUDA_VISIBLE_DEVICES="GPU-8f2a"), None),
        (launched("--tp-size", "16"), tuple(range(8))),
    ],
)
def test_a_server_computes_on_the_first_cards_that_it_sees(
    attempt: Attempt, expected: tuple[int, ...] | None
) -> None:
    assert cards_of(attempt, EIGHT) == expected


def test_what_is_held_on_a_card_beside_the_servers_own_takes_nothing_from_it() -> None:
    before = GpuBefore(used_mib=(4, 60_000, *[4] * 6))
    assert used_before(before, launched(), EIGHT) == {0: 4}
    assert used_before(before, launched("--tp-size", "2"), EIGHT) == {0: 4, 1: 60_000}


def test_figures_of_watched_cards_have_those_cards_numbers() -> None:
    before = GpuBefore(used_mib=(4, 60_000))
    assert used_before(before, launched("--tp", "2", gpus=(4, 5)), EIGHT) == {4: 4, 5: 60_000}


def test_where_nobody_knows_the_servers_cards_every_card_counts() -> None:
    before = GpuBefore(used_mib=(4, 60_000))
    assert used_before(before, launched(), {}) == {0: 4, 1: 60_000}
