"""Every mistake is answered with file, line, the offending text and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglsweep.config.sweep import load_sweep
from sglsweep.errors import ConfigError

_CASES = sorted((Path(__file__).parent / "cases" / "bad").glob("*.yaml"))


def _expected(case: Path) -> list[str]:
    """The head of a case: `# error:` for each mistake, `# next:` for the way out of the first."""
    lines = case.read_text("utf-8").splitlines()
    return [line[2:] for line in lines if line.startswith(("# error: ", "# next: "))]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.stem)
def test_mistake_is_named_with_its_line_and_the_way_out(case: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_sweep(case)
    told = caught.value.message.replace(f"{case}:", "FILE:").split("\n")
    said = [f"error: {line}" for line in told] + [f"next: {caught.value.next_step}"]
    assert said == _expected(case)
    assert caught.value.exit_code == 2


def test_there_are_bad_cases() -> None:
    assert len(_CASES) > 80


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: no such file or directory"):
        load_sweep(tmp_path / "absent.yaml")


def test_folder_instead_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load_sweep(tmp_path)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_empty_file_is_said_to_be_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"empty|no mapping"):
        load_sweep(path)


def test_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_bytes(b"model: m\nname: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"SWEEP\.yaml:2: byte 0xe9 is not UTF-8"):
        load_sweep(path)


def test_control_character_is_a_mistake_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_bytes(b"model: \x00\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_sweep(path)


def test_deep_nesting_is_a_mistake_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.yaml"
    path.write_text("model: " + "[" * 5000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_sweep(path)


def test_aliases_that_unfold_without_end_are_a_mistake(tmp_path: Path) -> None:
    lines = ["x-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "SWEEP.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="more than 50000 values"):
        load_sweep(path)
