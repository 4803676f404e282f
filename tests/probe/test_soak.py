from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from probe.waves import answered
from sglsweep.attempt import StepState
from sglsweep.keeper_files import HttpResponse
from sglsweep.probe.soak import Soaking
from sglsweep.probe.target import Target
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGET = Target(context=8192, kv_tokens=100_000, max_running=256, vocab=32_000)


def idle_log(share: float) -> bytes:
    """What 0.5.23 writes when a request comes to an idle server."""
    return (
        b"Prefill batch, #new-seq: 4, #new-token: 184, #cached-token: 8, "
        b"token usage: %.2f, #running-req: 0, #queue-req: 0, #pending-token: 0\n" % share
    )


def soaked(*speeds: float, wave_s: float = 10.0, shares: Sequence[float] = ()) -> Soaking:
    """Soak for as long as there are speeds, one for each wave."""
    soaking = Soaking(TARGET, None, soak_s=wave_s * len(speeds))
    for at, speed in enumerate(speeds):
        step = soaking.next(wave_s * at)
        assert step is not None
        log = idle_log(shares[at]) if shares else b""
        soaking.judge(step, replace(answered(step, tokens_per_s=speed), log=log))
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


def test_a_pool_that_does_not_come_back_is_told() -> None:
    leaking = soaked(*[100.0] * 8, shares=[0.03, 0.05, 0.07, 0.09, 0.12, 0.14, 0.17, 0.19])
    assert leaking.step.state is StepState.SUSPECT
    assert "the idle KV pool went from 3% to 17% in use" in leaking.step.detail
    steady = soaked(*[100.0] * 8, shares=[0.03, 0.09, 0.03, 0.09, 0.09, 0.03, 0.09, 0.03])
    assert steady.step.state is StepState.OK
    assert (steady.soak.first_kv_share, steady.soak.last_kv_share) == (0.03, 0.03)


def test_a_server_that_hangs_in_its_soak_has_failed() -> None:
    soaking = Soaking(TARGET, None, soak_s=3600.0)
    step = soaking.next(1500.0)
    assert step is not None
    late = [HttpResponse(id=r.id, error="timeout", elapsed_s=330.0) for r in step.requests]
    soaking.judge(step, replace(answered(step, tokens_per_s=1.0), responses=late))
    assert soaking.step.verdict is Verdict.HANG
    assert "hung in a soak, 4 at once, after 25 minutes" in soaking.step.detail


def test_a_soak_that_is_cut_short_says_so_and_fails_nothing() -> None:
    soaking = Soaking(TARGET, None, soak_s=3600.0)
    step = soaking.next(0.0)
    assert step is not None
    soaking.judge(step, answered(step, tokens_per_s=100.0))
    soaking.cut("stopped by the user", 12.0)
    assert soaking.next(13.0) is None
    assert soaking.step.state is StepState.OK
    assert "cut short: stopped by the user" in soaking.step.detail
    assert soaking.soak.is_cut


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
