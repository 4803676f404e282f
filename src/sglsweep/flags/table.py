"""What one build's launcher accepts: its flags as its own parser declares them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError
from sglsweep.flags.renames import REPLACED_BY, same_names, same_values
from sglsweep.matrix import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FlagValue = Value | tuple[bool | int | float | str, ...]
"""A cell's value, or a list of words for a flag that takes several."""


_BEGINNING = 2
"""Letters from which on a beginning says what is meant."""
_CLOSE = 0.08
"""How much less alike than the nearest name another may be to be offered beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One launch flag; names without dashes in front.

    Attributes:
        many: it takes several words (nargs +, * or a number).
        is_optional: its value may be left out (nargs ? or *).
        negative: the spelling that switches it off, where it has one.
        type: name of the function that reads the value ("int", "float", "loads", ...).
        choices: as text; None where anything goes.
        removed: SGLang's own words where the flag only stops the launch.
    """

    name: str
    aliases: tuple[str, ...] = ()
    dest: str = ""
    takes_value: bool = True
    many: bool = False
    is_optional: bool = False
    negative: str | None = None
    type: str | None = None
    choices: tuple[str, ...] | None = None
    default: object = None
    deprecated: bool = False
    replacement: str | None = None
    removed: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a build would refuse a flag or its value, and what to write instead."""

    what: str
    instead: str


class FlagTable:
    """The flags of one build, found by any spelling that its parser or its successors accept."""

    __slots__ = ("_by_name", "_spellings", "flags", "version")

    def __init__(self, flags: Iterable[Flag], *, version: str | None = None) -> None:
        self.flags = tuple(flags)
        self.version = version
        self._spellings: dict[str, Flag] = {}
        for flag in self.flags:
            for name in (flag.name, *flag.aliases):
                self._spellings.setdefault(name, flag)
        self._by_name: dict[str, Flag | None] = {}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> FlagTable:
        """Read what `onhost/resolve.py flags` printed.

        Raises:
            ConfigError: that program could not read the build's flags, or this is something else.
        """
        entries = document.get("flags")
        if not document.get("ok") or not isinstance(entries, list):
            reason = str(document.get("error") or "no list of flags in it").strip()
            raise ConfigError(
                f"the flags of this SGLang could not be read: {reason.splitlines()[-1]}",
                next_step="Run its Python with `-m sglang.launch_server --help` to see why.",
            )
        version = document.get("sglang_version")
        return cls(
            (_flag(entry) for entry in entries if isinstance(entry, dict)),
            version=str(version) if version else None,
        )

    def find(self, name: str) -> Flag | None:
        """Return the flag that `name` means in this build; None if it means nothing there.

        Looked for in this order: the exact name or an alias (a successor first where the flag is
        deprecated), a name that means the same in another version, a prefix that argparse takes.
        """
        if name not in self._by_name:
            self._by_name[name] = self._find(name)
        return self._by_name[name]

    def _find(self, name: str) -> Flag | None:
        exact = self._spellings.get(name)
        if exact is not None and not (exact.deprecated or exact.removed):
            return exact
        for other in same_names(name):
            successor = self._spellings.get(other)
            if successor is not None and not (successor.deprecated or successor.removed):
                return successor
        if exact is not None:
            return exact
        begun = {id(f): f for spelled, f in self._spellings.items() if spelled.startswith(name)}
        return next(iter(begun.values())) if len(begun) == 1 else None

    def canonical(self, name: str) -> str:
        """Return one name for all spellings of a flag; `name` itself where it is unknown."""
        flag = self.find(name)
        return flag.name if flag else canonical(name)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three names of this build that `name` may be a slip of."""
        return nearest(name, [s for s, f in self._spellings.items() if not f.removed])

    def translate(self, flag: Flag, value: Value) -> Value:
        """Return the spelling of `value` that this build accepts, where one means the same."""
        if flag.choices is None or not isinstance(value, str) or value in flag.choices:
            return value
        return next((v for v in same_values(flag.name, value) if v in flag.choices), value)

    def problem(self, name: str, value: FlagValue) -> Problem | None:
        """Say why this build would refuse `--name value`; None if its parser takes it."""
        flag = self.find(name)
        if flag is None:
            return None if value is None or value is False else self._unknown(name)
        if value is None or value is False:
            return None
        if flag.removed is not None:
            return Problem(f"flag '{name}' was removed: {flag.removed}", _replaced(flag))
        return _misfit(name, flag, self._translated(flag, value))

    def _translated(self, flag: Flag, value: FlagValue) -> FlagValue:
        return value if isinstance(value, tuple) else self.translate(flag, value)

    def _unknown(self, name: str) -> Problem:
        version = f" of SGLang {self.version}" if self.version else ""
        if name in REPLACED_BY:
            instead = f"Write {REPLACED_BY[name]} instead."
        else:
            instead = _did_you_mean(self.nearest(name))
        return Problem(f"no launch flag '{name}'{version}", instead)


def canonical(name: str) -> str:
    """Return one name for all spellings of a flag that this tool knows without a table."""
    return same_names(name)[0]


def nearest(
    name: str, known: Iterable[str], *, count: int = 3, cutoff: float = 0.6
) -> tuple[str, ...]:
    """Return what `name` may be a slip of, likest first, dashes and case aside.

    What begins with `name` comes before what merely looks like it; what looks much less like it
    than the first is left out.
    """
    by_plain: dict[str, str] = {}
    for spelled in known:
        by_plain.setdefault(_plain(spelled), spelled)
    plain = _plain(name)
    begun = [p for p in by_plain if len(plain) >= _BEGINNING and p.startswith(plain)]
    alike = get_close_matches(plain, by_plain, n=count, cutoff=cutoff)
    ratios = {p: SequenceMatcher(None, p, plain).ratio() for p in alike}
    alike = [p for p in alike if ratios[p] >= ratios[alike[0]] - _CLOSE] if not begun else []
    found = sorted(begun, key=len) or alike
    return tuple(by_plain[p] for p in found[:count])


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()


def _did_you_mean(near: Sequence[str]) -> str:
    if not near:
        return "Run the build's Python with `-m sglang.launch_server --help` for the list."
    return f"Write {' or '.join(repr(n) for n in near)}."


def _replaced(flag: Flag) -> str:
    if flag.name in REPLACED_BY:
        return f"Write {REPLACED_BY[flag.name]} instead."
    if flag.replacement:
        return f"Write '{flag.replacement.lstrip('-')}' instead."
    return "Delete it."


def _misfit(name: str, flag: Flag, value: FlagValue) -> Problem | None:
    """Say how a value that is passed does not fit its flag."""
    if not flag.takes_value:
        if value is True:
            return None
        return Problem(
            f"flag '{name}' takes no value, but {_shown(value)} is given",
            "Write true to pass it, null not to.",
        )
    if value is True:
        if flag.is_optional:
            return None
        return Problem(f"flag '{name}' needs a value, but true is given", _offer(flag))
    words = listed(value) if flag.many else None
    if words is None and isinstance(value, tuple):
        return Problem(f"flag '{name}' takes one value, but a list is given", _offer(flag))
    parts = words if words is not None else (value,)
    return next((p for part in parts if (p := _bad_word(name, flag, str(part)))), None)


def listed(value: FlagValue) -> tuple[bool | int | float | str, ...] | None:
    """Return the words of a list, or of a cell's text that spells one as JSON; else None."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str) or not value.startswith("["):
        return None
    try:
        words = json.loads(value)
    except ValueError:
        return None
    return tuple(words) if isinstance(words, list) else None


def _bad_word(name: str, flag: Flag, word: str) -> Problem | None:
    if "${" in word:
        return None
    if flag.choices is not None and word not in flag.choices:
        return Problem(f"flag '{name}' does not take {word!r}", _choose(flag.choices, word))
    if not _reads(flag.type, word):
        wanted = _WANTED.get(flag.type or "", "another value")
        return Problem(f"flag '{name}' takes {wanted}, not {word!r}", f"Write {wanted}.")
    return None


_WANTED = {"int": "a whole number", "float": "a number", "loads": "JSON text"}


def _reads(kind: str | None, word: str) -> bool:
    try:
        match kind:
            case "int":
                int(word)
            case "float":
                float(word)
            case "loads":
                json.loads(word)
            case _:
                pass
    except ValueError:
        return False
    return True


def _choose(choices: Sequence[str], word: str) -> str:
    near = nearest(word, choices, count=2)
    if near:
        return f"Write {' or '.join(repr(n) for n in near)}; it takes {', '.join(choices)}."
    return f"Write one of {', '.join(choices)}."


def _offer(flag: Flag) -> str:
    if flag.choices:
        return f"Write one of {', '.join(flag.choices)}."
    return "Write its value."


def _shown(value: FlagValue) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _flag(entry: Mapping[str, object]) -> Flag:
    """Build a flag from one entry of the JSON."""
    nargs, choices, removed = entry.get("nargs"), entry.get("choices"), entry.get("removed")
    spelled = [str(n).lstrip("-") for n in (entry.get("name"), *_items(entry.get("aliases")))]
    # Builds list `--tp-size` and `--tensor-parallel-size` in either order: one name for all.
    name = canonical(spelled[0]) if canonical(spelled[0]) in spelled else spelled[0]
    aliases = [alias for alias in spelled if alias != name]
    negative = next((a for a in aliases if a.startswith("no-")), None)
    is_switch = entry.get("action") == "BooleanOptionalAction"
    replacement = entry.get("replacement")
    return Flag(
        name=name,
        aliases=tuple(a for a in aliases if not (is_switch and a == negative)),
        dest=str(entry.get("dest") or ""),
        takes_value=bool(entry.get("takes_value")) and not is_switch,
        many=nargs in ("+", "*") or (isinstance(nargs, int) and nargs > 1),
        is_optional=nargs in ("?", "*"),
        negative=negative if is_switch else None,
        type=str(entry["type"]) if entry.get("type") else None,
        choices=tuple(str(c) for c in _items(choices)) if choices is not None else None,
        default=entry.get("default"),
        deprecated=bool(entry.get("deprecated")),
        replacement=str(replacement) if replacement else None,
        removed=str(removed) if removed else None,
    )


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
