"""What a launch will come to: flags and world put together, before any process is started."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglsweep.rehearsal.arguments import Arguments, parse, requested_cell
from sglsweep.rehearsal.effective import ServerArgs, graph_sizes, resolve
from sglsweep.rehearsal.failures import Failure, failure_for
from sglsweep.rehearsal.memory import Memory, plan_memory
from sglsweep.rehearsal.world import Truth, deciding_rule, evaluate
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.matrix import Cell
    from sglsweep.rehearsal.settings import Settings, Stage

_HANGS = ("silent-hang", "busy-hang")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One launch, decided.

    Attributes:
        failure: how its end looks; None where it serves.
        at: which request sets the failure off, if that is what it waits for.
        sizes: batch sizes of the CUDA graphs.
    """

    stage: Stage
    world: str
    arguments: Arguments
    args: ServerArgs
    truth: Truth
    failure: Failure | None
    at: str
    mischief: tuple[str, ...]
    memory: Memory
    sizes: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """How many scheduler processes there are."""
        return self.stage.ranks or self.int_arg("tp_size") * self.int_arg("pp_size")

    def int_arg(self, name: str) -> int:
        """Return a whole number of `server_args`."""
        return int(str(self.args[name]))

    def strikes(self, phase: Phase) -> bool:
        """True if the launch ends in this phase."""
        return self.failure is not None and self.truth.phase is phase


def decide(settings: Settings, environment: Mapping[str, str]) -> Plan:
    """Work out a launch.

    Raises:
        UsageError: SGLang's parser would refuse the flags.
    """
    world, stage = settings.world, settings.stage
    arguments = parse(settings.sglang, stage.sglang_version, world.axes)
    effective = world.effective(requested_cell(arguments, world.axes, environment))
    truth = evaluate(world, effective, seed=int.from_bytes(os.urandom(4), "big"))
    rule = deciding_rule(world, effective)
    extra = settings.extras[world.rules.index(rule)] if rule else None
    mischief = (
        *settings.mischief,
        *(extra.mischief if extra else ()),
        *_habits(settings, effective),
    )
    truth, failure, at = _fate(truth, mischief, extra.shows if extra else "")
    if failure is not None:
        truth, failure = _explained(truth, failure, stage.sglang_version, environment)
    args = resolve(arguments, effective, stage)
    sizes = graph_sizes(args, int(str(args["max_running_requests"] or 2048)))
    cause = failure.cause[0] if failure else ""
    return Plan(
        stage=stage,
        world=world.name,
        arguments=arguments,
        args=args,
        truth=truth,
        failure=failure,
        at=(extra.at if extra and extra.at else at),
        mischief=mischief,
        memory=plan_memory(stage, args, cause, sizes),
        sizes=tuple(sizes),
    )


def _habits(settings: Settings, cell: Cell) -> tuple[str, ...]:
    """Return the bad behaviour that the world gives to a cell, whatever comes of it."""
    return tuple(
        name
        for habit in settings.habits
        if all(cell.get(axis) == value for axis, value in habit.when.items())
        for name in habit.does
    )


def _fate(
    truth: Truth, mischief: tuple[str, ...], shows: str
) -> tuple[Truth, Failure | None, str]:
    """Return the truth with bad behaviour that decides the end put on top of it."""
    for name in mischief:
        if name in _HANGS:
            serves = truth.verdict is Verdict.SERVING
            phase = Phase.GRAPH_CAPTURE if serves else truth.phase
            hang = Truth(Verdict.HANG, phase, "silent")
            return hang, failure_for(hang), "first"
        if name.startswith("dies-at-step"):
            step = Truth(Verdict.CRASH, Phase.DECODE, "flake")
            return step, failure_for(step), name.partition("=")[2] or "1"
    failure = failure_for(truth, shows)
    if failure is not None and failure.kind == "garbage":
        truth = replace(truth, phase=Phase.DECODE)
    return truth, failure, failure.at if failure else ""


def _explained(
    truth: Truth, failure: Failure, version: str, environment: Mapping[str, str]
) -> tuple[Truth, Failure]:
    """Let SGLang's aids have their effect: the NaN check of 0.5.23, and blocking launches."""
    checks_nan = environment.get("SGLANG_ENABLE_NAN_LOGITS_CHECK") == "1" and version != "0.5.9"
    if truth.verdict is Verdict.NAN_IN_PROBS and checks_nan:
        # The check looks at greedy requests too, so the warm-up is as far as it gets.
        checked = replace(truth, phase=Phase.WARMUP, cause="nan-logits")
        return checked, failure_for(checked) or failure
    if environment.get("CUDA_LAUNCH_BLOCKING") == "1":
        return truth, replace(failure, is_async=False)
    return truth, failure
