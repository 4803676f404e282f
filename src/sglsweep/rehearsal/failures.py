"""How a failure looks in a log: what a world decides, turned into tracebacks and last words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.rehearsal.plan import Plan
    from sglsweep.rehearsal.settings import Stage
    from sglsweep.rehearsal.world import Truth

_FRAME = re.compile(r"^(?P<file>.+?):(?P<line>\d+) (?P<name>[\w<>]+)(?:: (?P<code>.*))?$")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EARLY = frozenset({Phase.START, Phase.ARGS})
_SERVING = frozenset({Phase.WARMUP, Phase.READY, Phase.DECODE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One entry of failures.yaml; see there for what each field means."""

    cause: tuple[str, ...]
    verdict: str
    phases: tuple[str, ...]
    kind: str
    headline: str = ""
    frames: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    is_async: bool = False
    wrapped: bool = False
    at: str = "first"
    aborts: str = ""
    watchdog: bool = False


@cache
def failures() -> tuple[Failure, ...]:
    """Return every look that is known, in the order of the file."""
    text = (resources.files(__package__) / "failures.yaml").read_text("utf-8")
    return tuple(_failure(entry) for entry in yaml.load(text, Loader=_Loader))  # noqa: S506


def failure_for(truth: Truth, shows: str = "") -> Failure | None:
    """Return how a launch's end looks; None where it serves.

    `shows` is the cause whose look is taken; "" for the truth's own.
    """
    if truth.verdict in {Verdict.SERVING, Verdict.GRAPH_CAPTURE_OK, Verdict.INCOMPLETE}:
        return None
    named = [f for f in failures() if (shows or truth.cause) in f.cause]
    alike = [f for f in failures() if f.verdict == truth.verdict]
    named_there, alike_there = (
        [f for f in fs if truth.phase in f.phases] for fs in (named, alike)
    )
    # SGLang's watchdog covers neither loading nor capture: a hang there is silent.
    is_hang = truth.verdict is Verdict.HANG
    by_rank = (named_there, alike_there if is_hang else named, alike_there, alike)
    return next(found[0] for found in by_rank if found)


def traceback_text(lines: Mapping[str, Any], failure: Failure, phase: Phase, headline: str) -> str:
    """Return the traceback of a failure in a phase, ending in a newline.

    `headline` is the exception's text, with its type in front.
    """
    stacks = lines["stacks"]
    frames = [*_frames_of_phase(stacks, failure, phase), *failure.frames]
    text = _traceback(frames, headline, lines)
    if not (failure.wrapped and phase is Phase.GRAPH_CAPTURE):
        return text
    message = headline.partition(": ")[2]
    advice = "\n".join(["Possible solutions:", *lines["capture-advice"], "", ""])
    return (
        f"{text}\nDuring handling of the above exception, another exception occurred:\n\n"
        + _traceback(
            [*stacks["init"], *stacks["graph-wrapper"]],
            f"Exception: Capture cuda graph failed: {message}\n{advice}",
            lines,
        )
    )


def parent_traceback(lines: Mapping[str, Any], stack: str, headline: str) -> str:
    """Return a traceback of the parent process, through one of its named stacks."""
    return _traceback(lines["stacks"][stack], headline, lines)


def aborted_text(failure: Failure) -> str:
    """Return the last words of a process that C++ ends: terminate, then faulthandler's dump."""
    return (
        "terminate called after throwing an instance of 'c10::AcceleratorError'\n"
        f"  what():  {failure.aborts}\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\n\n" + fatal_text("Fatal Python error: Aborted")
    )


def fatal_text(headline: str) -> str:
    """Return faulthandler's dump of a process that a signal ends."""
    return (
        f"{headline}\n\n"
        "Thread 0x00007fdb7bfff6c0 (most recent call first):\n"
        '  File "/usr/lib/python3.12/threading.py", line 359 in wait\n'
        '  File "/usr/lib/python3.12/threading.py", line 1073 in _bootstrap_inner\n'
        '  File "/usr/lib/python3.12/threading.py", line 1030 in _bootstrap\n\n'
        "Current thread 0x00007fcd330f1300 (most recent call first):\n"
        '  File "/usr/lib/python3.12/multiprocessing/process.py", line 108 in run\n'
        '  File "/usr/lib/python3.12/multiprocessing/spawn.py", line 122 in spawn_main\n'
        '  File "<string>", line 1 in <module>\n\n'
        "Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)\n"
    )


def headline_of(failure: Failure, lines: Mapping[str, Any], plan: Plan, rank: int) -> str:
    """Fill a failure's headline with the numbers of one rank's card."""
    return failure.headline.replace("{oom}", _oom(plan.stage, rank)).replace(
        "{no_room}", _no_room(lines["no-room"], plan)
    )


def _no_room(template: str, plan: Plan) -> str:
    fraction = plan.args["mem_fraction_static"]
    least = 1 - plan.memory.loaded / plan.memory.start
    return template.format(fraction=fraction, above=least + 0.001, minimum=least)


def _oom(stage: Stage, rank: int) -> str:
    free_mib = 18.94 + 8 * (rank % 3)
    used = stage.gpu_gb - free_mib / 1024
    return (
        f"CUDA out of memory. Tried to allocate 196.00 MiB. GPU {rank} has a total capacity of "
        f"{stage.gpu_gb:.2f} GiB of which {free_mib:.2f} MiB is free. Including non-PyTorch "
        f"memory, this process has {used:.2f} GiB memory in use. Of the allocated memory "
        f"{used - 1.31:.2f} GiB is allocated by PyTorch, and 127.40 MiB is reserved by PyTorch "
        "but unallocated. If "
        "reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
        "expandable_segments:True to avoid fragmentation.  See documentation for Memory Management"
        "  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def _failure(entry: dict[str, Any]) -> Failure:
    entry["is_async"] = bool(entry.pop("async", False))
    lists = {key: tuple(entry.get(key, ())) for key in ("cause", "phases", "frames", "before")}
    return Failure(**{**entry, **lists})


def _frames_of_phase(
    stacks: Mapping[str, Sequence[str]], failure: Failure, phase: Phase
) -> Sequence[str]:
    if phase is Phase.START:
        return stacks["validation"]
    if phase in _EARLY:
        return stacks["parent"]
    if phase in _SERVING:
        return [*stacks["loop"], *stacks["result" if failure.is_async else "forward"]]
    inner = {Phase.WEIGHTS_DONE: "kv-cache", Phase.GRAPH_CAPTURE_DONE: "graph-capture"}
    return [*stacks["init"], *stacks[inner.get(phase, str(phase))]]


def _traceback(frames: Sequence[str], headline: str, lines: Mapping[str, Any]) -> str:
    drawn = "".join(_drawn(frame, lines) for frame in frames)
    return f"Traceback (most recent call last):\n{drawn}{headline}\n"


def _drawn(frame: str, lines: Mapping[str, Any]) -> str:
    found = _FRAME.match(frame.replace("{site}", lines["site"]))
    assert found is not None, frame  # noqa: S101 - our own data
    path = found["file"]
    if not path.startswith(("/", "<")):
        path = f"{lines['install']}/{path}"
    text = f'  File "{path}", line {found["line"]}, in {found["name"]}\n'
    code = found["code"]
    if not code:
        return text
    return f"{text}    {code}\n{_carets(code)}"


def _carets(code: str) -> str:
    """Underline the part of a line that failed, as Python does where it is not the whole line."""
    for head in ("return ", " = "):
        start = code.find(head)
        if start >= 0:
            start += len(head)
            return f"    {' ' * start}{'^' * (len(code) - start)}\n"
    return ""
