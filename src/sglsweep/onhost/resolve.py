"""Asks one build's SGLang about itself; run by that build's own Python, standard library only.

    python resolve.py flags

prints one JSON document: every launch flag as SGLang's own parser declares it, with aliases,
choices, defaults, deprecations and replacements. Nothing is launched. Whatever SGLang and what it
imports print goes to standard error. Where the parser cannot be had, the text of `--help` is read.
Exit status 0, or 1 with `"ok": false` and the reason in the document.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO, Iterable

_DEPRECATED = re.compile(
    r"^\W*(deprecated|obsolete|no longer)\b|\b(is|are) (now )?deprecated\b"
    r"|\bthis (flag|option|argument) (is|was|will be) (obsolete|removed|no longer)",
    re.IGNORECASE,
)
_REPLACEMENT = re.compile(r"\b(?:use|by|with|to)\s+[`'\"]?(--[a-z0-9][a-z0-9-]*)", re.IGNORECASE)
_HELP_OPTION = re.compile(r"^  (-[^ ].*?)(?:  +(.*))?$")
_HELP_LIMIT_S = 180


def main(argv: list[str]) -> int:
    """Answer one question; the only thing on standard output is the answer."""
    answer_to = _claim_stdout()
    if argv != ["flags"]:
        document: dict[str, object] = {
            "schema": 1,
            "ok": False,
            "error": "usage: resolve.py flags",
        }
    else:
        document = flags()
    answer_to.write((json.dumps(document) + "\n").encode("ascii"))
    answer_to.flush()
    return 0 if document["ok"] else 1


def _claim_stdout() -> BinaryIO:
    """Keep standard output to ourselves: whatever imports print goes to standard error."""
    ours = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return ours


def flags() -> dict[str, object]:
    """Return every launch flag of the SGLang that this Python imports."""
    started = time.monotonic()
    document: dict[str, object] = {
        "schema": 1,
        "ok": False,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "sglang_version": _version("sglang"),
        "torch_version": _version("torch"),
    }
    os.environ.setdefault("SGLANG_DISABLE_UPDATE_CHECK", "1")
    warnings.simplefilter("ignore")
    try:
        document["flags"] = [_described(action) for action in _actions()]
        document.update(ok=True, source="parser")
    except BaseException as error:  # noqa: BLE001 - imports of a broken build raise anything, SystemExit too
        document["error"] = _told(error)
        document.update(_from_help())
    document["elapsed_s"] = round(time.monotonic() - started, 3)
    return document


def _version(package: str) -> object:
    """Return an installed package's version, None where there is none."""
    try:
        from importlib.metadata import version

        return version(package)
    except Exception:  # noqa: BLE001 - broken metadata raises anything; the flags matter more
        return None


def _told(error: BaseException) -> str:
    lines = traceback.format_exception_only(type(error), error)
    return "".join(lines).strip()[-2000:]


def _actions() -> list[argparse.Action]:
    """Return what SGLang adds to a parser, plugins included."""
    # Older builds have no plugins, and a broken one may raise anything, SystemExit too.
    with suppress(BaseException):
        import_module("sglang.srt.plugins").load_plugins()
    parser = argparse.ArgumentParser(prog="sglang", add_help=False)
    import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return [action for action in parser._actions if action.option_strings]  # noqa: SLF001 - no public way


def _described(action: argparse.Action) -> dict[str, object]:
    """Describe one flag in JSON's types."""
    kind = type(action).__name__
    spelled = [o for o in action.option_strings if o.startswith("--")] or action.option_strings
    text = None if action.help in (None, argparse.SUPPRESS) else str(action.help)
    replacement = getattr(action, "new_flag", None)
    deprecated = kind.startswith("Deprecated") or bool(text and _DEPRECATED.search(text))
    if deprecated and not replacement and text:
        found = _REPLACEMENT.search(text)
        replacement = found.group(1) if found else None
    entry = {
        "name": spelled[0],
        "aliases": [o for o in action.option_strings if o != spelled[0]],
        "dest": action.dest,
        "action": kind,
        "takes_value": action.nargs != 0,
        "nargs": _plain(action.nargs),
        "type": _type_name(action.type),
        "choices": None if action.choices is None else _listed(action.choices),
        "default": None if action.default is argparse.SUPPRESS else _plain(action.default),
        "required": action.required,
        "deprecated": deprecated,
        "replacement": _plain(replacement),
    }
    if kind == "DeprecatedAction":
        removed = _refusal(action)
        if removed is not None:
            entry["removed"] = removed
    if deprecated and text:
        entry["help"] = text[:400]
    return entry


def _refusal(action: argparse.Action) -> str | None:
    """Return what a retired flag answers when it is passed; None where it only warns.

    By version the same class raises (0.5.4), warns (0.5.9) or asks its parser to stop (0.5.23).
    """
    said: list[str] = []
    parser = argparse.ArgumentParser(prog="sglang")
    parser.error = said.append  # type: ignore[assignment,method-assign]  # it must not exit here
    try:
        action(parser, argparse.Namespace(), [], action.option_strings[0])
    except BaseException as error:  # noqa: BLE001 - whatever it raises ends the launch
        said.append(str(error) or type(error).__name__)
    return said[0] if said else None


def _type_name(kind: object) -> object:
    if kind is None:
        return None
    name = getattr(kind, "__name__", None) or getattr(
        getattr(kind, "func", None), "__name__", None
    )
    return name or repr(kind)[:80]


def _plain(value: object) -> object:
    """Return a value as JSON holds it; what JSON cannot hold as its repr."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return _listed(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return repr(value)[:300]


def _listed(values: Iterable[object]) -> list[object]:
    items = [_plain(item) for item in values]
    return sorted(items, key=str) if isinstance(values, (set, frozenset)) else items


def _from_help() -> dict[str, object]:
    """Read the flags from `--help`; an empty answer where that fails as well."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sglang.launch_server", "--help"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=_HELP_LIMIT_S,
            env=dict(os.environ, COLUMNS="4000"),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = parse_help(done.stdout.decode("utf-8", "replace"))
    return {"ok": True, "source": "help", "flags": found} if found else {}


def parse_help(text: str) -> list[dict[str, object]]:
    """Read the options of argparse's help text; defaults and types do not stand there."""
    found = []
    for line in text.splitlines():
        option = _HELP_OPTION.match(line)
        if option is None:
            continue
        entry = _from_line(option.group(1), option.group(2) or "")
        if entry is not None:
            found.append(entry)
    return found


def _from_line(invocation: str, text: str) -> dict[str, object] | None:
    """Read `--flag VALUE, --alias VALUE` or `--flag {a,b} [{a,b} ...]`."""
    head = re.sub(r"\{[^}]*\}", "VALUE", invocation)
    names = re.findall(r"(?:^|, )(--?[A-Za-z0-9][\w.-]*)", head)
    spelled = [name for name in names if name.startswith("--")]
    if not spelled or spelled[0] == "--help":
        return None
    choices = re.search(r"\{([^}]*)\}", invocation)
    value = head.split(spelled[0], 1)[1].split(",")[0].strip()
    is_switch = f"--no-{spelled[0][2:]}" in spelled
    return {
        "name": spelled[0],
        "aliases": [name for name in names if name != spelled[0]],
        "dest": spelled[0][2:].replace("-", "_"),
        "action": "BooleanOptionalAction" if is_switch else None,
        "takes_value": bool(value),
        "nargs": ("*" if value.startswith("[") else "+") if "..." in value else None,
        "type": None,
        "choices": choices.group(1).split(",") if choices else None,
        "default": None,
        "required": False,
        "deprecated": bool(_DEPRECATED.search(text)),
        "replacement": None,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
