"""Cells that SGLang resolves to one configuration: one launch speaks for all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from sglsweep.flags import canonical
from sglsweep.flags.renames import same_values
from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglsweep.catalogue.inert import Inert
    from sglsweep.matrix import Cell

INCIDENTAL = frozenset(
    {"port", "host", "nccl_port", "dist_init_addr", "random_seed", "model_config"}
)
"""What differs between any two launches and decides nothing."""

_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A cell with what SGLang makes of it.

    Attributes:
        setting: what no argument shows: build, environment, model; two that differ are not equal.
        effective: SGLang's field -> value.
        rules: what is known to be inert for this build and model.
        is_fixed: the user asked for this very cell: it is launched whatever it equals.
    """

    cell: Cell
    setting: str
    effective: Mapping[str, object] = field(repr=False)
    rules: Sequence[Inert] = ()
    is_fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A cell that needs no launch.

    Attributes:
        speaker: the cell whose launch speaks for it.
        flags: what the two differ in, to no effect.
        because: a clause for the findings.
        rule: id of the dependency rule that makes them equal; "" = SGLang's own resolution does.
    """

    cell: Cell
    speaker: Cell
    flags: tuple[str, ...]
    because: str
    rule: str = ""


def merge(candidates: Iterable[Candidate]) -> tuple[Merged, ...]:
    """Return the cells that equal an earlier one, each with that one."""
    speakers: dict[str, Candidate] = {}
    plain: dict[str, str] = {}
    merged: list[Merged] = []
    seen: set[str] = set()
    for candidate in candidates:
        if candidate.cell.key in seen:
            continue
        seen.add(candidate.cell.key)
        key, _ = functional_key(candidate)
        speaker = speakers.setdefault(key, candidate)
        if speaker is not candidate and not candidate.is_fixed:
            merged.append(_merged(candidate, speaker, plain))
    return tuple(merged)


def functional_key(
    candidate: Candidate, *, is_ruled: bool = True
) -> tuple[str, tuple[Inert, ...]]:
    """Return what is the same for equal cells, and the rules that took part in it."""
    rules = _that_hold(candidate.effective, candidate.rules) if is_ruled else ()
    acts = {n: v for n, v in _folded(candidate.effective, rules).items() if n not in INCIDENTAL}
    return f"{candidate.setting} {json.dumps(acts, sort_keys=True)}", rules


def acting(effective: Mapping[str, object], rules: Sequence[Inert]) -> Mapping[str, object]:
    """Return a configuration with what inert flags come to in place of their values."""
    return _folded(effective, _that_hold(effective, rules))


def agree(flag: str, foreseen: object, launched: object) -> bool:
    """True if a launch came out as foreseen; what resolves later than its arguments stays open."""
    if foreseen == launched or not (_is_value(foreseen) and _is_value(launched)):
        return True
    if foreseen in {None, "auto"} or (isinstance(launched, str) and launched.startswith("<")):
        return True
    return str(launched) in same_values(flag, str(foreseen))


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def by_flag(effective: Mapping[str, object]) -> dict[str, object]:
    """Return a configuration by canonical names of flags instead of SGLang's fields."""
    return {flag_of(name): value for name, value in effective.items()}


def fields_of(effective: Mapping[str, object]) -> Mapping[str, str]:
    """Return flag -> SGLang's field; worked out once for all cells of a build."""
    return _fields(tuple(effective))


@lru_cache(maxsize=64)
def _fields(names: tuple[str, ...]) -> Mapping[str, str]:
    return {flag_of(name): name for name in names}


@cache
def flag_of(field_name: str) -> str:
    """Return the canonical flag of one of SGLang's fields."""
    return canonical(field_name.replace("_", "-"))


def _that_hold(effective: Mapping[str, object], rules: Sequence[Inert]) -> tuple[Inert, ...]:
    fields = fields_of(effective) if rules else {}
    return tuple(
        rule
        for rule in rules
        if rule.holds({flag: effective.get(fields.get(flag, "")) for flag in rule.when})
    )


def _folded(effective: Mapping[str, object], rules: Sequence[Inert]) -> Mapping[str, object]:
    if not rules:
        return effective
    fields, folded = fields_of(effective), dict(effective)
    for rule in rules:
        for flag in rule.flags:
            if flag in fields:
                folded[fields[flag]] = rule.acts_as(folded[fields[flag]])
    return folded


def _merged(candidate: Candidate, speaker: Candidate, plain: dict[str, str]) -> Merged:
    """Tell what makes two cells equal; `plain` remembers their keys without any rule."""
    flags = candidate.cell.difference(speaker.cell)
    for one in (candidate, speaker):
        if one.cell.key not in plain:
            plain[one.cell.key] = functional_key(one, is_ruled=False)[0]
    own, other = plain[candidate.cell.key], plain[speaker.cell.key]
    rule = None if own == other else _rule_for(flags, functional_key(candidate)[1])
    if rule is not None:
        because = f"{rule.reason} ({rule.source})"
    elif len(flags) == 1:
        because = _same(flags[0], candidate, speaker.cell)
    else:
        because = f"SGLang resolves them alike: {_listed(flags)} make no difference there"
    return Merged(
        cell=candidate.cell,
        speaker=speaker.cell,
        flags=flags,
        because=because,
        rule=rule.id if rule else "",
    )


def _rule_for(flags: Sequence[str], rules: Sequence[Inert]) -> Inert | None:
    """Return the rule that speaks of what two equal cells differ in."""
    names = {canonical(flag) for flag in flags}
    return next((rule for rule in rules if names & set(rule.flags)), next(iter(rules), None))


def _same(flag: str, candidate: Candidate, speaker: Cell) -> str:
    """Say what SGLang makes of a flag's two values, where that is neither of them too."""
    own, other = candidate.cell.get(flag), speaker.get(flag)
    name = fields_of(candidate.effective).get(canonical(flag), "")
    made = candidate.effective.get(name)
    if _is_value(made) and made is not None and not {own, other} & _spellings(flag, made):
        asked = "without it" if other is None else f"of {spell(other)}"
        own_word = f"of {flag} {spell(own)}" if own is not None else f"without {flag}"
        return f"SGLang makes {json.dumps(made)} {own_word} there, and {asked}"
    if other is None:
        return f"{flag} {spell(own)} is what SGLang takes there anyway"
    if own is None:
        return f"without {flag} SGLang takes {spell(other)} there"
    return f"SGLang makes the same of {flag} {spell(own)} and {spell(other)} there"


def _spellings(flag: str, value: object) -> set[object]:
    word = str(value)
    return {value, word, *same_values(flag, word)}


def _listed(words: Sequence[str]) -> str:
    if len(words) < _TWO:
        return "".join(words) or "their spellings"
    return f"{', '.join(words[:-1])} and {words[-1]}"
