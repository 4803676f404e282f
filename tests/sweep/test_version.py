"""Which SGLang an attempt ran, where its log does not say."""

from __future__ import annotations

import pytest

from sglsweep import catalogue
from sglsweep.attempt import End, EndKind
from sglsweep.drive import final_diagnosis, version_of
from sglsweep.triage.follow import Follower


@pytest.mark.parametrize(
    ("facts", "version"),
    [
        ({"builds": {"gpu": {"sglang": "0.5.17"}}}, "0.5.17"),
        ({"builds": {"other": {"sglang": "0.5.17"}}}, None),
        ({"builds": {"gpu": {"error": "no module"}}}, None),
        ({}, None),
    ],
)
def test_a_diagnosis_gets_the_version_that_its_log_does_not_name(
    facts: dict[str, object], version: str | None
) -> None:
    follower = Follower(catalogue.load())
    follower.feed(b"[2026-11-29 19:09:03] The server is fired up and ready to roll!\n")
    ended = End(kind=EndKind.INTERRUPTED)
    told = final_diagnosis(follower, ended, None, None, version=version_of("gpu", facts))
    assert told.sglang_version == version
