"""One raw line becomes pieces with the time, rank and text that a process wrote."""

from __future__ import annotations

import json

import pytest

from sglsweep.triage.record import pieces

SHIPPER = {"log": "[2026-02-10 10:00:00 TP3] ValueError: x\n", "stream": "stderr"}
SHAPES = {
    "bare": b"[2026-02-10 10:00:00 TP3] ValueError: x",
    "milliseconds": b"[2026-02-10 10:00:00.123 TP3] ValueError: x",
    "level and file": b"[2026-02-10 10:00:00 TP3] WARNING server_args.py:12: ValueError: x",
    "uvicorn": b"[2026-02-10 10:00:00 TP3] ERROR:    ValueError: x",
    "compose": b"sglang-1  | [2026-02-10 10:00:00 TP3] ValueError: x",
    "kubernetes": b"2026-02-10T10:00:00.1Z stderr F [2026-02-10 10:00:00 TP3] ValueError: x",
    "kubectl prefix": b"[pod/glm-0/sglang] [2026-02-10 10:00:00 TP3] ValueError: x",
    "journald": b"Feb 10 10:00:00 gpu7 sglang[4711]: [2026-02-10 10:00:00 TP3] ValueError: x",
    "mpi": b"[1,3]<stderr>:[2026-02-10 10:00:00 TP3] ValueError: x",
    "ray": b"(SGLangWorker pid=38, ip=10.0.0.3) [2026-02-10 10:00:00 TP3] ValueError: x",
    "slurm": b"3: [2026-02-10 10:00:00 TP3] ValueError: x",
    "box": "│ │ [2026-02-10 10:00:00 TP3] ValueError: x".encode(),
    "colour": b"\x1b[33m[2026-02-10 10:00:00 TP3]\x1b[0m \x1b[1;31mValueError: x\x1b[0m",
    "json": json.dumps(SHIPPER).encode(),
    "dos": b"[2026-02-10 10:00:00 TP3] ValueError: x\r",
}


@pytest.mark.parametrize("raw", SHAPES.values(), ids=SHAPES.keys())
def test_wrapped_record_is_unwrapped(raw: bytes) -> None:
    (piece,) = pieces(7, raw)
    assert (piece.text, piece.rank, piece.stamp) == ("ValueError: x", "TP3", "2026-02-10 10:00:00")
    assert piece.line == 7
    assert piece.is_headed


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (" DP3 TP3", "DP3 TP3"),
        (" PP1 TP1", "PP1 TP1"),
        (" DP1 PP0 ATTN_CP0 MOE_DP0 TP5 EP5", "DP1 PP0 ATTN_CP0 MOE_DP0 TP5 EP5"),
        ("", None),
        (" encode_server", None),
    ],
)
def test_rank_is_kept_as_printed(ranks: str, said: str | None) -> None:
    (piece,) = pieces(1, f"[2026-02-10 10:00:00{ranks}] Load weight begin.".encode())
    assert piece.rank == said
    assert piece.text == "Load weight begin."


def test_torch_s_rank_is_a_number_of_its_own() -> None:
    (piece,) = pieces(1, b"[rank5]: RuntimeError: NCCL error")
    assert piece.torch_rank == 5
    assert piece.text == "RuntimeError: NCCL error"


def test_states_of_a_bar_are_pieces() -> None:
    raw = b"Capturing:   0%| | 0/8\rCapturing:  50%|#| 4/8\rCapturing: 100%|#| 8/8"
    assert [p.text[-3:] for p in pieces(3, raw)] == ["0/8", "4/8", "8/8"]


def test_record_glued_to_a_bar_is_a_piece() -> None:
    raw = b"  0%|          | 0/4 [00:00<?, ?it/s][2026-02-10 10:00:00 TP1] Scheduler hit"
    bar, record = pieces(3, raw)
    assert "0/4" in bar.text
    assert (record.text, record.rank) == ("Scheduler hit", "TP1")
    assert record.line == bar.line == 3


def test_indentation_of_a_traceback_survives_its_wrapper() -> None:
    (frame,) = pieces(1, b'sglang-1  |   File "/x/scheduler.py", line 3, in run')
    assert frame.text.startswith('  File "')


def test_empty_pieces_are_left_out() -> None:
    assert pieces(1, b" \r\r  \r") == []
