"""Halves stand for the cells exactly."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sglsweep.plan.split import split_of


@given(
    st.integers(1, 5).flatmap(
        lambda axes: st.lists(
            st.tuples(*[st.integers(0, 3)] * axes), min_size=1, max_size=60, unique=True
        )
    )
)
def test_halves_put_together_are_the_cells(rows: list[tuple[int, ...]]) -> None:
    codes = np.asarray(rows, dtype=np.int16)
    split = split_of(codes)
    pairs = [[*left, *right] for left in split.left.tolist() for right in split.right.tolist()]
    place = range(len(pairs)) if split.place is None else split.place
    assert [pairs[at] for at in place] == codes.tolist()


def test_a_whole_product_needs_few_halves_and_no_look_up() -> None:
    codes = np.indices((3, 5, 6, 4, 4, 3, 2, 4)).reshape(8, -1).T.astype(np.int16)
    split = split_of(codes)
    assert len(split.left) + len(split.right) < 500
    assert split.place is None


def test_scattered_cells_stay_whole() -> None:
    codes = np.diag(np.arange(1, 40)).astype(np.int16)
    assert len(split_of(codes).right) == 39
