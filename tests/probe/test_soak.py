from __future__ import annotations

from dataclasses import replace

from probe.waves import answered
from sglsweep.attempt import StepState
from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.soak import Soaking
from sglsweep.probe.target import Target

TARGET = Target(context=8192, kv_tokens=100_000, max_running=256, vocab=32_000)


def soaked(*speeds: float, wave_s: float = 10.0) -> Soaking:
    """Soak for as long as there are speeds, one for each wave."""
    soaking = Soaking(TARGET, None, soak_s=wave_s * len(speeds))
    for at, speed in enumerate(speeds):
        step = soaking.next(wave_s * at)
        assert step is not None
        soaking.judge(step, answered(step, tokens_per_s=speed))
    assert soaking.next(wave_s * len(speeds)) is None
    return soaking


def test_a_steady_server_has_borne_its_soak() -> None:
    soaking = soaked(100.0, 99.0, 101.0, 100.0)
    assert soaking.step.state is StepState.OK
    assert "64 requests in 40 s, 4 at once" in soaking.step.detail
    assert soaking.soak.errors == 0
    assert soaking.soak.lasted_s == soaking.soak.asked_s == 40.0


def test_a_server_that_becomes_slower_is_told() -> None:
    soaking = soaked(100.0, 90.0, 80.0, 60.0)
    assert soaking.step.state is StepState.SUSPECT
    assert "it became slower" in soaking.step.detail
    assert (soaking.soak.first_tokens_per_s, soaking.soak.last_tokens_per_s) == (100.0, 60.0)


def test_a_server_that_dies_in_its_soak_has_failed_and_says_when() -> None:
    soaking = Soaking(TARGET, None, soak_s=3600.0)
    step = soaking.next(1500.0)
    assert step is not None
    dead = [HttpResponse(id=r.id, error="reset") for r in step.requests]
    soaking.judge(step, replace(answered(step, tokens_per_s=1.0), responses=dead))
    assert soaking.next(1510.0) is None
    assert soaking.step.state is StepState.FAILED
    assert "died in a soak, 4 at once, after 25 minutes" in soaking.step.detail


def test_waves_never_repeat_a_prompt() -> None:
    soaking = Soaking(TARGET, None, soak_s=100.0)
    prompts = []
    for at in range(3):
        step = soaking.next(float(at))
        assert step is not None
        prompts += [str(r.body) for r in step.requests]
        soaking.judge(step, answered(step, tokens_per_s=100.0))
    assert len(set(prompts)) == len(prompts)
