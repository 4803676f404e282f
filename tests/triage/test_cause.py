"""The earliest cause wins, across ranks and processes; what follows from it never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep import catalogue
from sglsweep.triage.diagnose import diagnose
from sglsweep.triage.ending import Ending
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from sglsweep.attempt import Diagnosis

KNOWN = catalogue.load()
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
READY = "[2026-02-10 10:02:00] The server is fired up and ready to roll!"
ANSWER = '[2026-02-10 10:02:05] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK'
DECODE = "[2026-02-10 10:02:04] Decode batch, #running-req: 1, #token: 69, token usage: 0.02,"


def trace(rank: str, error: str, *, at: str = "10:01:00", function: str = "x") -> str:
    return (
        f"[2026-02-10 {at}{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
        "    scheduler.event_loop()\n"
        f'  File "/s/srt/model_executor/model_runner.py", line 9, in {function}\n'
        f"    raise it\n{error}\n"
    )


def sigquit(at: str = "10:01:00") -> str:
    return (
        f"[2026-02-10 {at}] Received sigquit from a child process. It usually means the child "
        "failed.\n"
    )


def answer(*parts: str, ending: Ending | None = None) -> Diagnosis:
    return diagnose("\n".join(parts).encode(), KNOWN, ending=ending)


def test_sigquit_line_in_front_of_the_traceback_is_not_the_cause() -> None:
    said = answer(sigquit(), trace(" TP3", OOM))
    assert (said.verdict, said.rank) == (Verdict.OOM, "TP3")


def test_earliest_time_stamp_wins_over_the_order_of_the_file() -> None:
    said = answer(trace(" TP1", OOM, at="10:01:09"), trace(" TP3", OOM, at="10:01:02"))
    assert said.rank == "TP3"


def test_peer_that_lost_its_connection_is_not_the_cause() -> None:
    gloo = (
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] "
        "Connection closed by peer [10.0.0.2]:31337"
    )
    said = answer(trace(" TP1", gloo), trace(" TP3", OOM, at="10:01:03"))
    assert (said.verdict, said.rank) == (Verdict.OOM, "TP3")


def test_alone_a_lost_connection_is_a_collective_error() -> None:
    gloo = "RuntimeError: [/g/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]"
    assert answer(trace(" TP1", gloo)).verdict is Verdict.COLLECTIVE_ERROR


def test_first_exception_of_a_chain_is_the_cause() -> None:
    said = answer(
        trace("", "ValueError: the inner one"),
        "The above exception was the direct cause of the following exception:\n",
        "Traceback (most recent call last):",
        '  File "/s/srt/managers/scheduler.py", line 9, in run_scheduler_process',
        "RuntimeError: the outer one",
    )
    assert said.evidence == "ValueError: the inner one"


def test_traceback_of_one_request_does_not_end_a_server_that_goes_on() -> None:
    said = answer(
        READY,
        "[2026-02-10 10:02:02] Error in request: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        '  File "/s/srt/entrypoints/openai/serving_chat.py", line 9, in handle',
        "ValueError: the prompt is too long",
        DECODE,
        ANSWER,
    )
    assert said.verdict is Verdict.SERVING


def test_exception_in_a_destructor_is_nothing() -> None:
    said = answer(
        READY,
        ANSWER,
        "Exception ignored in: <function Pool.__del__ at 0x7f>",
        "Traceback (most recent call last):",
        '  File "/s/pool.py", line 9, in __del__',
        "AttributeError: 'Pool' object has no attribute 'x'",
    )
    assert said.verdict is Verdict.SERVING


def test_crash_after_ready_is_never_serving() -> None:
    said = answer(READY, ANSWER, trace(" TP0", "ZeroDivisionError: x", at="10:03:00"))
    assert (said.verdict, said.phase) == (Verdict.CRASH, Phase.DECODE)


def test_orderly_stop_after_ready_is_serving() -> None:
    said = answer(
        READY,
        ANSWER,
        "[2026-02-10 10:03:00] SIGTERM received. signum=None frame=None. Draining requests",
        trace(" TP0", "KeyboardInterrupt", at="10:03:01"),
        ending=Ending(exit_status=-9),
    )
    assert said.verdict is Verdict.SERVING


def test_stop_before_ready_is_killed() -> None:
    said = answer(
        "[2026-02-10 10:01:00 TP0] Load weight begin. avail mem=90.00 GB",
        "[2026-02-10 10:01:30] SIGTERM received. signum=None frame=None. Draining requests",
    )
    assert said.verdict is Verdict.KILLED


def test_skipped_warm_up_makes_the_ready_line_prove_nothing() -> None:
    args = "[2026-02-10 10:00:00] server_args={'model_path': 'x', 'skip_server_warmup': True}"
    assert answer(args, READY).verdict is Verdict.INCOMPLETE
    assert answer(args, READY, DECODE, ANSWER).verdict is Verdict.SERVING


def test_wrapped_capture_failure_is_its_inner_error() -> None:
    said = answer(
        "[2026-02-10 10:00:50 TP2] Capture cuda graph begin. This can take up to several minutes.",
        trace(" TP2", OOM, function="capture"),
        "\nDuring handling of the above exception, another exception occurred:\n",
        "Traceback (most recent call last):",
        '  File "/s/srt/model_executor/cuda_graph_runner.py", line 3, in __init__',
        f"Exception: Capture cuda graph failed: {OOM}",
        "Possible solutions:",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    )
    assert (said.verdict, said.phase) == (Verdict.OOM, Phase.GRAPH_CAPTURE)
    assert said.evidence == OOM


def test_unknown_failures_of_two_ranks_have_one_cause() -> None:
    causes = {
        answer(
            trace(f" TP{rank}", f"ValueError: bad block 0x{rank}f of /data/run{rank}/m.bin")
        ).cause
        for rank in range(3)
    }
    assert len(causes) == 1
    assert all(cause and cause.startswith("unknown:") for cause in causes)


def test_exception_without_a_text_is_grouped_by_what_raised_it() -> None:
    one, other = (
        trace("", "AssertionError").replace("raise it", f"assert {name} > 0") for name in "ab"
    )
    assert answer(one).cause != answer(other).cause


def test_torch_s_rank_becomes_a_tensor_rank_where_only_tp_is_above_one() -> None:
    lines = (
        "server_args={'model_path': 'x', 'tp_size': 8, 'pp_size': 1, 'dp_size': 1}",
        "[rank5]: Traceback (most recent call last):",
        '[rank5]:   File "/s/srt/managers/scheduler.py", line 3, in run_scheduler_process',
        "[rank5]: ValueError: nothing known",
    )
    assert answer(*lines).rank == "TP5"
    assert answer(lines[0].replace("'dp_size': 1", "'dp_size': 2"), *lines[1:]).rank is None


def test_silence_is_judged_by_the_phase() -> None:
    weights = "[2026-02-10 10:01:00 TP0] Load weight begin. avail mem=90.00 GB"
    assert answer(weights, ending=Ending(silence_s=299)).verdict is Verdict.INCOMPLETE
    assert answer(weights, ending=Ending(silence_s=300)).verdict is Verdict.HANG
    compiling = "[2026-02-10 10:01:02 TP0] Entering DeepGEMM JIT Pre-Compile session."
    assert answer(weights, compiling, ending=Ending(silence_s=900)).verdict is Verdict.INCOMPLETE
    assert answer(weights, compiling, ending=Ending(silence_s=1500)).verdict is Verdict.HANG
    assert answer(weights, compiling).verdict is Verdict.INCOMPLETE


def test_idle_server_may_be_silent_for_ever() -> None:
    assert answer(READY, ANSWER, ending=Ending(silence_s=1e7)).verdict is Verdict.SERVING


def test_exit_status_of_a_shell_is_read_as_a_signal() -> None:
    weights = "[2026-02-10 10:01:00 TP0] Load weight begin. avail mem=90.00 GB"
    for status in (137, -9):
        said = answer(weights, ending=Ending(exit_status=status))
        assert (said.verdict, said.cause) == (Verdict.KILLED, "killed-sigkill")


def test_line_after_a_flood_is_read_like_any_other() -> None:
    error = (
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1: indexSelect: block: [1,0,0], "
        "thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    )
    begin = "Load weight begin. avail mem=90.00 GB"
    end = "Capture cuda graph end. Time elapsed: 7.70 s. mem usage=1.62 GB."
    assert answer(*[error] * 20, begin).metrics["avail_before_weights_gb"] == 90.0
    said = answer(begin, *[error, begin] * 20, *[error] * 20, end)
    assert said.metrics["graph_s"] == 7.7


def test_flood_of_one_assertion_is_folded_into_a_count() -> None:
    line = (
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1: indexSelect: block: [{n},0,0], "
        "thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    )
    flood = [line.format(n=n) for n in range(5_000)]
    said = answer(READY, *flood, trace(" TP0", "torch.AcceleratorError: CUDA error: x"))
    assert said.line == 2
