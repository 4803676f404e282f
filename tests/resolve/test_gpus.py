"""A GPU by name, or by architecture and memory."""

from __future__ import annotations

import pytest

from sglsweep.catalogue.gpus import described
from sglsweep.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "name", "arch", "count"),
    [
        ("h200", "NVIDIA H200", "sm90", None),
        ("sm120:96GB", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm120", None),
        ("RTX PRO 6000 Blackwell", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm120", None),
        ("8x RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm120", 8),
        ("sm_120:32GB", "NVIDIA GeForce RTX 5090", "sm120", None),
        ("4 x H100", "NVIDIA H100 80GB HBM3", "sm90", 4),
        ("sm121", "NVIDIA GB10", "sm121", None),
        ("sm100:999GB", "a GPU of sm100:999GB", "sm100", None),
    ],
)
def test_a_description_means_a_card(text: str, name: str, arch: str, count: int | None) -> None:
    card = described(text)
    assert (card.name, card.arch, card.count) == (name, arch, count)


@pytest.mark.parametrize(
    ("text", "what", "instead"),
    [
        ("sm120", "how much memory", "sm120:96GB"),
        ("h20000", "no GPU 'h20000'", "h200"),
        ("", "no GPU ''", "sm120:96GB"),
    ],
)
def test_a_description_that_means_none_is_refused(text: str, what: str, instead: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        described(text)
    assert what in refusal.value.message
    assert instead in refusal.value.next_step
