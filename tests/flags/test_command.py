"""A cell becomes the command that launches it, and text that a shell reads as that command."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagtables import flag_table
from sglsweep.flags import (
    Command,
    FlagValue,
    Launch,
    Target,
    launch_argv,
    parse_command,
    render_command,
)
from sglsweep.matrix import Cell, Value

_TARGET = Target(build="b", model="m", port=30000)


def _launch(
    flags: dict[str, FlagValue] | None = None,
    cell: dict[str, Value] | None = None,
    env: dict[str, str | None] | None = None,
    target: Target = _TARGET,
) -> Command:
    launch = Launch(flags=flags or {}, env=env or {})
    return launch_argv(launch, Cell(cell or {}), target, flag_table("0.5.23"))


def test_host_and_port_come_last_and_are_this_machines() -> None:
    argv = _launch().argv
    assert argv[:4] == ("-m", "sglang.launch_server", "--model-path", "m")
    assert argv[-4:] == ("--host", "127.0.0.1", "--port", "30000")


def test_another_address_is_used_where_it_is_asked_for() -> None:
    assert _launch({"host": "0.0.0.0"}).argv[-4:-2] == ("--host", "0.0.0.0")  # noqa: S104 - a test


def test_revision_and_offline_reach_the_launch() -> None:
    target = Target(build="b", model="m", port=1, revision="abc", offline=True)
    command = _launch(target=target)
    assert command.argv[2:6] == ("--model-path", "m", "--revision", "abc")
    assert command.env == {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def test_a_revision_among_the_flags_wins_over_the_models() -> None:
    target = Target(build="b", model="m", port=1, revision="abc")
    argv = _launch({"revision": "def"}, target=target).argv
    assert argv.count("--revision") == 1
    assert "def" in argv


def test_the_environment_of_the_file_wins_over_offline() -> None:
    target = Target(build="b", model="m", port=1, offline=True)
    assert _launch(env={"HF_HUB_OFFLINE": None}, target=target).env == {
        "TRANSFORMERS_OFFLINE": "1"
    }


def test_an_axis_takes_the_place_of_the_flag_it_overrides() -> None:
    argv = _launch({"tp": 8, "page-size": 1}, {"tensor-parallel-size": 4}).argv
    assert argv[4:8] == ("--tp-size", "4", "--page-size", "1")


def test_the_order_of_flags_makes_no_other_launch() -> None:
    one = _launch({"page-size": 1, "tp": 2})
    other = _launch({"tp-size": 2}, {"page-size": 1})
    assert one.argv != other.argv
    assert one.launch_key == other.launch_key


def test_port_and_host_make_no_other_launch() -> None:
    other = Target(build="b", model="m", port=31000)
    assert _launch().launch_key == _launch(target=other).launch_key
    assert _launch({"host": "::"}).launch_key == _launch().launch_key


@pytest.mark.parametrize(
    "changed",
    [
        _launch({"page-size": 2, "tp": 1}),
        _launch({"page-size": 1}),
        _launch({"page-size": 1, "tp": 2}, env={"A": "1"}),
        _launch({"page-size": 1, "tp": 2}, target=Target(build="c", model="m", port=1)),
        _launch({"page-size": 1, "tp": 2}, target=Target(build="b", model="n", port=1)),
    ],
)
def test_any_other_difference_makes_another_launch(changed: Command) -> None:
    assert changed.launch_key != _launch({"page-size": 1, "tp": 2}).launch_key


def test_a_secret_stays_a_name_for_the_shell_to_fill_in() -> None:
    text = render_command("python", ("-m", "x", "--api-key", "${KEY}"), {"T": 'a "${T}" $b'})
    assert '--api-key "${KEY}"' in text
    assert text.startswith('T="a \\"${T}\\" \\$b" python -m x')


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
_VALUES = st.one_of(_TEXT, st.integers(), st.just(value=True))
_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)


@settings(deadline=None, max_examples=50)  # a shared machine may pause
@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,4}){0,2}", fullmatch=True), _VALUES
    )
)
def test_a_rendered_command_is_read_back_as_it_was(flags: dict[str, bool | int | str]) -> None:
    wanted = {n: v for n, v in flags.items() if n not in {"host", "port", "model", "no"}}
    wanted = {n: v for n, v in wanted.items() if not n.startswith("no-")}
    command = launch_argv(Launch(flags=wanted), Cell({}), _TARGET)
    parsed = parse_command(render_command("/opt/p y", command.argv, {"A": "x 'y'"}))
    assert parsed.python == "/opt/p y"
    assert parsed.env == {"A": "x 'y'"}
    assert {n: _word(v) for n, v in parsed.flags.items()} == {
        n: _word(v) for n, v in wanted.items()
    }


def _word(value: FlagValue) -> str:
    return "<bare>" if value is True else str(value)


@settings(deadline=None, max_examples=50)  # a shared machine may pause
@given(st.lists(_TEXT, max_size=5), _TEXT)
def test_a_real_shell_reads_a_rendered_command_as_it_was_meant(words: list[str], env: str) -> None:
    argv = ("-c", 'printf "%s\\0" "$A" "$@"', "sh", *words)
    text = render_command("/bin/sh", argv, {"A": env})
    done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [env, *words]
