"""`sglsweep resolve`: what SGLang itself makes of every cell, without launching."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.expand.asked import BuildFacts, Refused
    from sglsweep.expand.resolved import Settled
    from sglsweep.matrix import Cell
    from sglsweep.prepare import Ground

_SHOWN = 12
_TELLING = ("attention-backend", "kv-cache-dtype", "page-size", "quantization")
"""What SGLang decides by itself more often than people know."""


def resolve(
    file: Path = typer.Argument(..., metavar="SWEEP.yaml"),
    gpu: str | None = typer.Option(
        None,
        "--gpu",
        help="A GPU to assume on this machine, the host untouched: h200, sm120:96GB, "
        '"8x RTX PRO 6000 Blackwell".',
    ),
    python: str | None = typer.Option(
        None, "--python", help="On this machine: the Python whose SGLang is asked for every build."
    ),
    model_config: list[Path] = typer.Option(
        [], "--model-config", help="The model's config.json, where its files are not at hand."
    ),
    as_json: bool = typer.Option(False, "--json", help="Every cell with its effective flags."),
) -> None:
    """Show what each build's SGLang makes of every cell: refused, effective flags, equal cells.

    Launches nothing and installs nothing. Without --gpu and --python the sweep's host is asked.

    Example: sglsweep resolve configs/glm5-nvfp4-sm120.yaml --gpu sm120:96GB
    """
    from sglsweep.errors import ConfigError

    ground = ask_here(file, gpu, python, model_config)
    if ground.settled is None:
        told = "; ".join(note.text for note in ground.expanded.notes) or "no build has an SGLang"
        raise ConfigError(
            f"{file}: nothing could be resolved: {told}",
            next_step="Name a build with `python:`, or give --python.",
        )
    if as_json:
        typer.echo(json.dumps(_document(ground, ground.settled)))
    else:
        _print(ground, ground.settled)


def ask_here(
    file: Path, gpu: str | None, python: str | None, model_config: Sequence[Path]
) -> Ground:
    """Prepare a sweep and ask its builds: on this machine if a GPU or a Python is named.

    Raises:
        ConfigError: the file, the GPU or a config.json is wrong.
        HostError: the host, or a build on it, cannot be used.
    """
    from sglsweep.catalogue.gpus import described
    from sglsweep.prepare import Here, prepare
    from sglsweep.sweep import ask_first

    card = described(gpu) if gpu else None
    here = Here(python=python) if gpu or python else None
    ground = prepare(file, here=here)
    try:
        return ask_first(ground, gpu=card, configs=_configs(ground, model_config))
    finally:
        ground.host.close()


def _configs(ground: Ground, files: Sequence[Path]) -> dict[str, object]:
    """Return each model's config.json: one file for all models, or one each in their order."""
    from sglsweep.errors import ConfigError

    names = [model.target for model in ground.sweep.models.values()]
    if not files:
        return {}
    if len(files) not in (1, len(names)):
        raise ConfigError(
            f"{len(files)} files of --model-config for {len(names)} models",
            next_step="Give one for all, or one each in the order of the sweep.",
        )
    texts = [_read(path) for path in files]
    return dict(zip(names, texts * len(names) if len(texts) == 1 else texts, strict=False))


def _read(path: Path) -> object:
    from sglsweep.errors import ConfigError

    try:
        return json.loads((path / "config.json" if path.is_dir() else path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: no config.json can be read there ({error})",
            next_step="Give the file, or the folder it is in.",
        ) from error


def _print(ground: Ground, settled: Settled) -> None:
    for name, build in settled.builds.items():
        typer.echo(_build_line(name, build))
    cells = len(settled.answers)
    took = sum(build.resolve_s for build in settled.builds.values())
    rate = f", {cells / took:.0f} a second after import" if took else ""
    typer.echo(f"{_cells(cells)} resolved in {took:.1f} s{rate}")
    typer.echo(
        f"refused {len(settled.refused)}, unknown {settled.unknown}, "
        f"equal to another {len(settled.merged)} "
        f"({sum(bool(m.rule) for m in settled.merged)} of them by a dependency rule), "
        f"left to launch {len({c.key for c in _left(ground)})}"
    )
    speakers = {m.speaker.key for m in settled.merged}
    typer.echo(
        f"{settled.configurations} different configurations by SGLang's own resolution; "
        f"{len(speakers)} {'cell speaks' if len(speakers) == 1 else 'cells speak'} for others"
    )
    _print_reasons("refused", ((r.told, r.cell) for r in settled.refused))
    _print_reasons("unknown", _unknown(ground, settled))
    for because, count in settled.excluded.items():
        typer.echo(f"excluded {_cells(count)}: {because}")
    _print_reasons("equal", ((m.because, m.cell) for m in settled.merged))
    for line in (*_always(ground, settled), *_changed(ground, settled)):
        typer.echo(line)
    for issue, count in _issues(settled).items():
        typer.echo(f"known not to work ({_cells(count)}): {issue}")
    for note in (*ground.sweep.unsupported, *ground.expanded.notes):
        typer.echo(f"note: {note.where}: {note.text}")


def _build_line(name: str, build: BuildFacts) -> str:
    gpu = f"{build.gpu} ({build.arch})" if build.gpu else "no GPU"
    told = ", as described" if build.is_described else ""
    line = f"build {name}: SGLang {build.version or '?'}, {gpu}{told}"
    if build.assumed:
        line += f"; not installed there and taken for granted: {', '.join(build.assumed)}"
    return line


def _print_reasons(word: str, entries: Iterable[tuple[str, Cell]]) -> None:
    counts = Counter(because for because, _ in entries)
    for because, count in counts.most_common(_SHOWN):
        typer.echo(f"{word} {_cells(count)}: {because}")
    if len(counts) > _SHOWN:
        typer.echo(f"{word}: {len(counts) - _SHOWN} more reasons; --json has them all")


def _unknown(ground: Ground, settled: Settled) -> Iterable[tuple[str, Cell]]:
    for cell in _left(ground):
        answer = settled.answers.get(cell.key)
        if answer is not None and not answer.effective:
            yield answer.error, cell


def _left(ground: Ground) -> list[Cell]:
    return [*ground.expanded.includes, *ground.expanded.cells]


_NO_NEWS = {("not passed", "false"), ("not passed", "auto"), ("false", "not passed")}


def _always(ground: Ground, settled: Settled) -> Iterable[str]:
    """Say what comes out the same in every cell, of what is no axis."""
    from sglsweep.expand.effective_excludes import effective_of
    from sglsweep.flags import canonical

    axes = {canonical(axis.name) for axis in ground.expanded.cells.axes}
    resolved = [a.effective for a in settled.answers.values() if a.effective]
    for name in _TELLING:
        values = {_word(effective_of(effective, name)) for effective in resolved}
        if canonical(name) not in axes and len(values) == 1:
            yield f"{name}: {values.pop()} in all cells"


def _changed(ground: Ground, settled: Settled) -> Iterable[str]:
    """Say what SGLang makes of the axes' values, where it is something else."""
    from sglsweep.expand.effective_excludes import effective_of
    from sglsweep.flags.renames import same_values

    everything = {c.key: c for c in _left(ground)}
    everything |= {m.cell.key: m.cell for m in settled.merged}
    for axis in ground.expanded.cells.axes:
        counts: Counter[tuple[str, str]] = Counter()
        for key, cell in everything.items():
            answer = settled.answers.get(key)
            if answer is None or not answer.effective:
                continue
            found = effective_of(answer.effective, axis.name)
            asked_for = cell.get(axis.name)
            alike = same_values(axis.name, str(asked_for))
            if found is not None and asked_for != found and found not in alike:
                counts[_word(cell.get(axis.name)), _word(found)] += 1
        for (asked, found_word), count in counts.items():
            if (asked, found_word) not in _NO_NEWS:
                yield f"{axis.name}: {asked} becomes {found_word} in {_cells(count)}"


def _word(value: object) -> str:
    if value is None:
        return "not passed"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _issues(settled: Settled) -> dict[str, int]:
    words = (
        f"{s.issue.reason} Instead: {s.issue.instead} [{s.issue.id}: {s.issue.source}]"
        for s in settled.suspects
    )
    return dict(Counter(words))


def _cells(count: int) -> str:
    return f"{count} {'cell' if count == 1 else 'cells'}"


def _document(ground: Ground, settled: Settled) -> dict[str, object]:
    refused = {r.cell.key: r for r in settled.refused}
    merged = {m.cell.key: m for m in settled.merged}
    suspects = {s.cell.key: s.issue.id for s in settled.suspects}
    cells: dict[str, Cell] = {cell.key: cell for cell in _left(ground)}
    cells |= {key: r.cell for key, r in refused.items()}
    cells |= {m.cell.key: m.cell for m in settled.merged}
    return {
        "schema": 1,
        "builds": {name: _build_json(build) for name, build in settled.builds.items()},
        "counts": {
            "asked": len(settled.answers),
            "refused": len(refused),
            "refused_by_verdict": dict(Counter(str(r.verdict) for r in settled.refused)),
            "unknown": settled.unknown,
            "equal": len(merged),
            "configurations": settled.configurations,
            "groups": len({m.speaker.key for m in settled.merged}),
            "equal_by_rule": sum(bool(m.rule) for m in settled.merged),
            "left": len({c.key for c in _left(ground)}),
        },
        "excluded": dict(settled.excluded),
        "cells": [
            {
                "cell": dict(cell.values),
                "key": cell.short_key,
                **_answer_json(settled, key),
                "equal_to": m.speaker.short_key if (m := merged.get(key)) else None,
                "because": m.because if m else None,
                "known_issue": suspects.get(key),
                "acts_as": dict(settled.effective.of(cell).values) if key not in refused else None,
                "refused": _judged(refused.get(key)),
            }
            for key, cell in cells.items()
        ],
    }


def _judged(refused: Refused | None) -> Mapping[str, object] | None:
    if refused is None:
        return None
    return {name: value for name, value in refused.to_json().items() if name != "cell"}


def _build_json(build: BuildFacts) -> dict[str, object]:
    return {
        "version": build.version,
        "gpu": build.gpu,
        "arch": build.arch,
        "is_described": build.is_described,
        "assumed": list(build.assumed),
        "architectures": dict(build.architectures),
        "import_s": build.import_s,
        "resolve_s": build.resolve_s,
    }


def _answer_json(settled: Settled, key: str) -> Mapping[str, object]:
    answer = settled.answers.get(key)
    if answer is None:
        return {"state": "unknown", "error": "not asked"}
    return {
        "state": str(answer.state),
        "error": answer.error or None,
        "effective": dict(answer.effective),
        "lines": list(answer.lines),
        "guessed": list(answer.unknown),
    }
