"""After the proof: how many requests at once a server bears, how fast, and for how long."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING

from sglsweep.ask import ask, run_tool
from sglsweep.attempt import EndKind, ProofStep, StepState
from sglsweep.events import StepAsked
from sglsweep.probe.ladder import WARM_UP, Climb, collapsed
from sglsweep.probe.load_result import read_wave, rung_of
from sglsweep.probe.load_tool import (
    BENCH_SERVING,
    OWN,
    LoadTool,
    Shot,
    ToolCommand,
    command,
    tool_of,
    why_not,
)
from sglsweep.probe.quality import Questioning
from sglsweep.probe.soak import Soaking
from sglsweep.probe.steps import failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglsweep.ask import Followed, Waited
    from sglsweep.attempt import End, Rung
    from sglsweep.keeper_files import ToolAnswer
    from sglsweep.probe.load_result import Wave
    from sglsweep.probe.steps import ProofStepPlan
    from sglsweep.probe.target import QualitySettings, Target, Traffic

_LADDER_S = 1800.0
"""No further rung is begun after this long."""
_CUT_SHORT = frozenset({EndKind.INTERRUPTED, EndKind.DEADLINE})
"""Ends from outside: they say nothing of the server, whose proof still holds."""
_SHOWN = 160


def climb(
    followed: Followed, target: Target, traffic: Traffic, told: Callable[[Climb], None]
) -> tuple[Climb, End | None]:
    """Climb the ladder; an end seen meanwhile comes with what was measured until then.

    Args:
        followed: the attempt.
        target: its server, proven.
        traffic: what to ask.
        told: called with the ladder after each rung.
    """
    climbing = _Climbing(followed, target, traffic)
    clock = followed.site.clock
    began = clock.now()
    end: End | None = None
    while end is None and (plan := climbing.ladder.next()) is not None:
        rung, end = climbing.measure(plan)
        if rung is not None:
            step = _told(rung, plan.name)
            followed.site.listener.tell(StepAsked(attempt=followed.attempt, step=step))
        if clock.now() - began > _LADDER_S:
            climbing.ladder.stop(f"its {_LADDER_S / 60:.0f} minutes are over")
        told(climbing.ladder)
    return climbing.ladder, end


class _Climbing:
    """One ladder, with the tool that asks."""

    def __init__(self, followed: Followed, target: Target, traffic: Traffic) -> None:
        self._followed = followed
        self._target = target
        self.ladder = Climb(target, traffic)
        self._tool = self._chosen(traffic) if traffic.tool != OWN else None
        self.ladder.tool = self._tool.title if self._tool else OWN

    def measure(self, plan: ProofStepPlan) -> tuple[Rung | None, End | None]:
        """Measure one rung; None where it is none, or broke."""
        if self._tool is None or plan.name == WARM_UP:
            asked, end = ask(self._followed, plan)
            if end is not None and end.kind in _CUT_SHORT:
                return self._cut(end)
            return self.ladder.judge(plan, asked), end
        return self._by_tool(self._tool, plan)

    def _chosen(self, traffic: Traffic) -> LoadTool | None:
        """Return the tool that is wanted, or say why the own ladder stands in for it."""
        attempt, name = self._followed.attempt, traffic.tool
        found = _look_for(self._followed, [traffic.program or name])
        why = why_not(name, found, self._target)
        if not why:
            return tool_of(name, found, attempt.python)
        # A rehearsal has no SGLang: nobody wonders at the absence of its benchmark.
        is_made_up = "sglsweep.rehearsal" in attempt.argv and name == BENCH_SERVING
        self.ladder.note = "" if is_made_up else why
        return None

    def _cut(self, end: End) -> tuple[None, End]:
        self.ladder.stop(f"cut short: {end.detail}", is_cut=True)
        return None, end

    def _by_tool(self, tool: LoadTool, plan: ProofStepPlan) -> tuple[Rung | None, End | None]:
        traffic = self.ladder.traffic
        shot = Shot(
            url=f"http://127.0.0.1:{self._followed.attempt.port}",
            at_once=plan.concurrency,
            count=len(plan.requests),
            seed=1 + plan.concurrency,
            within_s=plan.timeout_s,
        )
        waited = run_tool(self._followed, command(tool, self._target, traffic, shot))
        if waited.end is not None and waited.end.kind in _CUT_SHORT:
            return self._cut(waited.end)
        if waited.end is not None or _is_gone(waited.answer):
            self.ladder.break_at(plan, failed(plan, f"died in {plan.says}", verdict=None))
            return None, waited.end
        answer = waited.answer
        self._keep(plan, answer)
        wave = read_wave(tool.name, answer.files) if answer is not None else None
        if answer is None or answer.exit_status != 0 or wave is None or not wave.served:
            return self._after_failure(tool, plan, _words(answer, wave))
        if (broke := collapsed(plan, wave.texts, self._target)) is not None:
            self.ladder.break_at(plan, broke)
            return None, None
        return self.ladder.take(_rung(plan, wave, waited, traffic)), None

    def _keep(self, plan: ProofStepPlan, answer: ToolAnswer | None) -> None:
        if answer is not None:
            texts = {"output": answer.output, **{n: t for n, t in answer.files.items() if t}}
            number = self._followed.attempt.number
            self._followed.site.journal.keep_tool(number, plan.name, texts)

    def _after_failure(
        self, tool: LoadTool, plan: ProofStepPlan, words: str
    ) -> tuple[None, End | None]:
        """Ask whether it is the server that failed; if not, go on without the tool."""
        question = replace(self.ladder.ask_once(), says=plan.says, name=plan.name)
        asked, end = ask(self._followed, question)
        if end is not None and end.kind in _CUT_SHORT:
            return self._cut(end)
        self.ladder.judge(question, asked, counts=False)
        if self.ladder.broke is None:
            self._tool = None
            said = f"{tool.title} failed: {words}"
            if self.ladder.rungs:
                # Another tool's numbers would not continue these.
                self.ladder.stop(said)
            else:
                self.ladder.tool, self.ladder.note = OWN, said
        return None, end


def _look_for(followed: Followed, names: list[str]) -> Mapping[str, object]:
    """Return what `onhost/loadtools.py` says; empty where it cannot be run."""
    source = (resources.files("sglsweep.onhost") / "loadtools.py").read_text("utf-8")
    argv = (followed.attempt.python, "-c", source, *names)
    waited = run_tool(followed, ToolCommand(argv=argv, read=(), timeout_s=60.0))
    lines = waited.answer.output.strip().splitlines() if waited.answer is not None else []
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_gone(answer: ToolAnswer | None) -> bool:
    return answer is not None and answer.error in {"server-gone", "ended"}


def _words(answer: ToolAnswer | None, wave: Wave | None) -> str:
    """Return why a tool's run is no measurement, in its own words."""
    if answer is None or answer.error is not None:
        return "no answer" if answer is None else str(answer.error)
    if wave is not None and wave.complaint:
        return wave.complaint[:_SHOWN]
    lines = [line.strip() for line in answer.output.splitlines() if line.strip()]
    last = lines[-1] if lines else "it says nothing"
    return f"exit status {answer.exit_status}: {last[:_SHOWN]}"


def _rung(plan: ProofStepPlan, wave: Wave, waited: Waited[ToolAnswer], traffic: Traffic) -> Rung:
    rung = rung_of(
        wave, at_once=plan.concurrency, asked=len(plan.requests), also=tuple(traffic.slo)
    )
    return replace(rung, numbers={**rung.numbers, **waited.numbers})


def _told(rung: Rung, name: str) -> ProofStep:
    first, each = rung.numbers.get("ttft_p99_s"), rung.numbers.get("tpot_p50_s")
    words = [f"{rung.tokens_per_s:.0f} tokens/s"]
    words += [f"first token {first * 1000:.0f} ms at p99"] if first is not None else []
    words += [f"{each * 1000:.1f} ms a token"] if each is not None else []
    words += [f"{rung.errors} of {rung.requests} failed"] if rung.errors else []
    words += ["beyond the objectives"] if rung.meets_slo is False else []
    return ProofStep(name=name, state=StepState.OK, detail=", ".join(words))


def question(
    followed: Followed,
    target: Target,
    wanted: QualitySettings,
    told: Callable[[Questioning], None],
) -> tuple[Questioning, End | None]:
    """Ask whether it is the same model; `told` hears of every step."""
    questioning = Questioning(target, wanted)
    end: End | None = None
    while end is None and (plan := questioning.next()) is not None:
        asked, end = ask(followed, plan)
        if end is None or end.kind not in _CUT_SHORT:
            questioning.judge(plan, asked)
        told(questioning)
    return questioning, end


def soak(
    followed: Followed,
    target: Target,
    traffic: Traffic | None,
    *,
    soak_s: float,
    told: Callable[[Soaking], None],
) -> tuple[Soaking, End | None]:
    """Keep asking at a modest load for so long; `told` hears of every wave."""
    soaking, clock = Soaking(target, traffic, soak_s=soak_s), followed.site.clock
    began = clock.now()
    end: End | None = None
    while end is None and (plan := soaking.next(clock.now() - began)) is not None:
        asked, end = ask(followed, plan)
        if end is not None and end.kind in _CUT_SHORT:
            soaking.cut(end.detail, clock.now() - began)
        else:
            soaking.judge(plan, asked)
        told(soaking)
    return soaking, end
