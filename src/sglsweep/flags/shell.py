"""Enough of a POSIX shell to read a launch script without running it.

Quotes, continuation lines, comments, assignments, arrays, `$NAME`, `${NAME:-default}`,
redirections and here-documents are understood. What only a running shell knows
(`$(...)`, `$1`, a variable set elsewhere) stays in the text as `${NAME}` and is named in
`Word.unset`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(:?[-=])(.*)", re.DOTALL)
_ELEMENTS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]")
_REDIRECTION = re.compile(r"(?:\d*|&)(<<-?|>>|>\||[<>])(&\d|&-)?")
_EXPORTERS = frozenset({"export", "declare", "typeset", "readonly", "local"})
_BREAKS = "\n;&|()"
_SPACES = " \t\r"


@dataclass(frozen=True, slots=True)
class Word:
    """One word after expansion; `unset` names what could not be expanded."""

    text: str
    line: int
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """One simple command: the words, and what was exported when it ran."""

    words: tuple[Word, ...]
    exported: Mapping[str, Word]

    @property
    def line(self) -> int:
        """Line of the first word."""
        return self.words[0].line


def assignment(word: Word) -> tuple[str, Word] | None:
    """Split `NAME=value`; None where a word is something else."""
    found = _ASSIGNMENT.fullmatch(word.text)
    if found is None:
        return None
    return found.group(1), Word(found.group(3), word.line, word.unset)


def read_statements(text: str) -> tuple[Statement, ...]:
    """Return the simple commands of a script in order, pure assignments left out."""
    reader = _Reader(text)
    return tuple(reader.statements())


@dataclass(slots=True)
class _Draft:
    """The word being read; `text` is None before its first character."""

    line: int
    text: str | None = None
    unset: list[str] = field(default_factory=list)
    done: list[Word] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.text = (self.text or "") + text

    def end(self) -> None:
        if self.text is not None:
            self.done.append(Word(self.text, self.line, tuple(self.unset)))
        self.text, self.unset = None, []

    def add_split(self, parts: list[str]) -> None:
        """Add several words: the first goes on with this one, the last stays open."""
        for index, part in enumerate(parts):
            if index:
                self.end()
            self.add(part)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.variables: dict[str, Word] = {}
        self.arrays: dict[str, list[Word]] = {}
        self.exported: dict[str, Word] = {}
        self.documents: list[str] = []

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        while self.at < len(self.text):
            words = self._statement()
            if words and not self._assigns(words):
                found.append(Statement(tuple(words), MappingProxyType(dict(self.exported))))
        return found

    def _assigns(self, words: list[Word]) -> bool:
        """Carry out a statement that only sets variables; False for any other."""
        exports = words[0].text in _EXPORTERS
        rest = words[1:] if exports else words
        pairs = [assignment(word) for word in rest]
        if not exports and not all(pairs):
            return False
        for pair in filter(None, pairs):
            self._set(*pair, is_exported=exports)
        for word in rest:
            if exports and word.text in self.variables:
                self.exported[word.text] = self.variables[word.text]
        return True

    def _set(self, name: str, value: Word, *, is_exported: bool) -> None:
        self.variables[name] = value
        if is_exported or name in self.exported:
            self.exported[name] = value

    def _peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _take(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.at += count
        self.line += taken.count("\n")
        return taken

    def _continues(self) -> bool:
        """Step over a backslash that ends its line, whatever ends lines here."""
        for ending in ("\\\n", "\\\r\n"):
            if self._peek(ending):
                self._take(len(ending))
                return True
        return False

    def _statement(self) -> list[Word]:
        words: list[Word] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _SPACES:
                self._take()
            elif char == "\\" and self._continues():
                continue
            elif char == "#":
                self._skip_line()
            elif redirection := _REDIRECTION.match(self.text, self.at):
                self._redirect(redirection)
            elif char in _BREAKS:
                self._take()
                if char == "\n":
                    self._skip_documents()
                break
            else:
                words += self._word()
        return words

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.at)
        self._take((end if end >= 0 else len(self.text)) - self.at)

    def _redirect(self, found: re.Match[str]) -> None:
        self._take(len(found.group()))
        if found.group(2):
            return
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self._take()
        target = self._word() if self.at < len(self.text) else []
        if found.group(1).startswith("<<") and target:
            self.documents.append(target[0].text)

    def _skip_documents(self) -> None:
        """Step over the bodies of here-documents that the finished line opened."""
        for mark in self.documents:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self._take((end + 1 if end >= 0 else len(self.text)) - self.at)
                if line.strip() == mark:
                    break
        self.documents = []

    def _word(self) -> list[Word]:
        draft = _Draft(self.line)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "(" and self._opens_array(draft):
                return []
            if char in _SPACES or char in _BREAKS or char in "<>":
                break
            self._piece(char, draft)
        draft.end()
        return draft.done

    def _piece(self, char: str, draft: _Draft) -> None:
        """Read one quoted, escaped, expanded or plain piece of a word."""
        if char == "'":
            draft.add(self._until("'"))
        elif char == '"':
            self._double(draft)
        elif char == "\\":
            if not self._continues():
                self._take()
                draft.add(self._take())
        elif char in "$`":
            self._expand(draft, is_quoted=False)
        else:
            draft.add(self._take())

    def _until(self, end: str) -> str:
        """Take an opening mark, what stands before the closing one, and that."""
        self._take()
        close = self.text.find(end, self.at)
        inner = self._take((close if close >= 0 else len(self.text)) - self.at)
        self._take()
        return inner

    def _double(self, draft: _Draft) -> None:
        self._take()
        draft.add("")
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\":
                self._take()
                escaped = self._take()
                draft.add(
                    "" if escaped == "\n" else escaped if escaped in '"\\$`' else "\\" + escaped
                )
            elif char in "$`":
                self._expand(draft, is_quoted=True)
            else:
                draft.add(self._take())
        self._take()

    def _opens_array(self, draft: _Draft) -> bool:
        """Read `NAME=(...)` or `NAME+=(...)` where that stands here."""
        found = _ASSIGNMENT.fullmatch(draft.text or "")
        if found is None or found.group(3):
            return False
        self._take()
        items: list[Word] = list(self.arrays.get(found.group(1), [])) if found.group(2) else []
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char == "#":
                self._skip_line()
            elif char in _SPACES or char in _BREAKS:
                self._take()
            elif char == "\\" and self._continues():
                continue
            else:
                items += self._word()
        self._take()
        self.arrays[found.group(1)] = items
        return True

    def _expand(self, draft: _Draft, *, is_quoted: bool) -> None:
        """Expand what begins with `$` or a backquote into the word."""
        if self._peek("`"):
            self._unknown(draft, f"`{self._until('`')}`")
            return
        if self._peek("$("):
            self._unknown(draft, f"$({self._parenthesised()})")
            return
        if self._peek("${"):
            self._take()
            self._parameter(draft, self._until("}"), is_quoted=is_quoted)
            return
        self._take()
        name = _NAME.match(self.text, self.at)
        if name:
            self._take(len(name.group()))
            self._variable(draft, name.group(), is_quoted=is_quoted)
        elif self.at < len(self.text) and self.text[self.at] in "@*#?$!0123456789":
            draft.unset.append(f"${self._take()}")
        else:
            draft.add("$")

    def _parenthesised(self) -> str:
        self._take(2)
        start, depth = self.at, 1
        while self.at < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self._take(), 0)
        return self.text[start : self.at - 1]

    def _parameter(self, draft: _Draft, inner: str, *, is_quoted: bool) -> None:
        """Expand what stands between `${` and `}`."""
        elements = _ELEMENTS.fullmatch(inner)
        default = _DEFAULT.fullmatch(inner)
        if elements and elements.group(1) in self.arrays:
            items = self.arrays[elements.group(1)]
            draft.add_split([item.text for item in items])
            draft.unset += [name for item in items for name in item.unset]
        elif default and default.group(1) not in self.variables:
            self._add(draft, default.group(3), is_quoted=is_quoted)
        elif default:
            self._variable(draft, default.group(1), is_quoted=is_quoted)
        elif _NAME.fullmatch(inner):
            self._variable(draft, inner, is_quoted=is_quoted)
        else:
            self._unknown(draft, f"${{{inner}}}")

    def _variable(self, draft: _Draft, name: str, *, is_quoted: bool) -> None:
        known = self.variables.get(name)
        if known is None and name in self.arrays:
            known = next(iter(self.arrays[name]), None)
        if known is None:
            draft.add(f"${{{name}}}")
            draft.unset.append(name)
            return
        draft.unset += known.unset
        self._add(draft, known.text, is_quoted=is_quoted)

    @staticmethod
    def _add(draft: _Draft, text: str, *, is_quoted: bool) -> None:
        # Unquoted, a shell splits what a variable held at its blanks.
        if is_quoted:
            draft.add(text)
        else:
            draft.add_split(text.split())

    @staticmethod
    def _unknown(draft: _Draft, text: str) -> None:
        draft.add(text)
        draft.unset.append(text)
