"""The packaged YAML as types, by way of a compiled copy that loads in a few milliseconds.

Reading 200 kB of YAML takes longer than `sglsweep triage` may take on a small log, so the
package carries `compiled.json`. It names the hash of the YAML it was made from; where that
differs (someone edits a signature) the YAML is read and the copy ignored.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglsweep.attempt import Blame, KnownIssue
from sglsweep.catalogue.signature import Catalogue, IssueRule, Role, Signature, Site, Tier
from sglsweep.errors import ConfigError
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EDITION = "2026.11"
_FOLDER = Path(__file__).parent
_COMPILED = "compiled.json"
_SIGNATURE_KEYS = {
    "id", "title", "role", "verdict", "site", "tier", "literals", "pattern", "unless", "phases",
    "frames", "or_frames", "or_pattern", "when", "refines", "fatal", "blames", "next_step",
    "remedy", "explained_by", "since", "until", "why", "source", "samples",
}  # fmt: skip
_ISSUE_KEYS = {"id", "title", "url", "fixed_in", "causes", "when", "evidence", "remedy", "note"}


@functools.cache
def load() -> Catalogue:
    """Return the packaged catalogue.

    Raises:
        ConfigError: an entry does not follow the format.
    """
    raw = _sources()
    digest = _digest(raw)
    content = _compiled(digest) or _parse(raw)
    return _build(content, digest)


def compile_content() -> str:
    """Return what `compiled.json` should hold today."""
    raw = _sources()
    return json.dumps({"digest": _digest(raw), **_parse(raw)}, ensure_ascii=True, indent=0) + "\n"


def _sources() -> dict[str, bytes]:
    paths = [*sorted(_FOLDER.glob("signatures/*.yaml")), _FOLDER / "known_issues.yaml"]
    return {path.name: path.read_bytes() for path in paths}


def _digest(raw: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in raw.items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:12]


def _compiled(digest: str) -> dict[str, Any] | None:
    copy = _FOLDER / _COMPILED
    if not copy.is_file():
        return None
    content: dict[str, Any] = json.loads(copy.read_bytes())
    return content if content.get("digest") == digest else None


def _parse(raw: Mapping[str, bytes]) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - only when a signature was edited

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    signatures: list[Any] = []
    issues: list[Any] = []
    for name, content in raw.items():
        try:
            entries = yaml.load(content, Loader=loader) or []  # noqa: S506 - a safe loader
        except yaml.YAMLError as error:
            raise ConfigError(
                f"{name}: {error}", next_step="Quote text that holds ': ' or begins with a quote."
            ) from error
        if name == "known_issues.yaml":
            issues = entries
            continue
        signatures.extend({**entry, "file": name} for entry in entries)
    return {"signatures": signatures, "issues": issues}


def _build(content: Mapping[str, Any], digest: str) -> Catalogue:
    signatures: dict[str, Signature] = {}
    for entry in content["signatures"]:
        signature = _signature(entry)
        if signature.id in signatures:
            raise ConfigError(
                f"{entry['file']}: signature '{signature.id}' stands twice in the catalogue",
                next_step="Give the second entry an id of its own.",
            )
        signatures[signature.id] = signature
    issues = tuple(_issue(entry) for entry in content["issues"])
    return Catalogue(f"{EDITION}+{digest[:8]}", signatures, issues)


def _signature(entry: Mapping[str, Any]) -> Signature:
    where = f"{entry.get('file', 'catalogue')}: signature '{entry.get('id')}'"
    _check_keys(where, entry, _SIGNATURE_KEYS | {"file"})
    try:
        return Signature(
            id=entry["id"],
            title=entry["title"],
            role=Role(entry["role"]),
            verdict=Verdict(entry["verdict"]) if entry.get("verdict") else None,
            site=Site(entry.get("site", "line")),
            tier=Tier(entry.get("tier", "plain")),
            literals=tuple(entry.get("literals", ())),
            pattern=entry.get("pattern", ""),
            unless=entry.get("unless", ""),
            phases=tuple(Phase(phase) for phase in entry.get("phases", ())),
            frames=entry.get("frames", ""),
            or_frames=entry.get("or_frames", ""),
            or_pattern=entry.get("or_pattern", ""),
            when=dict(entry.get("when", {})),
            refines=tuple(entry.get("refines", ())),
            is_fatal=bool(entry.get("fatal", False)),
            blames=tuple(_blames(entry.get("blames", ()))),
            next_step=_steps(entry.get("next_step", {})),
            remedy=dict(entry.get("remedy", {})),
            explained_by=tuple(entry.get("explained_by", ())),
            since=entry.get("since"),
            until=entry.get("until"),
            why=entry.get("why", ""),
            source=entry.get("source", ""),
            samples=tuple(entry.get("samples", ())),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"{where}: {error}", next_step="Compare it with its neighbours in the same file."
        ) from error


def _issue(entry: Mapping[str, Any]) -> IssueRule:
    where = f"known_issues.yaml: '{entry.get('id')}'"
    _check_keys(where, entry, _ISSUE_KEYS)
    try:
        return IssueRule(
            id=entry["id"],
            issue=KnownIssue(
                title=entry["title"], url=entry["url"], fixed_in=entry.get("fixed_in")
            ),
            causes=tuple(entry["causes"]),
            when=dict(entry.get("when", {})),
            evidence=entry.get("evidence", ""),
            remedy=dict(entry.get("remedy", {})),
            note=entry.get("note", ""),
        )
    except KeyError as error:
        raise ConfigError(f"{where}: {error} is missing", next_step="Add the key.") from error


def _check_keys(where: str, entry: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise ConfigError(
            f"{where}: unknown key '{unknown[0]}'",
            next_step=f"Keys are {', '.join(sorted(known - {'file'}))}.",
        )


def _blames(entries: Iterable[Any]) -> Iterable[Blame]:
    for entry in entries:
        if isinstance(entry, str):
            yield Blame(entry)
        else:
            yield Blame(entry["flag"], entry.get("value"))


def _steps(entry: str | Mapping[str, str]) -> dict[str, str]:
    if isinstance(entry, str):
        return {"": entry}
    return {("" if key == "default" else str(key)): text for key, text in entry.items()}
