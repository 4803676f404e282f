"""The loop: decide, launch, follow, prove, stop, diagnose, record; until nothing is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep import beforehand, report
from sglsweep.attempt import Attempt
from sglsweep.catalogue import limits as phase_limits
from sglsweep.catalogue import startup
from sglsweep.clock import stamp
from sglsweep.conclude import LATE, nan_check
from sglsweep.drive import finish_stopping, run_attempt, take_over
from sglsweep.errors import HostError
from sglsweep.events import Note
from sglsweep.flags import Command, Target, launch_argv
from sglsweep.forewarn import Foreseen, foresee_launch
from sglsweep.plan import memory, strategies
from sglsweep.plan.decide import ALL_EQUAL, NONE_LEFT, Decision, decide
from sglsweep.plan.effective import as_requested
from sglsweep.plan.goal import Goal
from sglsweep.plan.hypotheses import Claim, on_effective
from sglsweep.plan.ordered import ALL_TRIED
from sglsweep.plan.question import Auto, Beforehand, Question, at_start
from sglsweep.plan.spent import spent_s
from sglsweep.plan.stages import Budget
from sglsweep.plan.strategy import Finish
from sglsweep.probe.target import (
    USUAL_RUNGS,
    KnownAnswer,
    Need,
    ProbeSettings,
    QualityQuestion,
    QualitySettings,
    Traffic,
)
from sglsweep.resolve import Asking, resolve_cells, unasked
from sglsweep.run_facts import acting_in, run_facts, told_before
from sglsweep.site import Site
from sglsweep.slots import slots_of
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.catalogue import Catalogue
    from sglsweep.catalogue.gpus import Gpu
    from sglsweep.clock import Clock
    from sglsweep.config.sweep import Sweep
    from sglsweep.events import Listener
    from sglsweep.flags import FlagTable
    from sglsweep.journal import Journal
    from sglsweep.matrix import Cell, Value
    from sglsweep.plan.effective import EffectiveCells
    from sglsweep.plan.hints import Hint
    from sglsweep.plan.prior import Taken
    from sglsweep.plan.strategy import Evidence, Strategy
    from sglsweep.plan.strategy import Launch as LaunchStep
    from sglsweep.prepare import Ground
    from sglsweep.slots import Place

LOST_IN_A_ROW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a sweep chooses.

    Attributes:
        slots: attempts at once; None = what the host's entry in hosts.yaml says.
        order: flags whose values strategy pairwise combines first.
    """

    strategy: str = strategies.DEFAULT
    seed: int = 0
    order: int = 2
    slots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeping:
    """A sweep and everything it acts through."""

    ground: Ground
    journal: Journal
    catalogue: Catalogue
    clock: Clock
    listener: Listener
    settings: Settings


def run_sweep(sweeping: Sweeping) -> str:
    """Sweep until the goal, the budget or the matrix ends; return why it ended.

    What an earlier call left running is taken over first; what is finished is never repeated.
    """
    settle(sweeping)
    lost = 0
    while True:
        decision = next_step(sweeping)
        record_decision(sweeping, decision)
        if isinstance(decision.step, Finish):
            return decision.step.why
        outcome = launch_step(sweeping, decision.step)
        report.write(sweeping.journal)
        lost = lost + 1 if is_lost(outcome) else 0
        if lost >= LOST_IN_A_ROW:
            raise lost_too_often(sweeping, lost, outcome)


def sweep_in_portions(sweeping: Sweeping, sweep: Callable[[Sweeping], str]) -> str:
    """Sweep; and again with more of a matrix that is too large to be asked about at once."""
    why, portions = sweep(sweeping), 1
    ends = (ALL_TRIED, ALL_EQUAL, NONE_LEFT)
    while any(end in why for end in ends) and (left := unasked(sweeping.ground)):
        portions += 1
        text = f"asking SGLang about further cells of the matrix: {left:,} are left"
        sweeping.listener.tell(Note(text=text))
        cache = sweeping.journal.folder / "resolved"
        ground = ask_first(sweeping.ground, cache=cache, portions=portions)
        if unasked(ground) >= left:
            return f"{why}; SGLang could not be asked about the {left:,} cells that are left"
        sweeping = replace(sweeping, ground=ground)
        why = sweep(sweeping)
    return why


def is_lost(outcome: Outcome) -> bool:
    """Tell whether an attempt ended by the host or by another process there, by no flag.

    Or by its deadline on the host: that says nothing of the cell, which would go again for ever.
    """
    is_late = outcome.diagnosis.cause == LATE
    return outcome.verdict is Verdict.HOST_LOST or outcome.is_from_outside or is_late


def lost_too_often(sweeping: Sweeping, lost: int, last: Outcome) -> HostError:
    """Return the refusal to go on with a host that loses one attempt after another."""
    if last.is_from_outside:
        cause = last.diagnosis.cause
        return HostError(
            f"{sweeping.ground.host.name}: {lost} attempts in a row came to nothing by what else "
            f"runs there, the last by {cause}",
            next_step=f"{last.diagnosis.next_step} Then run the same command again.",
        )
    if last.diagnosis.cause == LATE:
        return HostError(
            f"{sweeping.ground.host.name}: {lost} attempts in a row came to no answer before "
            "their deadline there",
            next_step="See in their logs what took so long; `limits: {ready: ...}` moves it.",
        )
    return HostError(
        f"{sweeping.ground.host.name}: lost {lost} attempts in a row",
        next_step="Look after the machine, then run the same command again.",
    )


def settle(sweeping: Sweeping) -> None:
    """See attempts through that an earlier call left open."""
    for outcome in sweeping.journal.stopping_outcomes():
        finish_stopping(site_for(sweeping), outcome)
        report.write(sweeping.journal)
    for attempt in sweeping.journal.open_attempts():
        take_over(site_for(sweeping), attempt, sweeping.journal.opening_facts(attempt.number))
        report.write(sweeping.journal)


def next_step(
    sweeping: Sweeping,
    *,
    supposing: tuple[Outcome, ...] = (),
    running: Sequence[Attempt] = (),
    is_budgeted: bool = True,
) -> Decision:
    """Decide on what the journal holds, and on what is only supposed to come to it.

    Args:
        sweeping: the sweep.
        supposing: outcomes that are only supposed.
        running: attempts whose cells are taken, and tell nothing yet.
        is_budgeted: as far as the budget reaches.
    """
    ground, sweep = sweeping.ground, sweeping.ground.sweep
    outcomes = (*sweeping.journal.history(), *supposing)
    question = Question(
        cells=ground.expanded.cells,
        includes=ground.expanded.includes,
        outcomes=outcomes,
        goals=[str(goal) for goal in sweep.goal],
        strategy=lambda goal: _strategy(sweeping, goal),
        launch_key=lambda cell: command_for(ground, cell).launch_key,
        budget=Budget(
            hours=sweep.budget.hours,
            attempts=sweep.budget.attempts,
            keep=sweep.budget.keep,
        ),
        spent_hours=spent_s(outcomes, running, now=sweeping.clock.now()) / 3600,
        running=running,
        auto=_auto(ground),
        nan_check=(lambda o: _nan_check(ground, o)) if sweep.probe.confirm_nan else None,
        effective=ground.settled.effective if ground.settled else None,
        beforehand=_beforehand(sweeping),
        tokens=_needed_tokens(sweep),
        remedy=(lambda o, c: beforehand.may_remedy(ground, o, c)) if sweep.remedies else None,
    )
    return decide(question if is_budgeted else replace(question, budget=Budget()))


def _nan_check(ground: Ground, outcome: Outcome) -> Mapping[str, Value]:
    """Return the switch of that build's NaN check; empty where it has none."""
    return nan_check_of(ground.tables.get(outcome.attempt.build), outcome.diagnosis.sglang_version)


def nan_check_of(table: FlagTable | None, version: str | None) -> Mapping[str, Value]:
    """Return the switch of a build's NaN check, by its own flags where they are known."""
    has_flag = None if table is None else table.find("enable-nan-detection") is not None
    return nan_check(version, has_flag=has_flag)


def launch_step(sweeping: Sweeping, step: LaunchStep) -> Outcome:
    """Launch what was decided, and measure it as far as that step is worth."""
    return launch_cell(
        sweeping,
        step.cell,
        why=step.why,
        relaunch_of=step.relaunch_of,
        probe=probe_for(sweeping, step),
    )


def probe_for(sweeping: Sweeping, step: LaunchStep) -> ProbeSettings:
    """Return what a step proves and measures.

    A race of many cells runs short ladders; only the winner, or the first that serves, soaks.
    """
    sweep = sweeping.ground.sweep
    probe = probe_settings(sweep)
    has_served = any(o.verdict is Verdict.SERVING for o in sweeping.journal.history())
    is_race = Goal.FASTEST in sweep.goal and not step.is_final
    if is_race and probe.traffic is not None:
        probe = replace(probe, traffic=probe.traffic.shortened())
    if is_race or (has_served and not step.is_final):
        probe = replace(probe, soak_s=None)
    return probe


def only_proven(sweeping: Sweeping) -> ProbeSettings:
    """Return the proof alone: a launch that asks why one fails measures no speed."""
    return replace(probe_settings(sweeping.ground.sweep), traffic=None, soak_s=None, quality=None)


def ask_first(
    ground: Ground,
    *,
    cache: Path | None = None,
    gpu: Gpu | None = None,
    configs: Mapping[str, object] | None = None,
    portions: int = 1,
) -> Ground:
    """Ask each build's SGLang what it makes of every cell; see `resolve.resolve_cells`."""
    auto = _auto(ground)
    asking = Asking(
        command=lambda cell: command_for(ground, at_start(cell, auto)),
        gpu=gpu,
        configs=configs or {},
        cache=cache,
        portions=portions,
    )
    return resolve_cells(ground, asking)


def foresee(sweeping: Sweeping, cell: Cell) -> Foreseen:
    """Ask SGLang about one launch before it is made: refused, or equal to a finished attempt."""
    ground, journal = sweeping.ground, sweeping.journal
    asking = Asking(command=lambda c: command_for(ground, c), cache=journal.folder / "resolved")
    return foresee_launch(ground, asking, cell, journal.history())


def launch_cell(
    sweeping: Sweeping,
    cell: Cell,
    *,
    why: str,
    relaunch_of: int | None = None,
    probe: ProbeSettings | None = None,
) -> Outcome:
    """Launch one cell and see it through.

    Args:
        sweeping: the sweep it belongs to.
        cell: what to launch.
        why: one plain sentence.
        relaunch_of: the attempt that it repeats.
        probe: what to prove and measure; None: all that the sweep asks for.
    """
    slots = slots_of(sweeping.ground.config, sweeping.ground.facts, 1)
    place = slots.alone(command_for(sweeping.ground, cell).env)
    attempt = new_attempt(sweeping, cell, why=why, relaunch_of=relaunch_of, place=place)
    site = replace(site_for(sweeping), place=place)
    if probe is not None:
        site = replace(site, probe=probe)
    return run_attempt(site, attempt, sweeping.ground.facts)


def new_attempt(
    sweeping: Sweeping, cell: Cell, *, why: str, relaunch_of: int | None, place: Place
) -> Attempt:
    """Return the next attempt, as it will be launched and recorded."""
    ground = sweeping.ground
    number = sweeping.journal.take_number()
    command = command_for(ground, cell, slot=place.number)
    build = ground.sweep.build_of(cell)
    return Attempt(
        number=number,
        cell=cell,
        build=build.name,
        model=ground.sweep.model_of(cell).name,
        python=python_word(ground, build.name),
        argv=command.argv,
        env=place.env(command.env),
        launch_key=command.launch_key,
        host=ground.host.name,
        port=port_of(ground) + place.number,
        why=why,
        started_at=stamp(sweeping.clock.now()),
        keeper_dir=str(ground.workdir / "runs" / sweeping.journal.run_id / f"{number:04d}"),
        relaunch_of=relaunch_of,
        slot=place.number,
        gpus=place.gpus,
    )


def command_for(ground: Ground, cell: Cell, *, slot: int = 0) -> Command:
    """Return the launch of a cell; its slot decides on the port and is no part of its key."""
    sweep = ground.sweep
    build, model = sweep.build_of(cell), sweep.model_of(cell)
    target = Target(
        build=build.name,
        model=_model_word(ground, model.name, model.target),
        port=port_of(ground) + slot,
        revision=model.revision,
        offline=model.offline,
    )
    command = launch_argv(sweep.launch, cell, target, ground.tables.get(build.name))
    if build.rehearsal is None:
        return command
    return Command(
        argv=("-m", "sglsweep.rehearsal", "--world", str(build.rehearsal), *command.argv[2:]),
        env=command.env,
        launch_key=command.launch_key,
    )


def port_of(ground: Ground) -> int:
    """Return the port that attempts listen on: the sweep's, else the host's."""
    return ground.sweep.port or ground.config.port


def python_word(ground: Ground, build: str) -> str:
    """Return the interpreter as the launch names it: relative only if the file writes it so."""
    written = ground.sweep.builds[build].python
    if (
        ground.cwd is not None
        and written
        and "/" in written
        and not written.startswith(("~", "/"))
    ):
        return written
    return ground.pythons[build]


def _model_word(ground: Ground, name: str, target: str) -> str:
    """Return the model as the launch names it: relative to the sweep's folder if written so."""
    if ground.cwd is None or name.startswith(("~", "/")):
        return target
    return name if (Path(ground.cwd) / name).exists() else target


def site_for(sweeping: Sweeping) -> Site:
    """Return what an attempt acts through."""
    ground = sweeping.ground
    sweep = ground.sweep
    return Site(
        host=ground.host,
        keeper_python=ground.python,
        journal=sweeping.journal,
        catalogue=sweeping.catalogue,
        limits=phase_limits.load(
            {str(phase): s for phase, s in sweep.limits.items()},
            weights_bytes=_weights_bytes(ground.facts),
            has_compiled_before=_has_served(sweeping.journal),
        ),
        clock=sweeping.clock,
        listener=sweeping.listener,
        secrets={**ground.config.secrets, **sweep.secrets},
        cwd=ground.cwd,
        probe=probe_settings(sweep),
    )


def _weights_bytes(facts: Mapping[str, object]) -> int | None:
    """Return the size of the largest model's files, where the host could tell."""
    models = facts.get("models")
    known = models.values() if isinstance(models, dict) else ()
    sizes = [model.get("bytes") for model in known if isinstance(model, dict)]
    return max((size for size in sizes if isinstance(size, int)), default=None)


def _has_served(journal: Journal) -> bool:
    """Tell whether an attempt of this run got as far as compiled kernels take it."""
    return any(outcome.timings.ready_s is not None for outcome in journal.history())


def probe_settings(sweep: Sweep) -> ProbeSettings:
    """Return what a sweep wants proven and measured of a server."""
    need, probe = sweep.need, sweep.probe
    return ProbeSettings(
        need=Need(context=need.context, concurrent=need.concurrent or 1),
        known_answers=tuple(KnownAnswer(e.prompt, e.contains) for e in probe.expect),
        requests=sweep.requests,
        has_random_weights=probe.weights == "dummy",
        load=None if probe.load is None else (probe.load.concurrency, probe.load.requests),
        traffic=traffic_of(sweep),
        quality=quality_of(sweep),
        soak_s=probe.soak,
    )


def quality_of(sweep: Sweep) -> QualitySettings | None:
    """Return what tells whether a serving cell is the model that was asked for."""
    wanted = sweep.quality
    if wanted is None:
        return None
    return QualitySettings(
        questions=tuple(QualityQuestion(q.prompt, q.contains) for q in wanted.questions),
        needle=wanted.needle.context if wanted.needle else None,
        tools=wanted.tools,
        tokens=wanted.tokens,
    )


def traffic_of(sweep: Sweep) -> Traffic | None:
    """Return the requests of the load ladder; None where nobody asks how fast a server is."""
    load = sweep.workload
    if load is None:
        return Traffic() if Goal.FASTEST in sweep.goal else None
    rungs = tuple(sorted(set(load.ladder))) or USUAL_RUNGS
    return Traffic(
        input=load.input,
        output=load.output,
        rungs=rungs,
        slo=load.slo,
        tool=load.tool,
        program=load.program,
    )


def _strategy(sweeping: Sweeping, goal: str) -> Strategy:
    return strategy_for(sweeping.ground, sweeping.settings, goal)


def strategy_for(ground: Ground, settings: Settings, goal: str) -> Strategy:
    """Return what chooses the next cell for a goal, with all that is known beforehand."""
    seen, (priors, hints) = effective_cells(ground), _known(ground)
    claims = [on_effective(Claim(h.id, h.when), seen) for h in ground.sweep.hypotheses if h.when]
    return strategies.make(
        settings.strategy,
        seed=settings.seed,
        goal=goal,
        priors=priors,
        claims=[claim for claim in claims if claim is not None],
        hints=hints,
        start_ups=startup.load(),
        order=settings.order,
    )


def _beforehand(sweeping: Sweeping) -> Beforehand:
    """Return what is known without an attempt of this run, of cells as a strategy sees them."""
    priors, hints = _known(sweeping.ground)
    return Beforehand(
        priors=priors,
        hints=hints,
        source=lambda outcome: beforehand.source_of(sweeping.catalogue, outcome),
    )


def _known(ground: Ground) -> tuple[list[Evidence], list[Hint]]:
    seen = effective_cells(ground)
    earlier = [entry for taken in earlier_runs(ground) for entry in taken.evidence]
    return (
        [replace(entry, cell=seen.of(entry.cell)) for entry in earlier],
        [replace(hint, cells=seen.keys_of(hint.cells)) for hint in beforehand.hints(ground)],
    )


def effective_cells(ground: Ground) -> EffectiveCells:
    """Return the cells by what SGLang makes of them; as requested where it was not asked."""
    settled = ground.settled
    return settled.effective if settled is not None else as_requested(ground.expanded.cells)


def earlier_runs(ground: Ground) -> tuple[Taken, ...]:
    """Return what the runs named under `prior` say about this sweep's cells."""
    cells = (*ground.expanded.cells[:1], *ground.expanded.includes[:1])
    if not ground.earlier or not cells:
        return ()
    return beforehand.taken(ground, command_for(ground, cells[0]))


def _needed_tokens(sweep: Sweep) -> int | None:
    """Return what the KV pool must hold; None where nobody says."""
    need = sweep.need
    return None if need.context is None else need.context * (need.concurrent or 1)


def _auto(ground: Ground) -> Auto | None:
    auto = ground.expanded.auto
    if auto is None:
        return None

    need = _needed_tokens(ground.sweep)

    def step(outcomes: Sequence[Outcome]) -> float | None:
        return memory.next_fraction(outcomes, most=auto.max, tokens=need)

    return Auto(start=auto.start, next_fraction=step)


def record_decision(sweeping: Sweeping, decision: Decision) -> None:
    """Write what the run is about, for the report and for whoever resumes."""
    ground, history = sweeping.ground, sweeping.journal.history()
    acting = acting_in(ground, history, _auto(ground))
    sweeping.journal.record(
        **run_facts(ground, history, decision, acting=acting, priors=earlier_runs(ground))
    )


def tell_notes(sweeping: Sweeping) -> None:
    """Tell what the file asks for in vain."""
    for text in told_before(sweeping.ground, earlier_runs(sweeping.ground)):
        sweeping.listener.tell(Note(text=text))
