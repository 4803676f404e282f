from __future__ import annotations

import pytest

from sglsweep.catalogue import limits
from sglsweep.errors import ConfigError
from sglsweep.verdict import Phase


def test_every_phase_has_limits() -> None:
    assert set(limits.load().phases) == set(Phase)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_log_alone_gets_the_long_limit_after_a_compilers_line(phase: Phase) -> None:
    quiet = limits.quiet_s(phase)
    if phase in {Phase.READY, Phase.DECODE}:
        assert quiet is None
        assert limits.quiet_s(phase, is_compiling=True) is None
    else:
        assert quiet is not None
        assert limits.quiet_s(phase, is_compiling=True) == 1500 > quiet


def test_more_time_from_the_user_means_more_silence_too() -> None:
    changed = limits.load({"graph-capture": 3600}).phases[Phase.GRAPH_CAPTURE]
    assert (changed.cap_s, changed.quiet_s) == (3600, 3600)


def test_less_time_from_the_user_leaves_the_limit_of_silence() -> None:
    changed = limits.load({"graph-capture": 600}).phases[Phase.GRAPH_CAPTURE]
    assert (changed.cap_s, changed.quiet_s) == (600, 300)


def test_compiled_before_means_less_patience() -> None:
    assert limits.load().jit.cap_s == 2400
    assert limits.load(has_compiled_before=True).jit.cap_s == 600


@pytest.mark.parametrize("key", ["decode", "loading"])
def test_a_limit_that_means_nothing_is_refused_with_the_names_that_do(key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        limits.load({key: 60})
    assert "weights" in refused.value.next_step
    assert "ready" in refused.value.next_step
