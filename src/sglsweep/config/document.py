"""A YAML file as plain values, each with the line it stands on; YAML's traps are mistakes here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.errors import ConfigError

Loc = tuple[str | int, ...]
"""Way to a value: keys and positions from the top."""

_MAX_NODES = 50_000  # what aliases may unfold to: far above any sweep, far below a bomb
_MAX_BYTES = 8 << 20
_EXPONENT = re.compile(r"[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)[eE][-+]?\d+")
_LEADING_ZERO = re.compile(r"[-+]?0[oO]?[\d_]+")
_SEXAGESIMAL = re.compile(r"[-+]?\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?")
_WORDS_FOR_BOOLS: Final = {
    **dict.fromkeys(("yes", "on", "y"), "true"),
    **dict.fromkeys(("no", "off", "n"), "false"),
}
_TAG = "tag:yaml.org,2002:"
_SECRET_KEY = re.compile(
    r"(?:^|[-._])(password|passwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|"
    r"access[-_]?key)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\b(hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,})"
)
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file: values, where they stand, and the environment names they refer to.

    Attributes:
        tree: None, bool, int, float, str, list and dict with text keys; nothing else.
        references: `NAME` of each `${NAME}` -> where it stands first.
        empty: ways to values that are not written at all (`key:`); they are None in the tree.
    """

    path: Path
    tree: object
    lines: Mapping[Loc, int]
    references: Mapping[str, Loc]
    empty: frozenset[Loc]

    def where(self, loc: Loc) -> str:
        """FILE:LINE of a value, or of the nearest thing above it that the file holds."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return f"{self.path}:{self.lines.get(loc, 1)}"


def load_document(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        ConfigError: it cannot be read, is no YAML, or holds what YAML 1.1 reads differently from
            what was meant: duplicate keys, yes/no/on/off, 1e-3, 12:30, 010.
    """
    return read_document(_read(path), path)


def read_document(text: str, path: Path) -> Document:
    """Read YAML text; `path` is what errors call it."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _syntax_error(error, path) from error
    except RecursionError as error:
        raise ConfigError(
            f"{path}:1: nested too deeply to be a sweep", next_step="Write it flatter."
        ) from error
    if root is None:
        raise ConfigError(
            f"{path}:1: the file is empty", next_step="Write one with `sglsweep init`."
        )
    walk = _Walk(path)
    try:
        tree = walk.value(root, ())
    except RecursionError as error:
        raise ConfigError(
            f"{path}:1: nested too deeply to be a sweep", next_step="Write it flatter."
        ) from error
    refuse(walk.mistakes)
    return Document(path, tree, walk.lines, walk.references, frozenset(walk.empty))


def _read(path: Path) -> str:
    try:
        if path.is_dir():
            raise ConfigError(f"{path}: is a folder", next_step="Give the YAML file in it.")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: {(error.strerror or str(error)).lower()}",
            next_step="Give the path of a YAML file; `sglsweep init` writes one.",
        ) from error
    except ValueError as error:
        raise ConfigError(f"{str(path)!r}: {error}", next_step="Give another path.") from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(
            f"{path}: {len(content)} bytes is no sweep", next_step="Give another file."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: byte 0x{content[error.start]:02x} is not UTF-8",
            next_step="Save the file as UTF-8.",
        ) from error


def _syntax_error(error: yaml.YAMLError, path: Path) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "not YAML"
        if "'\\t'" in problem:
            return ConfigError(
                f"{path}:{line}: a tab where YAML wants blanks", next_step="Indent with blanks."
            )
        context = f" {error.context}" if error.context and error.problem else ""
        column = f" (column {mark.column + 1})" if mark else ""
        return ConfigError(
            f"{path}:{line}: not valid YAML{column}: {problem}{context}",
            next_step="Mend the YAML there; text with `: `, `#`, `{`, `[` or `*` wants quotes.",
        )
    reason = str(error).splitlines()[0] if str(error) else "unreadable"
    return ConfigError(f"{path}:1: not valid YAML: {reason}", next_step="Save it as plain text.")


@dataclass(slots=True)
class _Walk:
    """Turns nodes into values, noting lines and mistakes on the way."""

    path: Path
    lines: dict[Loc, int] = field(default_factory=dict)
    references: dict[str, Loc] = field(default_factory=dict)
    empty: set[Loc] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)
    open_nodes: set[int] = field(default_factory=set)
    visited: int = 0

    def value(self, node: yaml.Node, loc: Loc) -> object:
        self.lines.setdefault(loc, node.start_mark.line + 1)
        self.visited += 1
        if self.visited > _MAX_NODES:
            self._refuse_size(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        if id(node) in self.open_nodes:
            self._add(node, "an alias that contains itself", "Write the value out.")
            return None
        self.open_nodes.add(id(node))
        try:
            return self._collection(node, loc)
        finally:
            self.open_nodes.discard(id(node))

    def _collection(self, node: yaml.Node, loc: Loc) -> object:
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.value(item, (*loc, index)) for index, item in enumerate(node.value)]
        self._add(node, f"tag {_tag(node)} is not understood here", "Delete the tag.")
        return None

    def _refuse_size(self, node: yaml.Node) -> None:
        self._add(node, f"more than {_MAX_NODES} values", "Write less, or fewer aliases.")
        refuse(self.mistakes)

    def _add(self, node: yaml.Node, what: str, instead: str) -> None:
        where = f"{self.path}:{node.start_mark.line + 1}"
        self.mistakes.append(Mistake(where=where, what=what, instead=instead))

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        # First, so that the lines of the mapping's own keys are the ones that stay.
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                self._merge(key_node, value_node, loc, merged)
        for key_node, value_node in node.value:
            key = None if key_node.tag == f"{_TAG}merge" else self._key(key_node)
            if key is None:
                continue
            if key in own:
                self._add(
                    key_node,
                    f"key '{key}' stands twice, first in line {self.lines[(*loc, key)]}",
                    "Delete one of the two.",
                )
                continue
            self.lines[(*loc, key)] = key_node.start_mark.line + 1
            own[key] = self.value(value_node, (*loc, key))
            self._check_secret(key, value_node)
        return {**merged, **own}

    def _merge(self, key: yaml.Node, node: yaml.Node, loc: Loc, into: dict[str, object]) -> None:
        """Add what `<<: *anchor` brings; of several the first wins, as YAML says."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in nodes:
            value = self.value(source, loc)
            if not isinstance(value, dict):
                self._add(key, "`<<` wants a mapping", "Point it at an anchor of a mapping.")
                continue
            for name, item in value.items():
                into.setdefault(name, item)

    def _key(self, node: yaml.Node) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._add(node, "a key must be text", "Write a name before the colon.")
            return None
        if self._is_trap(node) or node.tag not in {f"{_TAG}str", f"{_TAG}int", f"{_TAG}float"}:
            if not self._is_trap(node):
                shown = node.value or "nothing"
                self._add(
                    node, f"a key must be text, not {shown}", f'Write "{node.value}" in quotes.'
                )
            else:
                self._trap(node)
            return None
        return str(node.value)

    def _check_secret(self, key: str, node: yaml.Node) -> None:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in nodes:
            if not isinstance(item, yaml.ScalarNode) or not _is_secret(key, item):
                continue
            name = re.sub(r"[^A-Z0-9]+", "_", key.removeprefix("env.").upper()).strip("_")
            self._add(
                item,
                f"'{key}' holds a secret in plain text",
                f"Export it in the environment, write ${{{name}}} here and delete it there.",
            )

    def _is_trap(self, node: yaml.ScalarNode) -> bool:
        return node.style is None and _trap(node) is not None

    def _trap(self, node: yaml.ScalarNode) -> None:
        what, instead = _trap(node) or ("", "")
        self._add(node, what, instead)

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> object:
        if self._is_trap(node):
            self._trap(node)
            return None
        if node.tag == f"{_TAG}null" and not node.value:
            self.empty.add(loc)
        if node.tag in {f"{_TAG}str", f"{_TAG}timestamp"}:
            return self._text(node, loc)
        if node.tag not in {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float")}:
            self._add(node, f"tag {_tag(node)} is not understood here", "Delete the tag.")
            return None
        return self._constructed(node)

    def _constructed(self, node: yaml.ScalarNode) -> object:
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (ValueError, KeyError, yaml.YAMLError):
            self._add(node, f"{node.value[:40]!r} is no {_tag(node)}", "Write it without a tag.")
            return None
        if isinstance(value, int) and abs(value) >= 1 << 63:
            self._add(node, f"{node.value[:40]} is too large a number", "Write it in quotes.")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._add(node, f"{node.value} is no usable number", "Write a finite number.")
            return None
        return value

    def _text(self, node: yaml.ScalarNode, loc: Loc) -> str:
        text = str(node.value)
        for name in _REFERENCE.findall(text):
            if _ENV_NAME.fullmatch(name):
                self.references.setdefault(name, loc)
            else:
                self._add(
                    node,
                    f"'${{{name}}}' is no name of an environment variable",
                    "Write ${NAME} with letters, digits and underscores.",
                )
        if _SECRET_VALUE.search(text):
            self._add(
                node,
                "this looks like a token in plain text",
                "Export it in the environment, write ${NAME} here, and take it out of the file.",
            )
        return text


def _tag(node: yaml.Node) -> str:
    return node.tag.replace(_TAG, "!!")


def looks_secret(name: str, text: str) -> bool:
    """True where a variable of that name holds a secret, or the text itself looks like one."""
    is_open = bool(text) and not _REFERENCE.search(text)
    return is_open and bool(_SECRET_KEY.search(name) or _SECRET_VALUE.search(text))


def _is_secret(key: str, node: yaml.ScalarNode) -> bool:
    found = _SECRET_KEY.search(key)
    if found is None or not node.value or _REFERENCE.search(node.value):
        return False
    if node.tag in {f"{_TAG}null", f"{_TAG}bool"}:
        return False
    # `bucket-time-to-first-token: [0.1, 1]` is a number per token, `password: 1234` is not.
    return node.tag == f"{_TAG}str" or found.group(1).lower().startswith("pass")


def _trap(node: yaml.ScalarNode) -> tuple[str, str] | None:
    """Say how YAML 1.1 misreads a bare word, and what to write; None if it does not."""
    text = node.value
    word = _WORDS_FOR_BOOLS.get(text.lower())
    if word is not None:
        return (
            f"bare `{text}` is a boolean in YAML 1.1",
            f'Write {word}, or "{text}" in quotes if the word is meant.',
        )
    if node.tag == f"{_TAG}str" and _EXPONENT.fullmatch(text):
        return (
            f"bare `{text}` is text in YAML 1.1, not a number",
            f'Write {_plain_number(text)}, or "{text}" in quotes if the text is meant.',
        )
    if _LEADING_ZERO.fullmatch(text) and text.strip("+-0") != "":
        return (
            f"bare `{text}` begins with a zero: octal for some YAML readers, text for others",
            f'Write {text.lstrip("+-0oO") or "0"} for the number, or "{text}" in quotes.',
        )
    if _SEXAGESIMAL.fullmatch(text):
        return (
            f"bare `{text}` is a number in base 60 in YAML 1.1",
            f'Write "{text}" in quotes, or a duration such as 45m.',
        )
    return None


def _plain_number(text: str) -> str:
    number = float(text.replace("_", ""))
    plain = f"{number:.12f}".rstrip("0").rstrip(".")
    return plain if float(plain) == number else repr(number).replace("e", ".0e")
