"""Whole reports against files that a person has read.

`BLESS=1 pytest tests/report` writes them again: read the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.report import brief, issue, view_of
from sglsweep.report.findings import render

if TYPE_CHECKING:
    from sglsweep.report.view import RunView, StoredRun

GOLDEN = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("BLESS"):
        path.write_text(text)
    assert text == path.read_text()


def test_findings_are_as_a_person_has_read_them(stored: StoredRun) -> None:
    run = view_of(stored)
    check(f"{run.run}.md", render(run))


def test_the_page_for_a_boss_is_as_a_person_has_read_it(lead_case_run: RunView) -> None:
    check("lead-case-brief.md", brief(lead_case_run))


def test_the_bug_report_is_as_a_person_has_read_it(lead_case_run: RunView) -> None:
    checkout = "/home/ann/sglang/python/sglang/srt"
    installed = "/home/ann/venv/lib/python3.12/site-packages/sglang/srt"
    log = [f"[2026-02-19 01:2{n % 10}:00 TP3] Load weight" for n in range(1, 4410)]
    log += [
        "[2026-02-19 01:29:01 TP3] Scheduler hit an exception: Traceback (most recent call last):",
        f'  File "{checkout}/managers/scheduler.py", line 3012, in run_scheduler_process',
        "    scheduler.event_loop_overlap()",
        f'  File "{installed}/layers/sampler.py", line 171, in forward',
        "    batch_next_token_ids = torch.multinomial(probs, num_samples=1)",
        "api_key='hunter2' dist_init_addr='10.1.2.3:5000'",
        "  (some frame)",
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        "",
        "[2026-02-19 01:29:02] SIGQUIT received. signum=None, frame=None.",
    ]
    check("lead-case-issue-2.md", issue(lead_case_run, 2, "\n".join(log).encode()))
