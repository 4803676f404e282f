"""Flags that change what is computed, as data: semantic.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from sglsweep.catalogue.incompatible import Scope
from sglsweep.flags import canonical

if TYPE_CHECKING:
    from sglsweep.matrix import Value

_NOTHING = frozenset({"null", "auto", "none", "false", "{}", ""})
"""Values, as they are spelled, with which a flag asks for nothing."""
_SAME_DTYPE = {"half": "float16", "float": "float32", "bf16": "bfloat16", "fp16": "float16"}
_NESTED = ("text_config", "llm_config", "language_config")


class Kind(StrEnum):
    """How much of a difference it is."""

    MODEL = "model"
    ROUNDING = "rounding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """One entry; see semantic.yaml for what the fields mean."""

    id: str
    kind: Kind
    flags: tuple[str, ...]
    only: tuple[str, ...]
    unless: tuple[str, ...]
    own: str
    below: float | None
    scope: Scope
    says: str
    source: str

    def concerns(self, value: Value, config: Mapping[str, object] | None) -> bool:
        """True if the value makes a server differ from the model's own configuration.

        Args:
            value: of one of the flags, as SGLang resolved it.
            config: the model's config.json; where it is not known, what could be the model's own
                is not called a difference.
        """
        word = _spelled(value)
        if word in _NOTHING or word in self.unless or (self.only and word not in self.only):
            return False
        if self.below is not None and not _is_below(value, self.below):
            return False
        return not self.own or (config is not None and not _is_own(self.own, word, config))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a launch computes otherwise than the model's own configuration.

    Attributes:
        flag: canonical name.
        says: a clause for a reader.
    """

    id: str
    kind: Kind
    flag: str
    value: str
    says: str
    source: str


@cache
def load() -> tuple[Semantic, ...]:
    """Return the packaged entries."""
    text = (resources.files("sglsweep.catalogue") / "semantic.yaml").read_text("utf-8")
    document: Mapping[str, Any] = yaml.safe_load(text)
    return tuple(_semantic(entry) for entry in document["semantic"])


def differences(
    effective: Mapping[str, Value], *, config: Mapping[str, object] | None, model: str = ""
) -> tuple[Difference, ...]:
    """Return what a configuration computes otherwise; each entry once for each value.

    Args:
        effective: flags as SGLang resolved them, any spelling.
        config: the model's config.json, where it is known.
        model: its architecture class; "" where it is not known.
    """
    values = {canonical(name.replace("_", "-")): value for name, value in effective.items()}
    found: dict[tuple[str, str], Difference] = {}
    for entry in load():
        is_about = not entry.scope.models or (
            bool(model) and entry.scope.fits(version="", arch="", model=model)
        )
        for flag in entry.flags if is_about else ():
            value = values.get(flag)
            if entry.concerns(value, config):
                word = _spelled(value)
                found.setdefault((entry.id, word), _difference(entry, flag, word))
    return tuple(found.values())


def _difference(entry: Semantic, flag: str, word: str) -> Difference:
    return Difference(
        id=entry.id,
        kind=entry.kind,
        flag=flag,
        value=word,
        says=entry.says.replace("{value}", word),
        source=entry.source,
    )


def _is_below(value: Value, limit: float) -> bool:
    try:
        return float(str(value)) < limit
    except ValueError:
        return False


def _is_own(what: str, word: str, config: Mapping[str, object]) -> bool:
    nested = next((config[k] for k in _NESTED if isinstance(config.get(k), Mapping)), {})
    known = {**config, **(nested if isinstance(nested, Mapping) else {})}
    quantized = known.get("quantization_config")
    recipe = quantized if isinstance(quantized, Mapping) else {}
    match what:
        case "dtype" | "mamba-dtype":
            name = "mamba_ssm_dtype" if what == "mamba-dtype" else "torch_dtype"
            own = known.get(name) or known.get("dtype")
            return own is None or _dtype(word) == _dtype(str(own))
        case "quantization":
            return bool(recipe or known.get("quantization"))
        case "kv-cache":
            scheme = recipe.get("kv_cache_scheme") or recipe.get("kv_cache_quant_algo")
            return bool(scheme or known.get("kv_cache_quantization"))
        case "context":
            own = known.get("max_position_embeddings")
            return not isinstance(own, int) or not _is_above(word, own)
        case _:
            raise ValueError(what)


def _is_above(word: str, limit: int) -> bool:
    return word.isdigit() and int(word) > limit


def _dtype(word: str) -> str:
    return _SAME_DTYPE.get(word.removeprefix("torch."), word.removeprefix("torch."))


def _spelled(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value).strip()


def _semantic(entry: Mapping[str, Any]) -> Semantic:
    return Semantic(
        id=entry["id"],
        kind=Kind(entry["kind"]),
        flags=tuple(dict.fromkeys(canonical(name) for name in entry["flags"])),
        only=tuple(map(_spelled, entry.get("only") or ())),
        unless=tuple(map(_spelled, entry.get("unless") or ())),
        own=entry.get("own") or "",
        below=entry.get("below"),
        scope=Scope(models=tuple(entry.get("models") or ())),
        says=entry["says"],
        source=entry["source"],
    )
