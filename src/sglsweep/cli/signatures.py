"""`sglsweep signatures`: the catalogue, and one entry explained like a linter explains a rule."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Annotated

import typer

from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from sglsweep.catalogue import Catalogue, Signature


def signatures(
    signature_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The entry to explain.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List what the catalogue knows, or explain one entry.

    Example: sglsweep signatures oom-kv-pool
    """
    from sglsweep import catalogue

    known = catalogue.load()
    chosen = (
        list(known.signatures.values()) if signature_id is None else [_one(known, signature_id)]
    )
    if as_json:
        entries = [_entry(s) for s in chosen]
        document = {"schema": 1, "catalogue": known.version, "signatures": entries}
        typer.echo(json.dumps(document, ensure_ascii=True))
    elif signature_id is None:
        typer.echo(_table(known))
    else:
        typer.echo(_explained(chosen[0], known))


def _one(known: Catalogue, signature_id: str) -> Signature:
    found = known.signatures.get(signature_id)
    if found is not None:
        return found
    near = difflib.get_close_matches(signature_id, known.signatures, n=3, cutoff=0.4)
    raise ConfigError(
        f"there is no signature '{signature_id}'",
        next_step=f"Nearest: {', '.join(near)}." if near else "`sglsweep signatures` lists all.",
    )


def _entry(signature: Signature) -> dict[str, object]:
    return {
        "id": signature.id,
        "title": signature.title,
        "role": str(signature.role),
        "verdict": str(signature.verdict) if signature.verdict else None,
        "phases": [str(phase) for phase in signature.phases],
        "literals": list(signature.literals),
        "pattern": signature.pattern,
        "blames": [{"flag": b.flag, "value": b.value} for b in signature.blames],
        "next_step": dict(signature.next_step),
        "remedy": dict(signature.remedy),
        "since": signature.since,
        "until": signature.until,
        "source": signature.source,
    }


def _table(known: Catalogue) -> str:
    rows = sorted(known.signatures.values(), key=lambda s: (s.role, str(s.verdict or ""), s.id))
    width = max((len(s.id) for s in rows), default=0)
    lines = [f"{s.id:<{width}}  {s.verdict or s.role:<18}  {s.title}" for s in rows]
    return "\n".join(
        [
            *lines,
            f"{len(rows)} signatures, {len(known.issues)} known issues, catalogue {known.version}",
        ]
    )


def _explained(signature: Signature, known: Catalogue) -> str:
    paragraphs = [
        f"{signature.id}: {signature.title}",
        _what_it_is(signature),
        *_section("Why", [signature.why]),
        *_section("What to do next", _steps(signature)),
        *_section("Flags it implicates", _blames(signature)),
        *_section(
            "Changes known to help",
            [
                f"{k} = {v}" if v is not None else f"without {k}"
                for k, v in signature.remedy.items()
            ],
        ),
        *_section("Lines that show it", signature.samples),
        *_section("How it is found", _rule(signature)),
        *_section(
            "Known issues",
            [f"{r.issue.title}: {r.issue.url}" for r in known.issues if signature.id in r.causes],
        ),
        *_section("Source", [signature.source]),
    ]
    return "\n\n".join(paragraphs)


def _what_it_is(signature: Signature) -> str:
    verdict = f", verdict {signature.verdict}" if signature.verdict else ""
    versions = " ".join(
        f"{word} {version}"
        for word, version in (("since", signature.since), ("until", signature.until))
        if version
    )
    return f"Role {signature.role}{verdict}{f', {versions}' if versions else ''}."


def _section(title: str, lines: list[str] | tuple[str, ...]) -> list[str]:
    said = [line for line in lines if line]
    return [title + "\n" + "\n".join(f"  {line}" for line in said)] if said else []


def _steps(signature: Signature) -> list[str]:
    return [
        f"In {phase}: {text}" if phase else text for phase, text in signature.next_step.items()
    ]


def _blames(signature: Signature) -> list[str]:
    return [b.flag if b.value is None else f"{b.flag} = {b.value}" for b in signature.blames]


def _rule(signature: Signature) -> list[str]:
    return [
        f"text: {' | '.join(signature.literals)}" if signature.literals else "",
        f"pattern: {signature.pattern}" if signature.pattern else "",
        f"not where: {signature.unless}" if signature.unless else "",
        f"only in: {', '.join(signature.phases)}" if signature.phases else "",
        f"under frames: {signature.frames}" if signature.frames else "",
        *(f"only if {name} is {value}" for name, value in signature.when.items()),
    ]
