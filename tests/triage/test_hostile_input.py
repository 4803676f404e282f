"""No bytes make triage crash, stall, or answer differently by how they are cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.ending import Ending
from sglsweep.triage.follow import Follower
from sglsweep.verdict import Verdict

KNOWN = catalogue.load()
FRAGMENTS = [
    b"[2026-02-10 10:00:00 TP3] ",
    b"[2026-02-10 10:00:01 DP1 TP0] ",
    b"sglang-1  | ",
    b"(SGLangWorker pid=3813) ",
    b"\r",
    b"\n",
    b"\r\n",
    b"\x1b[33m",
    b"\x00",
    b"\xff\xfe",
    b"Scheduler hit an exception: Traceback (most recent call last):\n",
    b"Traceback (most recent call last):\n",
    b'  File "/x/srt/managers/scheduler.py", line 3, in run_scheduler_process\n',
    b"    raise err\n",
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    b"ValueError: nothing known\n",
    b"AssertionError\n",
    b"\nThe above exception was the direct cause of the following exception:\n\n",
    b"Received sigquit from a child process. It usually means the child failed.\n",
    b"Load weight begin. avail mem=94.10 GB\n",
    b"Capture cuda graph begin. This can take up to several minutes.\n",
    b"Capture cuda graph end. Time elapsed: 7.71 s.\n",
    b"Capturing batches (bs=8 avail_mem=6.1 GB):  50%|##  | 4/8 [00:03<00:03]",
    b"The server is fired up and ready to roll!\n",
    b'INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n',
    b"Decode batch, #running-req: 1, #token: 3, gen throughput (token/s): 4.0\n",
    b"Prefill batch, #new-seq: 1, #new-token: 6,\n",
    b"server_args={'model_path': 'x', 'tp_size': 8}\n",
    b'{"log": "ValueError: in a shipper\\n", "time": "2026"}\n',
    b"Fatal Python error: Segmentation fault\n",
    b"Killed\n",
]
LOGS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=40)), max_size=40).map(
    b"".join
)


@settings(max_examples=300, deadline=None)
@given(LOGS, st.lists(st.integers(1, 200), min_size=1, max_size=8))
def test_any_cut_gives_the_same_diagnosis(log: bytes, cuts: list[int]) -> None:
    follower = Follower(KNOWN)
    start = number = 0
    while start < len(log):
        size = cuts[number % len(cuts)]
        follower.feed(log[start : start + size])
        start, number = start + size, number + 1
    assert follower.diagnose() == diagnose(log, KNOWN)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2_000), st.integers(-64, 256), st.floats(0, 1e6))
def test_any_bytes_get_an_answer(log: bytes, status: int, silence_s: float) -> None:
    answer = diagnose(log, KNOWN, ending=Ending(exit_status=status, silence_s=silence_s))
    assert answer.verdict in Verdict
    assert answer.next_step


@settings(max_examples=200, deadline=None)
@given(LOGS)
def test_a_line_number_is_inside_the_log(log: bytes) -> None:
    answer = diagnose(log, KNOWN)
    assert answer.line is None or 1 <= answer.line <= log.count(b"\n") + 1


@settings(max_examples=100, deadline=None)
@given(LOGS)
def test_a_crash_at_the_end_is_never_called_serving(log: bytes) -> None:
    crash = (
        b"\n[2026-02-10 11:00:00 TP3] Scheduler hit an exception: "
        b"Traceback (most recent call last):\n"
        b'  File "/x/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
        b"ZeroDivisionError: division by zero\n"
        b"\n[2026-02-10 11:00:00] Received sigquit from a child process.\n"
    )
    assert diagnose(log + crash, KNOWN).verdict is not Verdict.SERVING


@pytest.mark.parametrize(
    "log",
    [
        b"x" * 50_000_000,
        b"Error: " * 3_000_000,
        b"\r".join(
            [b"Capturing batches (bs=8 avail_mem=6.1 GB):  50%|##  | 4/8 [00:03<00:03]"] * 50_000
        ),
        b"Traceback (most recent call last):\n" * 20_000,
        b'  File "/x.py", line 1, in f\n' * 30_000,
        b"ValueError: x\n" * 30_000,
        b"[2026-02-10 10:00:00 TP0] " * 30_000,
        b"\x00" * 5_000_000,
        b"{" * 2_000_000,
        b"[" * 2_000_000 + b"\n" + b"(" * 2_000_000,
    ],
    ids=[
        "one-line",
        "errors",
        "bars",
        "heads",
        "frames",
        "exceptions",
        "headers",
        "nul",
        "json",
        "brackets",
    ],
)
def test_hostile_log_is_read_in_time(log: bytes) -> None:
    started = time.process_time()
    assert diagnose(log, KNOWN).verdict in Verdict
    assert time.process_time() - started < 20
