"""Commands as text for a login shell that nobody chose: sh, bash, zsh, fish or csh.

Inside single quotes all of them leave everything alone but four characters: the quote itself,
`!` and a newline (csh), a backslash (fish). Words that hold one of these travel encoded.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_RISKY = re.compile(rb"[!\n\\']")

# What the login shell's own start-up files print comes before the token and is dropped. The
# command runs as a child so that a signal's end is told as 128+N instead of nothing at all.
_SCRIPT = (
    'command -v "$1" >/dev/null 2>&1 || {{ echo {token} missing >&2; echo {token}; exit 127; }}; '
    "echo {token} $$ >&2; echo {token}; "
    '(exec "$@"); exit $?'
)
_DECODE = 'for a do a=$(printf %b. "$a"); shift; set -- "$@" "${a%.}"; done; '

# The whole process group of the command, found by the pid that it told us; TERM, 2 s, KILL.
_END = (
    'read -r s </proc/"$1"/stat || exit 0; set -- ${s##*) }; kill -s TERM -- "-$3"; '
    "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; "
    'kill -s 0 -- "-$3" 2>/dev/null || exit 0; done; kill -s KILL -- "-$3"'
)


def command_line(argv: Sequence[str], token: str) -> str:
    """Return text that runs a command after printing the token (and its pid) on both outputs."""
    script = _SCRIPT.format(token=token)
    words = [word.encode("utf-8", "surrogateescape") for word in argv]
    if not any(_RISKY.search(word) for word in words):
        return _join(["/bin/sh", "-c", script, "sh", *argv])
    encoded = [_RISKY.sub(_octal, word) for word in words]
    texts = [word.decode("utf-8", "surrogateescape") for word in encoded]
    # A backslash followed by 0 is no escape for fish, and means a byte to printf's %b.
    return _join(["/bin/sh", "-c", _DECODE + script, "sh", *texts])


def end_line(pid: int) -> str:
    """Return text that ends a running command with its process group."""
    return _join(["/bin/sh", "-c", _END, "sh", str(pid)])


def _octal(found: re.Match[bytes]) -> bytes:
    return b"\\0%03o" % found.group(0)[0]


def _join(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
