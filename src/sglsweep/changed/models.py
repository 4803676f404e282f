"""A model's files: which commit, which are gone, which are not what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.changed.difference import Difference, Facts, Kind, number, part, plain, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHOWN = 3
_WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt")


def model_differences(old: Facts, new: Facts, model: str) -> Iterator[Difference]:
    """Yield what is not as it was about a model's files."""
    if not old or not new:
        return
    if old.get("found") is True and new.get("found") is False:
        yield _said(f"the files of {model} are gone", "there", None, weight=1.5)
        return
    if old.get("commit") != new.get("commit"):
        yield plain(Kind.MODEL, f"the commit of {model}", old.get("commit"), new.get("commit"))
    if (number(new, "incomplete") or 0) > (number(old, "incomplete") or 0):
        sentence = f"{model} has {new.get('incomplete')} files whose download did not end"
        yield _said(sentence, str(old.get("incomplete")), str(new.get("incomplete")))
    missing = new.get("missing")
    if isinstance(missing, list) and missing and missing != old.get("missing"):
        names = _names([str(name) for name in missing])
        yield _said(f"{model} lacks shards: {names}", "complete", names, weight=1.5)
    yield from _files(old, new, model)
    yield from _config(part(old, "config"), part(new, "config"), model)


def _said(
    sentence: str, before: str | None, after: str | None, *, weight: float = 1.0
) -> Difference:
    return Difference(
        kind=Kind.MODEL,
        name=sentence.rpartition(" ")[2],
        before=before,
        after=after,
        sentence=sentence,
        weight=weight,
    )


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _files(old: Facts, new: Facts, model: str) -> Iterator[Difference]:
    before = {str(file.get("name")): file for file in rows(old, "files")}
    after = {str(file.get("name")): file for file in rows(new, "files")}
    both = [name for name in before if name in after]
    resized = [n for n in both if before[n].get("size") != after[n].get("size")]
    touched = [
        n for n in both if n not in resized and before[n].get("mtime") != after[n].get("mtime")
    ]
    for verb, names, weight in (
        ("are gone", [n for n in before if n not in after], 1.3),
        ("are new", [n for n in after if n not in before], 0.6),
        ("have another size", resized, 1.3),
        ("were written again, with the same size", touched, 0.5),
    ):
        if names:
            has_weights = any(name.endswith(_WEIGHTS) for name in names)
            sentence = f"files of {model} {verb}: {_names(names)}"
            yield Difference(
                kind=Kind.MODEL,
                name=names[0],
                before=None if verb == "are new" else _names(names),
                after=None if verb == "are gone" else _names(names),
                sentence=sentence,
                weight=weight * (1.0 if has_weights or len(names) > _SHOWN else 0.9),
            )


def _config(old: Facts, new: Facts, model: str) -> Iterator[Difference]:
    for name in old:
        if name in new and old[name] != new[name]:
            yield plain(Kind.MODEL, f"{name} in config.json of {model}", old[name], new[name])
