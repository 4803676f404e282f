"""Asks one build's SGLang about itself; run by that build's own Python, standard library only.

    python resolve.py flags
    python resolve.py cells < REQUEST.json

Each prints one JSON document and launches nothing. `flags`: every launch flag as SGLang's own
parser declares it, with aliases, choices, defaults, deprecations and replacements; where the
parser cannot be had, the text of `--help` is read. `cells`: what SGLang's own resolution makes of
each command line of the request: refused in its words, or the effective flags. The request is

    {"cells": [{"argv": [...], "env": {...}}], "cwd": null, "limit_s": 20,
     "gpu": null | {"name", "capability": [12, 0], "memory_mib", "sm_count", "count"},
     "configs": {MODEL: its config.json}}

Without `gpu` the machine's own is asked for; torch is told what it is, and never touches it.
Whatever SGLang and what it imports print goes to standard error.
Exit status 0, or 1 with `"ok": false` and the reason in the document.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import enum
import gc
import importlib.abc
import importlib.machinery
import io
import json
import logging
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any, BinaryIO, Callable, Generator, Iterable, Iterator, NoReturn

_DEPRECATED = re.compile(
    r"^\W*(deprecated|obsolete|no longer)\b|\b(is|are) (now )?deprecated\b"
    r"|\bthis (flag|option|argument) (is|was|will be) (obsolete|removed|no longer)",
    re.IGNORECASE,
)
_REPLACEMENT = re.compile(r"\b(?:use|by|with|to)\s+[`'\"]?(--[a-z0-9][a-z0-9-]*)", re.IGNORECASE)
_HELP_OPTION = re.compile(r"^  (-[^ ].*?)(?:  +(.*))?$")
_HELP_LIMIT_S = 180
_CELL_LIMIT_S = 20.0
_FIRST_LIMIT_S = 120.0
"""The first cell imports what the others find imported."""
_GROUP_LIMIT_S = 900.0
_BATCH = 32
"""Cells to a fork: a fork costs more than a cell."""
_MOST_SIDE_BY_SIDE = 8
"""Forks that resolve at once: more only wait for memory."""
_OWN_NAME = re.compile(r"\bSGL(?:ANG)?_[A-Z0-9_]+\b")
_KERNEL_PACKAGES = frozenset({"sgl_kernel", "deep_gemm", "flash_mla", "flashinfer"})


def main(argv: list[str]) -> int:
    """Answer one question; the only thing on standard output is the answer."""
    answer_to = _claim_stdout()
    if argv == ["flags"]:
        document = flags()
    elif argv == ["cells"]:
        document = cells()
    else:
        document = {"schema": 1, "ok": False, "error": "usage: resolve.py flags | cells"}
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
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return _listed(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    # An address would make two equal things different.
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:300]


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


class _NoAnswerError(Exception):
    """Why the question itself cannot be answered, in words for the user."""


def cells() -> dict[str, object]:
    """Return what SGLang makes of each cell of the request that stands on standard input.

    Cells of one environment share one import; each batch of them is resolved in a fork of it, so
    that a cell that crashes or hangs costs only itself.
    """
    started = time.monotonic()
    document: dict[str, object] = {
        "schema": 1,
        "ok": False,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "sglang_version": _version("sglang"),
        "torch_version": _version("torch"),
        "transformers_version": _version("transformers"),
    }
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
        document.update(_answered(request))
        document["ok"] = True
    except _NoAnswerError as told:
        document["error"] = str(told)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller must be told in JSON
        document["error"] = _told(error)
    document["elapsed_s"] = round(time.monotonic() - started, 3)
    return document


def _answered(request: dict[str, Any]) -> dict[str, object]:
    if request.get("cwd"):
        os.chdir(request["cwd"])
    gpu = request.get("gpu") or _real_gpu()
    jobs = [dict(job, index=index) for index, job in enumerate(request["cells"])]
    answers: list[dict[str, Any]] = [{} for _ in jobs]
    totals: dict[str, Any] = {"gpu": gpu, "import_s": 0.0, "resolve_s": 0.0, "assumed": []}
    limit_s = float(request.get("limit_s") or _CELL_LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="sglsweep-") as folder:
        models = _Models(folder, request.get("configs") or {})
        able = [job for job in jobs if _is_able(job, models, answers)]
        for group in _by_environment(able):
            said = _in_fork(lambda: _import_and_resolve(group, gpu, limit_s), _GROUP_LIMIT_S)  # noqa: B023 - called at once
            _gather(group, said, answers, totals)
    totals["architectures"] = models.architectures
    totals["unread_env"] = _unread(jobs, totals.get("sglang_file"))
    return dict(totals, cells=answers, base=_take_base(answers))


def _unread(jobs: list[dict[str, Any]], sglang_file: str | None) -> dict[str, list[str]]:
    """Return names of SGLang's own kind that no file of it reads, each with the nearest it does.

    A name that is set in vain looks like a setting that was tried.
    """
    given = {name for job in jobs for name in job.get("env") or {}}
    asked = sorted(name for name in given if _OWN_NAME.fullmatch(name))
    if not asked or not sglang_file:
        return {}
    read: set[str] = set()
    for folder, _, names in os.walk(os.path.dirname(sglang_file)):
        for name in names:
            if name.endswith(".py"):
                with suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                    read.update(_OWN_NAME.findall(file.read().decode("utf-8", "replace")))
    return {
        name: difflib.get_close_matches(name, read, n=1, cutoff=0.7)
        for name in asked
        if name not in read
    }


def _gather(
    group: list[dict[str, Any]],
    said: dict[str, Any],
    answers: list[dict[str, Any]],
    totals: dict[str, Any],
) -> None:
    found = said.get("cells") or {}
    for job in group:
        lost = {"state": "unknown", "error": said.get("error") or "no answer"}
        answers[job["index"]] = found.get(str(job["index"]), lost)
    if not found and said.get("error") and not any(a.get("effective") for a in answers):
        raise _NoAnswerError(str(said["error"]))
    totals["import_s"] = round(totals["import_s"] + said.get("import_s", 0.0), 3)
    totals["resolve_s"] = round(totals["resolve_s"] + said.get("resolve_s", 0.0), 3)
    totals["assumed"] = sorted({*totals["assumed"], *said.get("assumed", ())})
    totals["sglang_file"] = said.get("sglang_file")
    if said.get("sglang_version"):
        totals["sglang_version"] = said["sglang_version"]


def _take_base(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Move what all cells share into one place: hundreds of settings, a few of them different."""
    base: dict[str, Any] = next((a["effective"] for a in answers if "effective" in a), {})
    for answer in answers:
        if "effective" in answer:
            own = answer.pop("effective")
            answer["changes"] = {k: v for k, v in own.items() if k not in base or base[k] != v}
            answer["missing"] = [k for k in base if k not in own]
    return dict(base)


def _by_environment(jobs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Put cells of one environment together: SGLang reads some of its variables on import."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        groups.setdefault(json.dumps(job.get("env") or {}, sort_keys=True), []).append(job)
    return list(groups.values())


def _is_able(job: dict[str, Any], models: _Models, answers: list[dict[str, Any]]) -> bool:
    """Point a job at its model's files; False where there are none to resolve it with."""
    place = _model_place(job["argv"])
    if place is None:
        return True
    name = job["argv"][place]
    found = models.folder_of(name)
    if found is None:
        why = "no config.json of %s here: what depends on the model is not known" % name
        answers[job["index"]] = {"state": "unknown", "error": why}
        return False
    job["argv"] = [*job["argv"][:place], found, *job["argv"][place + 1 :]]
    job["model"] = (found, name)
    return True


def _model_place(argv: list[str]) -> int | None:
    for place, word in enumerate(argv[:-1]):
        if word in ("--model-path", "--model"):
            return place + 1
    return None


class _Models:
    """Folders with a config.json: given with the request, on the disk, or in the hub's cache."""

    def __init__(self, folder: str, configs: dict[str, Any]) -> None:
        self._folder = folder
        self._configs = configs
        self._found: dict[str, str | None] = {}
        self.architectures: dict[str, str] = {}

    def folder_of(self, name: str) -> str | None:
        """Return where a model's config.json lies; None where there is none."""
        if name not in self._found:
            folder = self._found[name] = self._find(name)
            if folder is not None:
                self.architectures[name] = _architecture(folder)
        return self._found[name]

    def _find(self, name: str) -> str | None:
        if name in self._configs:
            return self._written(name)
        path = os.path.expanduser(name)
        if os.path.isdir(path):
            return path if os.path.exists(os.path.join(path, "config.json")) else None
        return _in_cache(name)

    def _written(self, name: str) -> str:
        # SGLang looks for words like "nvfp4" in the path: the name stays in it.
        folder = os.path.join(self._folder, *[p for p in name.split("/") if p not in ("", "..")])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(self._configs[name], file)
        return folder


def _architecture(folder: str) -> str:
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            return str((json.load(file).get("architectures") or [""])[0])
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return ""


def _in_cache(name: str) -> str | None:
    home = os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    own = os.path.join(cache, "models--" + name.replace("/", "--"))
    tried = []
    with suppress(OSError), open(os.path.join(own, "refs", "main"), encoding="ascii") as ref:
        tried.append(ref.read().strip())
    with suppress(OSError):
        tried += sorted(os.listdir(os.path.join(own, "snapshots")))
    for commit in tried:
        folder = os.path.join(own, "snapshots", commit)
        if os.path.exists(os.path.join(folder, "config.json")):
            return folder
    return None


def _real_gpu() -> dict[str, object] | None:
    """Ask the driver's own tool: what torch would answer, without a CUDA context in our forks."""
    query = "--query-gpu=name,memory.total,compute_cap"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=True,
        )
        rows = [line.split(",") for line in done.stdout.decode().splitlines() if line.strip()]
        name, memory, capability = (word.strip() for word in rows[0])
        major, minor = capability.split(".")
        return {
            "name": name,
            "capability": [int(major), int(minor)],
            "memory_mib": int(float(memory)),
            "count": len(rows),
            "is_described": False,
        }
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def _in_fork(work: Callable[[], dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """Run `work` in a fork; what it returns, or why it returned nothing."""
    last: dict[str, Any] = {}
    for said in _forked(lambda tell: tell(work()), limit_s):
        last = said
    return last


def _forked(
    work: Callable[[Callable[[dict[str, Any]], None]], None], limit_s: float
) -> Iterator[dict[str, Any]]:
    """Run `work` in a fork and yield what it tells; at last how it was lost, where it was.

    `limit_s` is the longest silence that is waited for.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(work, writing)
    os.close(writing)
    try:
        is_silent = yield from _lines(reading, limit_s)
    finally:
        os.close(reading)
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    if is_silent:
        yield {"lost": "no answer within %g s" % limit_s}
    elif os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        yield {"lost": "died of signal %d" % os.WTERMSIG(status)}
    elif os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        yield {"lost": "ended with exit status %d" % os.WEXITSTATUS(status)}


def _be_child(work: Callable[[Callable[[dict[str, Any]], None]], None], writing: int) -> NoReturn:
    """Do the work and end without the parent's clean-up."""
    with suppress(OSError):
        os.setpgid(0, 0)

    def tell(said: dict[str, Any]) -> None:
        line = (json.dumps(said) + "\n").encode("ascii")
        while line:
            line = line[os.write(writing, line) :]

    try:
        work(tell)
    except BaseException as error:  # noqa: BLE001 - SystemExit of a broken build too
        tell({"error": _told(error)})
    os._exit(0)


def _lines(reading: int, limit_s: float) -> Generator[dict[str, Any], None, bool]:
    """Yield JSON lines until the other end closes; True if it went silent instead."""
    pending = b""
    while True:
        if not select.select([reading], [], [], limit_s)[0]:
            return True
        chunk = os.read(reading, 1 << 20)
        if not chunk:
            return False
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _import_and_resolve(
    jobs: list[dict[str, Any]], gpu: dict[str, Any] | None, limit_s: float
) -> dict[str, Any]:
    """Import SGLang in this process and resolve every job in forks of it."""
    started = time.monotonic()
    _set_environment(jobs[0].get("env") or {})
    warnings.simplefilter("ignore")
    card = _Card(gpu) if gpu else None
    if card is not None:
        card.pretend()
    module = import_module("sglang.srt.server_args")
    if card is not None:
        card.pretend_in_sglang()
    with suppress(BaseException):
        import_module("sglang.srt.plugins").load_plugins()
    _build_parser_once(module)
    resolver = _Resolver(module, card)
    first = _warmed(jobs[:1], resolver, limit_s)
    imported = time.monotonic()
    found = dict(first)
    batches = [jobs[start : start + _BATCH] for start in range(1, len(jobs), _BATCH)]
    found.update(_side_by_side(batches, lambda batch: _checked(batch, resolver, limit_s)))
    return {
        "cells": {str(index): answer for index, answer in found.items()},
        "import_s": round(imported - started, 3),
        "resolve_s": round(time.monotonic() - imported, 3),
        "assumed": card.assumed() if card else [],
        "sglang_file": getattr(sys.modules.get("sglang"), "__file__", None),
        "sglang_version": _own_version(),
    }


def _build_parser_once(module: Any) -> None:
    """Let SGLang parse every cell with one parser: building it takes longer than resolving."""
    if not hasattr(module, "argparse"):
        return
    declare = module.ServerArgs.add_cli_args
    built = argparse.ArgumentParser(prog="sglang serve")
    declare(built)
    stand_in = types.ModuleType("argparse")
    stand_in.__dict__.update(vars(argparse), ArgumentParser=lambda *_, **__: built)
    module.argparse = stand_in
    module.ServerArgs.add_cli_args = staticmethod(
        lambda parser: None if parser is built else declare(parser)
    )


def _own_version() -> object:
    """Return the version of the SGLang that was imported, wherever it lies."""
    return getattr(sys.modules.get("sglang"), "__version__", None)


def _set_environment(env: dict[str, str]) -> None:
    os.environ.update(env)
    os.environ["SGLANG_DISABLE_UPDATE_CHECK"] = "1"
    # Nothing is downloaded to answer a question: what is not here is not known.
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"


def _warmed(
    jobs: list[dict[str, Any]], resolver: _Resolver, limit_s: float
) -> dict[int, dict[str, Any]]:
    """Resolve the first job, then import here what it imported, so that no fork has to again."""
    before = set(sys.modules)
    names: list[str] = []

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        tell(resolver.resolve(jobs[0]))
        tell({"modules": sorted(set(sys.modules) - before)})

    found: dict[int, dict[str, Any]] = {}
    for said in _forked(work, max(limit_s, _FIRST_LIMIT_S)):
        if "modules" in said:
            names = said["modules"]
        else:
            found.setdefault(jobs[0]["index"], _kept(said))
    for name in names:
        if name.split(".")[0] in ("sglang", "transformers"):
            with suppress(BaseException):
                import_module(name)
    gc.collect()
    gc.freeze()
    return found


def _checked(
    jobs: list[dict[str, Any]], resolver: _Resolver, limit_s: float
) -> dict[int, dict[str, Any]]:
    """Resolve a batch in one fork; its last job once more alone, to see that none left a trace."""
    found = _batch(jobs, resolver, limit_s)
    if len(jobs) > 1:
        last = jobs[-1]
        alone = _batch([last], resolver, limit_s)
        if _without_chance(alone[last["index"]]) != _without_chance(found[last["index"]]):
            for job in jobs[1:]:
                found.update(_batch([job], resolver, limit_s))
    return found


def _side_by_side(
    batches: list[list[dict[str, Any]]],
    work: Callable[[list[dict[str, Any]]], dict[int, dict[str, Any]]],
) -> dict[int, dict[str, Any]]:
    """Work through batches in as many forks as there are cores, and gather what they found."""
    count = min(len(batches), _MOST_SIDE_BY_SIDE, len(os.sched_getaffinity(0)))
    found: dict[int, dict[str, Any]] = {}
    if count < 2:  # noqa: PLR2004 - one works here
        for batch in batches:
            found.update(work(batch))
        return found
    with tempfile.TemporaryDirectory(prefix="sglsweep-") as folder:
        paths = [os.path.join(folder, str(place)) for place in range(count)]
        pids = [_share(batches[place::count], work, path) for place, path in enumerate(paths)]
        for place, pid in enumerate(pids):
            os.waitpid(pid, 0)
            with suppress(OSError, ValueError), open(paths[place], encoding="ascii") as file:
                found.update({int(index): answer for index, answer in json.load(file).items()})
    return found


def _share(
    batches: list[list[dict[str, Any]]],
    work: Callable[[list[dict[str, Any]]], dict[int, dict[str, Any]]],
    path: str,
) -> int:
    """Fork, work through some batches there, and write what was found; the fork's id."""
    pid = os.fork()
    if pid:
        return pid
    found: dict[int, dict[str, Any]] = {}
    with suppress(BaseException):
        for batch in batches:
            found.update(work(batch))
    with suppress(OSError), open(path, "w", encoding="ascii") as file:
        json.dump(found, file)
    os._exit(0)


def _without_chance(answer: dict[str, Any]) -> dict[str, Any]:
    """Drop what differs from launch to launch, and the lines, which are printed once only."""
    effective = dict(answer.get("effective") or {})
    for name in ("random_seed", "nccl_port", "port", "model_config"):
        effective.pop(name, None)
    return {"state": answer.get("state"), "error": answer.get("error"), "effective": effective}


def _batch(
    jobs: list[dict[str, Any]], resolver: _Resolver, limit_s: float
) -> dict[int, dict[str, Any]]:
    """Resolve jobs one after another in a fork; one that ends or hangs it costs only itself."""
    found: dict[int, dict[str, Any]] = {}
    left = list(jobs)
    while left:
        queue = list(left)

        def work(tell: Callable[[dict[str, Any]], None], queue: list[Any] = queue) -> None:
            for job in queue:
                tell(resolver.resolve(job))

        for said in _forked(work, limit_s):
            if left:
                found[left.pop(0)["index"]] = _kept(said)
    return found


def _kept(said: dict[str, Any]) -> dict[str, Any]:
    if "lost" in said:
        return {"state": "unknown", "error": "resolving it " + said["lost"]}
    return said if "state" in said else {"state": "unknown", "error": said.get("error")}


class _Resolver:
    """SGLang's own way from words to a configuration, by version."""

    def __init__(self, module: Any, card: _Card | None) -> None:
        self._module = module
        self._card = card

    def resolve(self, job: dict[str, Any]) -> dict[str, Any]:
        """Resolve one cell; the environment is as before afterwards."""
        before = dict(os.environ)
        records: list[logging.LogRecord] = []
        make = logging.getLogRecordFactory()

        def noting(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            records.append(record)
            return record

        # A handler would be removed by SGLang's own basicConfig(force=True).
        logging.setLogRecordFactory(noting)
        logging.root.setLevel(logging.INFO)
        said = io.StringIO()
        if self._card is not None:
            self._card.guesses.clear()
        try:
            with redirect_stderr(said), redirect_stdout(said):
                answer = self._outcome(job, said)
        finally:
            logging.setLogRecordFactory(make)
            os.environ.clear()
            os.environ.update(before)
        answer["lines"] = [_line(record) for record in records if _is_telling(record)]
        if self._card is not None and self._card.guesses:
            answer["unknown"] = sorted(self._card.guesses)
        return _renamed(answer, job.get("model"))

    def _outcome(self, job: dict[str, Any], said: io.StringIO) -> dict[str, Any]:
        try:
            effective = self._effective(job["argv"])
        except BaseException as error:  # noqa: BLE001 - a refusal is the answer, SystemExit too
            words = _parser_words(said.getvalue()) if isinstance(error, SystemExit) else ""
            state = "refused" if words or _is_refusal(error) else "unknown"
            kind = "argparse" if words else type(error).__name__
            answer = {"state": state, "kind": kind, "error": words or _told(error)}
            if state == "refused" and not words:
                answer["trace"] = _trace(error)
            return answer
        return {"state": "resolved", "effective": effective}

    def _effective(self, argv: list[str]) -> dict[str, object]:
        args = self._module.prepare_server_args(list(argv))
        if hasattr(args, "resolve_once"):  # 0.5.23: resolution became a step of its own
            args.resolve_once()
        args.check_server_args()
        if hasattr(args, "resolved_dict"):
            return {name: _plain(value) for name, value in args.resolved_dict().items()}
        names = [field.name for field in dataclasses.fields(args)]
        return {name: _plain(getattr(args, name)) for name in names}


def _trace(error: BaseException) -> str:
    """Return a traceback as a launch's log would end with it."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]


def _parser_words(text: str) -> str:
    """Return what argparse says last: `launch_server.py: error: ...`."""
    found = re.findall(r"^\S.*?: error: (.*)", text, re.MULTILINE)
    return found[-1].strip() if found else ""


def _is_refusal(error: BaseException) -> bool:
    """True where SGLang's own code says no; a slip of this program or of what it fakes is none."""
    if not isinstance(error, (ValueError, AssertionError, NotImplementedError, RuntimeError)):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    files = [frame.filename.replace(os.sep, "/") for frame in frames]
    own = [f for f in files if "/sglang/" in f or "/transformers/" in f]
    return bool(own) and files[-1] == own[-1]


def _is_telling(record: logging.LogRecord) -> bool:
    return record.name.startswith("sglang") or record.levelno >= logging.WARNING


def _line(record: logging.LogRecord) -> dict[str, str]:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - a log call with wrong arguments says what it can
        text = str(record.msg)
    return {"level": record.levelname, "text": text[:600]}


def _renamed(answer: dict[str, Any], model: tuple[str, str] | None) -> dict[str, Any]:
    """Put the model's name back where its folder stands."""
    if model is None or model[0] == model[1]:
        return answer
    folder, name = model
    return json.loads(json.dumps(answer).replace(json.dumps(folder)[1:-1], json.dumps(name)[1:-1]))  # type: ignore[no-any-return]  # the same shape


class _Card:
    """A GPU that torch and SGLang are told of; real facts or a description, never touched."""

    def __init__(self, gpu: dict[str, Any]) -> None:
        self._gpu = gpu
        self._fakes = _Fakes()
        self._has_faked_cuda = False
        self.guesses: set[str] = set()

    def assumed(self) -> list[str]:
        """Return what a launch needs, is not installed here, and was taken for granted."""
        found = sorted(self._fakes.served)
        return [*found, "a torch with CUDA"] if self._has_faked_cuda else found

    def pretend(self) -> None:
        """Tell torch; packages with kernels that are not installed import as empty ones."""
        torch: Any = import_module("torch")
        sys.meta_path.append(self._fakes)
        if torch.version.cuda is None:
            self._has_faked_cuda = True
            torch.version.cuda = "12.8"
        self._forgive_missing_operators(torch)
        properties = self._properties()
        capability = tuple(self._gpu["capability"])
        free = (int(self._gpu["memory_mib"]) - 700) << 20
        cuda = torch.cuda
        cuda.is_available = lambda: True
        cuda.is_initialized = lambda: False
        cuda._lazy_init = lambda: None  # noqa: SLF001 - the one door to the driver
        cuda.current_device = lambda: 0
        cuda.set_device = lambda *_: None
        cuda.get_device_capability = lambda *_, **__: capability
        cuda.get_device_name = lambda *_, **__: str(self._gpu["name"])
        cuda.get_device_properties = lambda *_, **__: properties
        cuda.device_count = self._count
        cuda.mem_get_info = lambda *_, **__: self._guess(
            "free GPU memory", (free, int(self._gpu["memory_mib"]) << 20)
        )

    def pretend_in_sglang(self) -> None:
        """Answer for `nvidia-smi`, which SGLang asks for the memory of every cell."""
        capacity = float(self._gpu["memory_mib"])
        for name, module in list(sys.modules.items()):
            if name.startswith("sglang") and "get_nvgpu_memory_capacity" in vars(module):
                module.get_nvgpu_memory_capacity = lambda *_, **__: capacity  # type: ignore[attr-defined]  # as asked above

    def _guess(self, what: str, value: Any) -> Any:
        self.guesses.add(what)
        return value

    def _count(self) -> int:
        count = self._gpu.get("count")
        return int(count) if count else int(self._guess("number of GPUs", 8))

    def _properties(self) -> Any:
        card = self

        class Properties:
            major, minor = card._gpu["capability"]
            name = card._gpu["name"]
            total_memory = int(card._gpu["memory_mib"]) << 20
            gcnArchName = ""  # noqa: N815 - torch's name
            warp_size = 32

            @property
            def multi_processor_count(self) -> int:
                known = card._gpu.get("sm_count")
                return int(known) if known else int(card._guess("number of SMs", 132))

            def __getattr__(self, name: str) -> int:
                if name.startswith("__"):
                    raise AttributeError(name)
                return int(card._guess("GPU property " + name, 0))

        return Properties()

    def _forgive_missing_operators(self, torch: Any) -> None:
        """A fake kernel package registers no operators; SGLang describes them on import."""
        describe = torch.library.register_fake

        def forgiving(name: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                made = describe(name, *args, **kwargs)
            except RuntimeError:
                return lambda function: function

            def apply(function: Any) -> Any:
                try:
                    return made(function)
                except RuntimeError:
                    return function

            return apply if callable(made) else made

        torch.library.register_fake = forgiving


class _Anything(type):
    """Classes of a fake package: any attribute is there, any call succeeds."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Thing()


class _Thing(metaclass=_Anything):
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_decorator = len(args) == 1 and callable(args[0]) and not kwargs
        return args[0] if is_decorator else _Thing()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Thing()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __gt__(self, _other: object) -> bool:
        return True

    __ge__ = __gt__


class _FakeModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Anything(name, (_Thing,), {})


class _Fakes(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds kernel packages that nothing else finds: it stands last on the path."""

    def __init__(self) -> None:
        self.served: set[str] = set()

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> Any:
        """Serve packages that hold kernels and no decision."""
        top = fullname.split(".", maxsplit=1)[0]
        if top not in _KERNEL_PACKAGES:
            return None
        self.served.add(top)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return an empty module with a version that no comparison refuses."""
        module = _FakeModule(spec.name)
        module.__path__ = []
        module.__version__ = "99.0.0"  # type: ignore[attr-defined]  # what packages have
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
