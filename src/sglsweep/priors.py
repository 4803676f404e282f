"""Earlier runs that a sweep names under `prior`: a run's folder, or exported findings.

What they are worth here is `plan.prior`'s business; this only reads, and says with FILE:LINE what
cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from sglsweep.attempt import Blame, Scalar
from sglsweep.catalogue.gpus import CARDS
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.errors import ConfigError
from sglsweep.journal import Journal
from sglsweep.journal.codec import Malformed, from_json
from sglsweep.matrix import Cell
from sglsweep.plan.prior import (
    Circumstances,
    EarlierAttempt,
    EarlierRun,
    arch_of,
    architecture_of,
)
from sglsweep.report.launches import flags_of
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sglsweep.attempt import Outcome
    from sglsweep.config.sweep import Sweep

T = TypeVar("T")
_FINDINGS = "findings.json"
_SCHEMA = 1


def read_priors(sweep: Sweep) -> tuple[EarlierRun, ...]:
    """Read the runs that a sweep names.

    Raises:
        ConfigError: with FILE:LINE, one that is not there or is no run.
    """
    runs: list[EarlierRun] = []
    mistakes: list[Mistake] = []
    for index, path in enumerate(sweep.prior):
        fallback = sweep.where.get("prior", str(sweep.source))
        where = sweep.where.get(f"prior[{index}]", fallback)
        try:
            runs.append(_read(path, where))
        except ConfigError as error:
            what = f"prior '{path}': {error.message}"
            mistakes.append(Mistake(where=where, what=what, instead=error.next_step))
    refuse(mistakes)
    return tuple(runs)


def _read(path: Path, where: str) -> EarlierRun:
    if path.is_file():
        return _from_findings(path, where)
    if (path / "run.json").is_file():
        return _from_run(path, where)
    if (path / _FINDINGS).is_file():
        return _from_findings(path / _FINDINGS, where)
    if path.is_dir():
        raise ConfigError(
            "no run there (neither run.json nor findings.json)",
            next_step="Name a run's folder, or a file that `sglsweep report RUN --json` wrote.",
        )
    raise ConfigError(
        "there is no such folder or file",
        next_step="Paths are relative to this file; name a run's folder or exported findings.",
    )


def _from_run(folder: Path, where: str) -> EarlierRun:
    journal = Journal.read(folder)
    outcomes = journal.history()
    facts: Mapping[str, object] = next((o.facts for o in reversed(outcomes) if o.facts), {})
    model = outcomes[-1].attempt.model if outcomes else str(journal.facts.get("model") or "")
    return EarlierRun(
        name=folder.resolve().name,
        where=where,
        circumstances=Circumstances(
            arch=arch_of(facts),
            version=_version(outcomes),
            model=architecture_of(facts, model) or model,
            world=str(journal.facts.get("rehearsal") or ""),
        ),
        attempts=tuple(map(_attempt, outcomes)),
    )


def _attempt(outcome: Outcome) -> EarlierAttempt:
    diagnosis = outcome.diagnosis
    return EarlierAttempt(
        number=outcome.attempt.number,
        cell=outcome.attempt.cell,
        flags=launched_flags(outcome.attempt.argv, outcome.attempt.env),
        version=diagnosis.sglang_version or "",
        verdict=outcome.verdict,
        phase=diagnosis.phase,
        cause=diagnosis.cause,
        blames=tuple(dict.fromkeys(blame.flag for blame in diagnosis.blames)),
    )


def _version(outcomes: Sequence[Outcome]) -> str:
    return next((v for o in reversed(outcomes) if (v := o.diagnosis.sglang_version)), "")


def launched_flags(argv: Sequence[str], env: Mapping[str, object]) -> dict[str, str]:
    """Return flag or `env.NAME` -> the text of its value, as a server was launched."""
    return {**flags_of(argv), **{f"env.{name}": str(text) for name, text in env.items()}}


def _from_findings(path: Path, where: str) -> EarlierRun:
    document = _document(path)
    setting = document.get("setting")
    known: Mapping[str, object] = setting if isinstance(setting, Mapping) else {}
    listed = document.get("attempts")
    attempts = tuple(_entries(listed if isinstance(listed, list) else []))
    return EarlierRun(
        name=str(document.get("run") or path.stem),
        where=where,
        circumstances=Circumstances(
            arch=str(known.get("arch") or _arch_by_name(document)),
            version=next((v for e in reversed(attempts) if (v := e.version)), ""),
            model=str(known.get("architecture") or document.get("model") or ""),
            world=str(document.get("rehearsal") or ""),
        ),
        attempts=attempts,
    )


def _document(path: Path) -> Mapping[str, object]:
    step = "Write it again with `sglsweep report RUN --json > FILE`."
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", next_step=step) from error
    except ValueError as error:
        raise ConfigError(f"is no JSON: {error}", next_step=step) from error
    if not isinstance(document, dict) or not isinstance(document.get("attempts"), list):
        raise ConfigError("holds no findings (no list of attempts)", next_step=step)
    if document.get("schema") != _SCHEMA:
        raise ConfigError(
            f"has schema {document.get('schema')!r}, this version reads {_SCHEMA}", next_step=step
        )
    return document


def _entries(attempts: list[object]) -> Iterator[EarlierAttempt]:
    for place, entry in enumerate(attempts):
        if not isinstance(entry, Mapping):
            raise ConfigError(
                f"attempts[{place}] is no object",
                next_step="Write it again with `sglsweep report RUN --json > FILE`.",
            )
        try:
            yield _entry(entry, f"attempts[{place}]")
        except Malformed as error:
            raise ConfigError(
                str(error), next_step="Write it again with `sglsweep report RUN --json > FILE`."
            ) from error


def _entry(entry: Mapping[str, object], where: str) -> EarlierAttempt:
    def field(name: str, kind: type[T], default: object = None) -> T:
        return from_json(kind, entry.get(name, default), f"{where}.{name}")

    blames = field("blames", tuple[Blame, ...], [])
    version, cause = entry.get("sglang_version"), entry.get("cause")
    return EarlierAttempt(
        number=field("number", int),
        cell=field("cell", Cell),
        flags=launched_flags(
            field("argv", tuple[str, ...], []), field("env", dict[str, Scalar], {})
        ),
        version=str(version or ""),
        verdict=field("verdict", Verdict),
        phase=field("phase", Phase),
        cause=None if cause is None else str(cause),
        blames=tuple(dict.fromkeys(blame.flag for blame in blames)),
    )


def _arch_by_name(document: Mapping[str, object]) -> str:
    """Return the architecture of the card that the findings name; "" where none is known."""
    host = document.get("host")
    text = str(host.get("GPUs") or "") if isinstance(host, Mapping) else ""
    return next((card.arch for card in CARDS if card.name in text), "")
