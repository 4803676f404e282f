"""Whatever stands in the file, the answer is a sweep or a refusal with a way out."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flagtables import flag_table
from sglsweep.config.document import read_document
from sglsweep.config.schema import SweepEntry
from sglsweep.config.sweep import load_sweep
from sglsweep.errors import SglsweepError
from sglsweep.expand import expand

_GOOD = (Path(__file__).parent / "cases" / "good" / "lead-case.yaml").read_text()
_PIECES = [
    *("model: m\n", "host: local\n", "matrix:\n", "launch:\n", "include:\n", "exclude:\n"),
    *("link: [[a, b]]\n", "goal: map\n", "builds:\n", "limits: {ready: 40m}\n", "  flags:\n"),
    *("  a: [1, 2]\n", "  b: [null, true]\n", "  - {a: 1}\n", "  - {when: {a: 1}, because: x}\n"),
    *("    tp: 8\n", "  mem-fraction-static: {auto: true}\n", "  x: {python: p}\n", "  x:\n"),
    *("- ", ": ", "\n", "  ", "\t", "[", "]", "{", "}", "&a ", "*a", "<<: *a\n", "!!str ", "'"),
    *(
        '"',
        "#",
        "|\n",
        ">\n",
        "? ",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "${HOME}",
        "${",
        "\0",
        "\x85",
    ),
    *("yes", "1e3", "010", "12:30", ".inf", "2026-01-01", "0x10", "~", "-", "é", "\ufeff"),
]


def _load(folder: Path, text: str) -> None:
    """Read and expand a text; anything but a refusal that names the file is a failure."""
    path = folder / "SWEEP.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    refusal = _refusal(path)
    if refusal is not None:
        assert str(path) in refusal.message
        assert refusal.next_step


def _refusal(path: Path) -> SglsweepError | None:
    try:
        expand(load_sweep(path), {"default": flag_table("0.5.9")})
    except SglsweepError as error:
        return error
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all texts: they are written one after another."""
    return tmp_path_factory.mktemp("any")


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200))
@example("? ")
@example("&a [*a]")
@example("!!int x")
@example("model: !!float x")
@example("model: !!timestamp x")
@example("model: 2026-99-99")
@example("model: !!binary x")
@example("a: 0x" + "f" * 5000)
@example("model: m\nmatrix: {x: [1e999]}")
def test_any_text_is_a_sweep_or_a_refusal(folder: Path, text: str) -> None:
    _load(folder, text)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
def test_any_heap_of_yaml_is_a_sweep_or_a_refusal(folder: Path, text: str) -> None:
    _load(folder, text)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, len(_GOOD)),
    st.integers(0, 30),
    st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)),
)
def test_a_good_file_with_a_hole_or_a_patch_is_a_sweep_or_a_refusal(
    folder: Path, at: int, length: int, patch: str
) -> None:
    _load(folder, _GOOD[:at] + patch + _GOOD[at + length :])


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner)),
    max_leaves=6,
)
_KEYS = st.sampled_from([field.name for field in fields(SweepEntry)])


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(_KEYS, _VALUES))
def test_any_values_under_known_keys_are_a_sweep_or_a_refusal(
    folder: Path, tree: dict[str, object]
) -> None:
    _load(folder, json.dumps({"model": "m", **tree}, ensure_ascii=False))


@settings(deadline=None)
@given(st.recursive(st.integers(-5, 5), lambda inner: st.lists(inner, max_size=3), max_leaves=9))
def test_plain_values_are_read_as_they_are(tree: object) -> None:
    assert read_document(f"x: {tree}", Path("x.yaml")).tree == {"x": tree}
