"""`python -m sglsweep.rehearsal --world WORLD.yaml [SGLang's flags]`: launch a stand-in."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from sglsweep.errors import SglsweepError
from sglsweep.rehearsal.arguments import UsageError, defaults
from sglsweep.rehearsal.effective import dsa_fields, is_dsa
from sglsweep.rehearsal.failures import headline_of, parent_traceback
from sglsweep.rehearsal.plan import Plan, decide
from sglsweep.rehearsal.settings import HELP, Settings, read_settings
from sglsweep.rehearsal.tree import Tree
from sglsweep.rehearsal.voice import Clock, Log
from sglsweep.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE_EXIT = 2
_WIDTH = 100


def main(words: Sequence[str]) -> NoReturn:
    """Play one launch; ends the process with SGLang's exit status."""
    if {"-h", "--help"} & set(words):
        os.write(1, HELP.encode())
        sys.exit(0)
    try:
        settings = read_settings(words)
    except SglsweepError as error:
        os.write(2, f"error: {error.message}\n next: {error.next_step}\n".encode())
        sys.exit(error.exit_code)
    stage = settings.stage
    log = Log(stage.sglang_version, Clock(time.time(), stage.time_scale))
    log.raw(
        f"=== sglsweep rehearsal: a stand-in for SGLang {stage.sglang_version}, without model or "
        f"GPU; what happens is decided by the world {settings.world.name} ===\n"
    )
    for line in log.lines["entry"]:
        log.raw(line.format(install=log.lines["install"]) + "\n")
    plan = _decide(settings, log)
    log.adopt(plan.mischief)
    log.clock.sleep(stage.start_s / 2)
    if plan.strikes(Phase.START):
        _refuse(plan, log, "validation")
    _introduce(plan, log)
    if plan.strikes(Phase.ARGS):
        _refuse(plan, log, "parent")
    Tree(plan, log).run()


def _decide(settings: Settings, log: Log) -> Plan:
    try:
        return decide(settings, os.environ)
    except UsageError as error:
        _refuse_usage(log, settings.stage.sglang_version, str(error))


def _refuse_usage(log: Log, version: str, text: str) -> NoReturn:
    """End as argparse does: the usage, one line of error, status 2."""
    prog = log.lines["prog"]
    line, lines = f"usage: {prog} [-h]", []
    for name, value in defaults(version).items():
        flag = "--" + name.replace("_", "-")
        word = f"[{flag}]" if isinstance(value, bool) else f"[{flag} {name.upper()}]"
        if len(line) + len(word) > _WIDTH:
            lines.append(line)
            line = " " * 12
        line = f"{line} {word}"
    log.raw("\n".join([*lines, line, f"{prog}: error: {text}", ""]))
    sys.exit(_USAGE_EXIT)


def _refuse(plan: Plan, log: Log, stack: str) -> NoReturn:
    """End in the parent, before there is any rank."""
    failure = plan.failure
    assert failure is not None  # noqa: S101 - the plan strikes
    if failure.kind == "hang":
        log.clock.sleep(3600)
        sys.exit(1)
    if failure.kind == "killed":
        os.kill(os.getpid(), 9)
    if failure.kind == "usage":
        _refuse_usage(log, plan.stage.sglang_version, failure.headline)
    log.say("kill-tree", pid=os.getpid(), parent=False)
    headline = headline_of(failure, log.lines, plan, 0)
    log.raw(parent_traceback(log.lines, stack, headline))
    sys.exit(1)


def _introduce(plan: Plan, log: Log) -> None:
    """Print what the parent resolves, then `server_args`."""
    args, stage = plan.args, plan.stage
    log.say("ue8m0-parent")
    if is_dsa(stage):
        prefill, decode = (args[name] for name in dsa_fields(stage.sglang_version))
        log.say("resolve-page")
        if plan.arguments.get("kv_cache_dtype") in {None, "auto"}:
            log.say("resolve-kv", kv_dtype=args["kv_cache_dtype"])
        log.say("resolve-dsa", kv_dtype=args["kv_cache_dtype"], prefill=prefill, decode=decode)
    elif "attention_backend" not in plan.arguments:
        log.say("resolve-attention", attention=args["attention_backend"])
    log.clock.sleep(stage.start_s / 4)
    log.say("rlimit")
    shown = (
        f"ServerArgs({', '.join(f'{name}={value!r}' for name, value in args.items())})"
        if stage.sglang_version == "0.5.9"
        else repr(args)
    )
    log.record(f"server_args={shown}")
    log.clock.sleep(stage.start_s / 4)
    log.say("template")


if __name__ == "__main__":
    main(sys.argv[1:])
