"""`sglsweep plan`: what a sweep would do, without doing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.config.sweep import Sweep
    from sglsweep.outline import AtFraction, Counted, MemoryEstimate, Outline, TimeEstimate
    from sglsweep.plan.rehearse import Rehearsed, Suppose
    from sglsweep.plan.strategy import Launch
    from sglsweep.prepare import Ground


_NOTHING_GB = 0.01
_LONG_S = 24 * 3600.0


def plan(
    file: Path = typer.Argument(..., metavar="SWEEP.yaml"),
    probe: bool = typer.Option(
        False,
        "--probe",
        help="Ask the host's SGLang for its flags and what it makes of every cell.",
    ),
    gpu: str | None = typer.Option(
        None, "--gpu", help="As for `resolve`: probe this machine's SGLang for such a GPU."
    ),
    python: str | None = typer.Option(None, "--python", help="As for `resolve`."),
    model_config: list[Path] = typer.Option([], "--model-config", help="As for `resolve`."),
    first: int = typer.Option(10, min=0, help="How many first attempts to show."),
    strategy: str = typer.Option("adaptive", help="As for `sweep`."),
    seed: int = typer.Option(0, help="As for `sweep`."),
    order: int = typer.Option(2, help="As for `sweep`: of pairwise, 2 = pairs, 3 = triples."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Show the cells, what is excluded and why, the first attempts, how long it may take.

    Touches no host unless --probe is given; --gpu and --python ask on this machine instead. Time
    and memory are estimated from earlier runs: this sweep's own, those under `prior`, those in
    the same folder of runs on the same host.

    Example: sglsweep plan configs/demo-cpu.yaml --probe
    """
    from sglsweep.config.sweep import load_sweep
    from sglsweep.outline import outline, outline_json
    from sglsweep.priors import read_priors
    from sglsweep.sweep import Settings

    sweep = load_sweep(file)
    read_priors(sweep)
    is_checked = probe or gpu is not None or python is not None
    settings = Settings(strategy=strategy, seed=seed, order=order)
    ground = _probed(sweep, file, gpu, python, model_config) if is_checked else None
    found = outline(sweep, ground, settings, first)
    if as_json:
        typer.echo(json.dumps(outline_json(found)))
        return
    for line in _lines(found):
        typer.echo(line)


def _probed(
    sweep: Sweep, file: Path, gpu: str | None, python: str | None, model_config: list[Path]
) -> Ground:
    from sglsweep.cli.resolve import ask_here
    from sglsweep.prepare import prepare

    if sweep.resolve or gpu or python:
        return ask_here(file, gpu, python, model_config)
    ground = prepare(file)
    ground.host.close()
    return ground


def _lines(found: Outline) -> Iterator[str]:
    yield from _matrix(found)
    yield from map(_counted, found.counted)
    yield from (f"note: {note}" for note in found.notes)
    if not found.is_checked:
        yield (
            "not asked: flags, values and known issues are not checked against an SGLang; "
            "--probe asks the host, --gpu this machine"
        )
    if found.done:
        yield (
            f"runs/{found.sweep.name} holds {_plural(found.done, 'attempt')} already: a sweep "
            "goes on from there; what follows is a sweep from the beginning"
        )
    yield from _time(found.time, found.sweep)
    yield from _memory(found)
    yield from _covering(found)
    before: tuple[Launch, ...] = ()
    for suppose, rehearsed in found.decisions.items():
        yield from _first(suppose, rehearsed, before)
        before = rehearsed.steps


def _matrix(found: Outline) -> Iterator[str]:
    axes = ", ".join(f"{a.name} ({len(a.values)})" for a in found.sweep.axes) or "none"
    yield f"axes: {axes}"
    cells, includes = len(found.expanded.cells), len(found.expanded.includes)
    excluded = sum(c.count for c in found.counted if c.kind == "excluded")
    whole = f" of {cells + excluded:,}" if excluded and not found.is_checked else ""
    yield f"cells: {cells:,}{whole} to launch, {includes} included first"


def _counted(item: Counted) -> str:
    cells = _plural(item.count, "cell")
    if not item.instead:
        return f"{item.kind}: {cells}: {item.because}"
    source = f" ({item.source})" if item.source else ""
    return f"{item.kind}, launched last: {cells}: {item.because} Instead: {item.instead}{source}"


def _time(time: TimeEstimate, sweep: Sweep) -> Iterator[str]:
    from sglsweep.report.numbers import duration

    most = f"at most {_plural(time.attempts, 'attempt')}"
    line = f"time: {most}, {duration(time.total_s)} at {duration(time.each_s)} each"
    if time.budget_hours is not None and time.budget_hours * 3600 < time.total_s:
        line += f"; the budget of {time.budget_hours:g} h ends it earlier"
    elif time.budget_hours is None and time.total_s > _LONG_S:
        line += "; no `budget: {hours: ...}` ends it earlier"
    yield line
    yield f"      ({time.source})"
    if (slots := _slots(sweep)) > 1:
        best = duration(time.total_s / slots)
        yield f"      (one after another; {slots} side by side take {best} at best)"


def _slots(sweep: Sweep) -> int:
    """Return how many attempts the host runs at once; a host that is not known is told later."""
    from sglsweep.config.hosts import load_host
    from sglsweep.errors import ConfigError

    try:
        return load_host(sweep.host, sweep.source).slots
    except ConfigError:
        return 1


def _memory(found: Outline) -> Iterator[str]:
    if not found.memory:
        yield (
            "memory: nothing known yet: no earlier run of this model here tells what its weights "
            "leave; the first launch will"
        )
        return
    for estimate in found.memory:
        yield from _estimate(estimate)


def _estimate(e: MemoryEstimate) -> Iterator[str]:
    from sglsweep.plan.memory import MARGIN_GB

    dtype = f", KV cache {e.kv_dtype}" if e.kv_dtype else ""
    free = f"{e.free_gb:.2f} GB free before the weights"
    launch = f"fraction {e.fraction:.3f}{dtype}, {free}"
    yield f"memory: by attempt {e.attempt} of {e.where} ({launch}):"
    if e.is_capped:
        yield "        max-total-tokens sets the KV pool there, not the fraction"
        return
    largest = "" if e.largest is None else f", f_max {e.largest:.3f} (leaves {MARGIN_GB:g} GB)"
    yield f"        f_min {e.smallest:.3f}{largest}"
    yield from (f"        {_at(at, e)}" for at in e.at)
    if e.needed is not None and e.enough is not None:
        yield f"        {e.needed:,} tokens are needed: from {e.enough:.3f} on"


def _at(at: AtFraction, e: MemoryEstimate) -> str:
    if at.fraction <= e.smallest:
        return f"at {at.fraction:g}: no room for a KV pool"
    words = [
        f"{at.pool_gb:.2f} GB of KV cache" if at.pool_gb is not None else "",
        f"{at.tokens:,} tokens" if at.tokens is not None else "",
        f"{round(at.left_gb, 2) + 0.0:.2f} GB left after capture"
        if at.left_gb is not None
        else "",
    ]
    return f"at {at.fraction:g}: {', '.join(w for w in words if w)}{_risk(at.left_gb)}"


def _risk(left_gb: float | None) -> str:
    from sglsweep.plan.memory import MARGIN_GB

    if left_gb is None or left_gb >= MARGIN_GB:
        return ""
    return (
        ": too high"
        if left_gb < _NOTHING_GB
        else f": less than the {MARGIN_GB:g} GB that prefill needs"
    )


def _covering(found: Outline) -> Iterator[str]:
    from sglsweep.plan.pairwise import word_for

    array = found.covering
    if array is not None:
        yield (
            f"covering array: {array.rows} launches show all {array.combinations:,} "
            f"{word_for(array.order)} of values that some cell has, beside what is included"
        )


def _first(suppose: Suppose, rehearsed: Rehearsed, before: tuple[Launch, ...]) -> Iterator[str]:
    """Yield the launches; those that another list begins with alike are not repeated."""
    from sglsweep.cli.lines import describe
    from sglsweep.plan.rehearse import Suppose

    if not rehearsed.steps and not rehearsed.end:
        return
    how = {
        Suppose.ALIKE: "if everything fails alike, of one cause that blames nothing:",
        Suppose.BLAMED: "if blames are right, each failure naming the next flag of the matrix:",
    }
    yield f"first attempts, {how[suppose]}"
    same = _alike(rehearsed.steps, before)
    if same:
        yield f"{'1 to ' if same > 1 else ''}{same} as above".rjust(3)
    for number, step in list(enumerate(rehearsed.steps, start=1))[same:]:
        values = {n: v for n, v in step.cell.values.items() if v is not None}
        yield f"{number:3} {step.cell.short_key} {describe(values)}"
        yield f"      {step.why}"
    if rehearsed.end:
        yield f"    then the end: {rehearsed.end}"


def _alike(steps: tuple[Launch, ...], before: tuple[Launch, ...]) -> int:
    """Return how many launches two lists begin with alike."""
    places = (n for n, (a, b) in enumerate(zip(steps, before, strict=False)) if a.cell != b.cell)
    return next(places, min(len(steps), len(before)))


def _plural(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"
