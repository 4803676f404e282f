"""`sglsweep pull`: short, anonymous, and with the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli_more.made import make_run, outcome, with_log
from sglsweep import catalogue
from sglsweep.anonymous import Private, anonymize
from sglsweep.cli.app import program
from sglsweep.pull import pull
from sglsweep.triage.diagnose import diagnose
from sglsweep.verdict import Verdict
from triage.cases import LOGS, cases, read_case

if TYPE_CHECKING:
    from pathlib import Path

GRAPHS = read_case(next((LOGS / "oom-graph-capture").glob("*.log"))).log
PRIVATE_WORDS = ("acme", "alice", "10.1.2.3", "gpu-host-07", "hf_" + "A" * 30, "topsecret99")


def private_log() -> bytes:
    """A real failure between lines that name people, machines and secrets."""
    noise = [
        "gpu-host-07:4121:4121 [0] NCCL INFO Bootstrap : Using eth0:10.1.2.3<0>",
        "[W socket.cpp] The client socket has failed to connect to [gpu-host-07.acme.lan]:29500",
        "loading /home/alice/acme-venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
        "reading /data/acme/alice/secret-70b/model-00001-of-00002.safetensors",
        "token hf_" + "A" * 30 + " api_key='topsecret99' --api-key topsecret99",
        "alice started this on fe80::1ff:fe23:4567:890a at 12:30:01, mail alice@acme.example",
    ]
    lines = GRAPHS.decode().split("\n")
    middle = [f"[2026-02-14 03:11:21] progress {n * 7919}" for n in range(3000)]
    return "\n".join([*lines[:2], *noise, *middle, *lines[2:]]).encode()


def test_the_case_is_short_anonymous_and_gets_the_same_answer(tmp_path: Path) -> None:
    log = private_log()
    one = with_log(outcome(1, Verdict.OOM, facts={"user": {"name": "alice"}}), log)
    case = pull(one, log, cause="oom-graph-capture", catalogue=catalogue.load())
    text = case.content.decode()
    assert [word for word in PRIVATE_WORDS if word in text] == []
    assert "site-packages/torch/nn/modules/module.py" in text
    assert "model-00001-of-00002.safetensors" in text
    assert "12:30:01" in text
    assert case.lines[1] < 200
    path = tmp_path / "case.log"
    path.write_bytes(case.content)
    read = read_case(path)
    assert read.head["evidence"] == "real"
    assert read.head["line-text"]
    assert read.wrong(read.diagnosed()) == []


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-cublas-cu12==12.8.4.1 and cudnn 9.10.2.21",
        "model_path='lukealonso/GLM-5-NVFP4', host='0.0.0.0', api_key=None",
        '"POST /v1/chat/completions HTTP/1.1" 200 on 127.0.0.1:30000',
        'File "/usr/lib/python3.12/threading.py", line 1, in c10::cuda::check at::native',
        "see https://github.com/sgl-project/sglang/issues/29580 at 03:11:02.123",
    ],
)
def test_what_everybody_has_stays(text: str) -> None:
    assert anonymize(text, Private(hosts=("blackwell",)))[0] == text


def test_placeholders_change_no_answer() -> None:
    known = catalogue.load()
    for case in cases():
        text, _ = anonymize(case.log.decode("utf-8", "surrogateescape"), Private())
        shorter = text.encode("utf-8", "surrogateescape")
        got, wanted = diagnose(shorter, known, ending=case.ending), case.diagnosed()
        assert (got.cause, got.phase, got.line) == (wanted.cause, wanted.phase, wanted.line), case


def test_it_is_filed_under_its_cause_and_never_over_another(tmp_path: Path) -> None:
    one = with_log(outcome(1, Verdict.OOM), GRAPHS)
    run = make_run(tmp_path, one, logs={1: GRAPHS})
    words = ["pull", str(run), "1", "--as", "oom-graph-capture/one", "--to", str(tmp_path / "to")]
    tool = CliRunner()
    done = tool.invoke(program(["pull"]), words)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "to" / "oom-graph-capture" / "one.log").is_file()
    assert "check: Read it once" in done.output
    again = tool.invoke(program(["pull"]), words)
    assert again.exit_code == 2
    assert "exists already" in again.output
    away = tool.invoke(program(["pull"]), [*words[:4], "../../etc", *words[5:]])
    assert away.exit_code == 2
