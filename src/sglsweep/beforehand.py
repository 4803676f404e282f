"""What is known before the first launch: earlier runs, and what the catalogue knows not to work.

Both are told to the strategy as evidence that weighs less than an attempt of this run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.catalogue.incompatible import Advice, Basis
from sglsweep.expand.scope import EFFECTIVE, Scope, agrees
from sglsweep.plan.hints import Hint
from sglsweep.plan.prior import Circumstances, Taken, arch_of, architecture_of, take
from sglsweep.priors import launched_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.attempt import Outcome
    from sglsweep.catalogue import Catalogue
    from sglsweep.catalogue.incompatible import Incompatible
    from sglsweep.flags import Command
    from sglsweep.matrix import Cell, Value
    from sglsweep.prepare import Ground

HOLDS = {Basis.REPRODUCED: 0.9, Basis.SOURCE: 0.85, Basis.REPORTS: 0.65}
"""Chance that an entry of the catalogue holds on this machine, by how it is known."""
IF_LATER = 0.75
"""What is left of it where the entry itself only advises to try other cells first."""


def taken(ground: Ground, command: Command) -> tuple[Taken, ...]:
    """Return what the earlier runs say here; `command` is any launch of this sweep."""
    here = _circumstances(ground, launched_flags(command.argv, command.env))
    return take(ground.earlier, ground.expanded.cells.axes, here)


def _circumstances(ground: Ground, flags: Mapping[str, str]) -> Circumstances:
    sweep, settled = ground.sweep, ground.settled
    build = settled.builds.get(sweep.build.name) if settled else None
    world = sweep.build.rehearsal
    found = build.architectures.get(sweep.model.target, "") if build else ""
    return Circumstances(
        arch=(build.arch if build else "") or arch_of(ground.facts),
        version=_version(ground, sweep.build.name),
        model=found or architecture_of(ground.facts, sweep.model.name) or sweep.model.name,
        world=world.stem if world else "",
        flags=flags,
        builds={name: v for name in sweep.builds if (v := _version(ground, name))},
    )


def _version(ground: Ground, build: str) -> str:
    """Return a build's SGLang; "" where nobody asked it, or it is a stand-in."""
    if ground.settled and (known := ground.settled.builds.get(build)):
        return known.version
    builds = ground.facts.get("builds")
    of_build = builds.get(build) if isinstance(builds, dict) else None
    packages = of_build.get("packages") if isinstance(of_build, dict) else None
    return str(packages.get("sglang") or "") if isinstance(packages, dict) else ""


def hints(ground: Ground) -> tuple[Hint, ...]:
    """Return what the catalogue knows not to work among the cells, as SGLang resolved them."""
    if ground.settled is None:
        return ()
    met: dict[str, list[str]] = {}
    issues: dict[str, Incompatible] = {}
    for suspect in ground.settled.suspects:
        issues[suspect.issue.id] = suspect.issue
        met.setdefault(suspect.issue.id, []).append(suspect.cell.key)
    return tuple(
        Hint(
            id=issue.id,
            source=issue.source,
            chance=HOLDS[issue.basis] * (IF_LATER if issue.advice is Advice.LATER else 1.0),
            verdict=issue.verdict,
            cells=frozenset(met[issue.id]),
        )
        for issue in issues.values()
    )


def source_of(catalogue: Catalogue, outcome: Outcome) -> str:
    """Return where the remedy in a diagnosis is known from."""
    diagnosis = outcome.diagnosis
    signature = catalogue.signatures.get(diagnosis.cause or "")
    if signature is not None and signature.remedy:
        return signature.source or f"the signature {signature.id}"
    named = {issue.url for issue in diagnosis.known_issues}
    urls = [r.issue.url for r in catalogue.issues if r.remedy and r.issue.url in named]
    return urls[0] if urls else "the catalogue"


def may_remedy(ground: Ground, outcome: Outcome, cell: Cell) -> bool:
    """True if a failed cell with its remedy can be launched.

    That is if its build knows the flags and no `exclude` speaks of such a cell.
    """
    table = ground.tables.get(outcome.attempt.build)
    names = [name for name in outcome.diagnosis.remedy if not name.startswith("env.")]
    if table is not None and not all(table.find(name) for name in names):
        return False
    scope = Scope(ground.sweep, ground.tables)

    def meets(key: str, wanted: tuple[Value, ...]) -> bool:
        name = key.removeprefix(EFFECTIVE)
        return agrees(cell.get(name) if name in cell.values else scope.constant(name), wanted)

    return not any(
        all(meets(key, wanted) for key, wanted in exclude.when.items())
        for exclude in ground.sweep.excludes
    )
