"""A follower knows of a growing log what a watcher asks."""

from __future__ import annotations

from sglsweep import catalogue
from sglsweep.triage.follow import Follower
from sglsweep.verdict import Phase

KNOWN = catalogue.load()
ARGS = b"[2026-02-10 10:00:00] server_args={'model_path': '/m', 'tp_size': 8}\n"
BAR = b"Loading safetensors checkpoint shards:  50% Completed | 41/83 [00:21<00:20,  2.0it/s]\r"
BEGIN = b"[2026-02-10 10:01:00 TP0] Capture cuda graph begin. This can take several minutes.\n"
END = (
    b"[2026-02-10 10:01:08 TP0] Capture cuda graph end. Time elapsed: 7.70 s. mem usage=1.62 GB.\n"
)
SIGQUIT = b"[2026-02-10 10:02:00] Received sigquit from a child process. It usually means\n"
CRASH = (
    b"[2026-02-10 10:02:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/s/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
    b"ZeroDivisionError: division by zero\n"
)


def fed(*chunks: bytes) -> Follower:
    follower = Follower(KNOWN)
    for chunk in chunks:
        follower.feed(chunk)
    return follower


def phase_after(follower: Follower, chunk: bytes) -> Phase:
    follower.feed(chunk)
    return follower.phase


def is_compiling_after(follower: Follower, chunk: bytes) -> bool:
    follower.feed(chunk)
    return follower.is_compiling


def test_phase_and_arguments_are_known_as_they_are_printed() -> None:
    follower = fed(b"")
    assert phase_after(follower, ARGS) is Phase.ARGS
    assert follower.server_args["tp_size"] == 8
    assert phase_after(follower, BEGIN) is Phase.GRAPH_CAPTURE
    assert phase_after(follower, END) is Phase.GRAPH_CAPTURE_DONE
    assert not follower.is_capturing


def test_later_capture_makes_it_graph_capture_again() -> None:
    draft = BEGIN.replace(b"Capture cuda graph", b"Capture draft cuda graph")
    follower = fed(BEGIN, END, draft)
    assert follower.is_capturing
    assert follower.phase is Phase.GRAPH_CAPTURE


def test_bar_that_is_being_redrawn_is_progress() -> None:
    follower = fed(ARGS, BAR, BAR.replace(b"41/83", b"52/83"))
    assert follower.progress["weights"] == (52, 83)
    assert "52/83" in follower.last_text


def test_fatal_line_is_terminal_at_once() -> None:
    follower = fed(ARGS, CRASH)
    assert follower.terminal is not None
    assert follower.terminal.line == 4
    assert follower.terminal.signature == "unknown"
    assert not follower.terminal.is_cascade


def test_cascade_gives_way_to_the_cause_that_follows_it() -> None:
    terminals = [
        fed(ARGS, *chunks).terminal
        for chunks in ([SIGQUIT], [SIGQUIT, CRASH], [SIGQUIT, CRASH, SIGQUIT])
    ]
    assert [t and t.is_cascade for t in terminals] == [True, False, False]
    assert [t and t.text for t in terminals][1:] == ["ZeroDivisionError: division by zero"] * 2


def test_ready_is_the_ready_line() -> None:
    ready = b"[2026-02-10 10:02:00] The server is fired up and ready to roll!\n"
    assert not fed(ARGS).is_ready
    assert fed(ARGS, ready).is_ready


def test_compiling_lasts_until_something_else_is_said() -> None:
    jit = b"[2026-02-10 10:01:00 TP0] Entering DeepGEMM JIT Pre-Compile session.\n"
    follower = fed(ARGS)
    bar = b" 41%|####      | 19/46 [00:52<01:14,  2.77s/it]\r"
    after = [is_compiling_after(follower, chunk) for chunk in (jit, bar, b"\n" + BEGIN)]
    assert after == [True, True, False]


def test_half_a_line_is_shown_but_not_judged() -> None:
    follower = fed(ARGS, b"[2026-02-10 10:00:20 TP0] Load weight begin. avail")
    assert follower.last_text == "Load weight begin. avail"
    assert follower.phase is Phase.ARGS
    assert follower.records == 1
