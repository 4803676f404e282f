"""The user's own requests: one a line, and every wrong line is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.config.requests import read_requests
from sglsweep.config.sweep import load_sweep
from sglsweep.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def read(tmp_path: Path, text: str) -> tuple[tuple[str, str, str, bool], ...]:
    path = tmp_path / "own.jsonl"
    path.write_text(text, encoding="utf-8")
    return tuple((r.id, r.method, r.path, r.stream) for r in read_requests(path, where="w"))


def test_a_body_alone_goes_to_generate(tmp_path: Path) -> None:
    text = '# mine\n\n{"body": {"text": "Hi"}}\n{"name": "long", "body": {"stream": true}}\n'
    assert read(tmp_path, text) == (
        ("1", "POST", "/generate", False),
        ("2 long", "POST", "/generate", True),
    )


def test_a_line_ends_where_json_lines_end_and_not_within_a_prompt(tmp_path: Path) -> None:
    text = '{"body": {"text": "a\u2028b\x85c"}}\r\n{"body": {}}'
    assert [r[0] for r in read(tmp_path, text)] == ["1", "2"]


def test_the_mark_that_some_editors_write_first_is_no_text(tmp_path: Path) -> None:
    assert [r[0] for r in read(tmp_path, '\ufeff{"body": {}}\n')] == ["1"]


def test_a_path_alone_is_asked_for(tmp_path: Path) -> None:
    assert read(tmp_path, '{"path": "/health_generate"}') == (
        ("1", "GET", "/health_generate", False),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds 0 requests"),
        ("hello\n", r"own\.jsonl:1: no JSON object"),
        ('{}\n[1, 2]\n{"path": "generate"}\n', r"own\.jsonl:2: no JSON object\n.*:3: path"),
        ('{"text": "Hi"}\n', "unknown key 'text'"),
        ('{"method": "post"}\n', "method 'post'"),
        ('{"path": 3}\n', "path 3 begins with no /"),
        ('{"path": "/get it"}\n', "path '/get it' has letters that no URL has"),
    ],
)
def test_what_is_no_request_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read(tmp_path, text)
    assert caught.value.next_step


def test_a_file_that_is_not_there_is_named_where_the_sweep_names_it(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("model: made/up\nprobe:\n  requests: own.jsonl\n")
    with pytest.raises(ConfigError, match=r"sweep\.yaml:3: .*own\.jsonl: no such file"):
        load_sweep(sweep)
    (tmp_path / "own.jsonl").write_text('{"body": {}}\n')
    assert [r.path for r in load_sweep(sweep).requests] == ["/generate"]
