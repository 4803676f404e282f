"""What so few questions can tell, and how it is said."""

from __future__ import annotations

import pytest

from sglsweep.report.quality import Compared, told


def split(*, shared: int, there: int, here: int) -> Compared:
    """Answers that differ: `there` right only in the reference, `here` right only in this cell."""
    both = shared - there - here
    return Compared(
        against="attempt 1",
        shared=shared,
        right=both + here,
        right_there=both + there,
        only_there=there,
        only_here=here,
        same_text=0,
        with_text=0,
    )


@pytest.mark.parametrize(("found", "score", "says"), [
    (split(shared=12, there=0, here=0), "12 of 12 right, 12 of 12", "no difference seen"),
    (
        split(shared=12, there=1, here=0),
        "11 of 12 right, 12 of 12", "no difference that 12 questions could show (p = 1)",
    ),
    (
        split(shared=12, there=4, here=0),
        "8 of 12 right, 12 of 12", "far fewer, though 12 questions prove little (p = 0.12)",
    ),
    (
        split(shared=12, there=7, here=0),
        "5 of 12 right, 12 of 12", "worse beyond chance (p = 0.016)",
    ),
    (
        split(shared=12, there=0, here=7),
        "12 of 12 right, 5 of 12", "better beyond chance (p = 0.016)",
    ),
    (
        split(shared=12, there=3, here=3),
        "9 of 12 right, 9 of 12", "no difference seen",
    ),
])  # fmt: skip
def test_a_claim_is_no_stronger_than_its_questions(found: Compared, score: str, says: str) -> None:
    assert told(found) == f"{score} in attempt 1; {says}"


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (split(shared=12, there=1, here=0), False),
        (split(shared=12, there=3, here=0), True),
        (split(shared=100, there=13, here=0), True),  # 76 % against 89 %
        (split(shared=100, there=13, here=11), False),
        (split(shared=2, there=1, here=0), False),
    ],
)
def test_far_fewer_right_answers_are_warned_of(found: Compared, *, is_told: bool) -> None:
    assert found.is_far_below is is_told
