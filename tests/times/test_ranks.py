from __future__ import annotations

import pytest

from sglsweep.ranks import RankWatch

PARENT = "python -m sglang.launch_server --tp-size 2"
TP0, TP1, DETOKENIZER = "sglang::scheduler_TP0", "sglang::scheduler_TP1 ", "sglang::detokenizer"


def first_gone(*looks: tuple[str, ...]) -> str:
    watch = RankWatch()
    for titles in looks:
        watch.look(titles)
    return watch.first_gone


def test_the_rank_that_is_missing_first_is_named() -> None:
    all_there = (PARENT, TP0, TP1, DETOKENIZER)
    assert first_gone(all_there, all_there) == ""
    assert first_gone(all_there, (PARENT, TP0), (PARENT,)) == "TP1"


def test_a_rank_is_named_as_log_lines_name_it() -> None:
    ranks = tuple(f"sglang::scheduler_DP{n}_TP{n}_EP{n}" for n in range(4))
    assert first_gone(ranks, ranks[:3]) == "DP3 TP3 EP3"


@pytest.mark.parametrize(
    "looks",
    [
        ((TP0, TP1), ()),
        ((TP0, TP1, "sglang::scheduler_TP2"), (TP0,), (TP0,)),
        (("sglang::scheduler",), ()),
        ((TP0,), (TP0, TP1)),
    ],
    ids=["all at once", "two at once", "one rank alone", "one came later"],
)
def test_nobody_is_named_where_nobody_knows(looks: tuple[tuple[str, ...], ...]) -> None:
    assert first_gone(*looks) == ""
