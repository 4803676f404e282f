"""`resolve.py flags` tells what any SGLang's parser declares, whatever its imports do."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from real_python import real_python
from sglsweep.flags import FlagTable
from sglsweep.onhost import resolve

_PROGRAM = Path(resolve.__file__)

# What SGLang's own actions look like: a retired flag raises in 0.5.4, warns in 0.5.9, and asks
# its parser to stop in 0.5.23.
_SERVER_ARGS = """
import argparse

class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)
    def __call__(self, parser, namespace, values, option_string=None):
        raise ValueError(self.help)

class Warns(DeprecatedAction):
    def __call__(self, parser, namespace, values, option_string=None):
        print("is deprecated")
Warns.__name__ = "DeprecatedAction"

class Stops(DeprecatedAction):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.error("use --other instead")
Stops.__name__ = "DeprecatedAction"

class DeprecatedStoreTrueAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, nargs=0, **kwargs):
        self.new_flag = new_flag
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

def json_list(text):
    return text

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
        parser.add_argument("--attention-backend", type=str, choices=["triton", "fa3"])
        parser.add_argument("--kv", choices={"b", "a"}, help="a 100%% sure thing")
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--disable-cuda-graph", action="store_true")
        parser.add_argument("--fused", action=argparse.BooleanOptionalAction)
        parser.add_argument("--hooks", type=json_list)
        parser.add_argument("--lazy", default=object())
        parser.add_argument("--old-way", action="store_true", help="Deprecated. Use --new-way.")
        parser.add_argument("--gone", action=DeprecatedAction, help="use --ep-size instead")
        parser.add_argument("--warns", action=Warns, help="Note: --warns is deprecated.")
        parser.add_argument("--stops", action=Stops)
        parser.add_argument("--renamed", action=DeprecatedStoreTrueAction, new_flag="--better")
"""


def _sglang(folder: Path, *, on_import: str = "", server_args: str = _SERVER_ARGS) -> None:
    """Write a package that stands where SGLang stands, with its way of declaring flags."""
    package = folder / "sglang" / "srt"
    package.mkdir(parents=True)
    (folder / "sglang" / "__init__.py").write_text(on_import)
    (package / "__init__.py").write_text("")
    (package / "server_args.py").write_text(server_args)
    (folder / "sglang" / "launch_server.py").write_text(
        "import argparse\n"
        "from sglang.srt.server_args import ServerArgs\n"
        "parser = argparse.ArgumentParser()\n"
        "ServerArgs.add_cli_args(parser)\n"
        "parser.parse_args()\n"
    )


def _ask(folder: Path, *, python: str = sys.executable) -> tuple[int, dict[str, Any], str]:
    """Run the program as a host does: its text on standard input."""
    done = subprocess.run(
        [python, "-", "flags"],
        input=_PROGRAM.read_bytes(),
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout), done.stderr.decode()


def test_every_kind_of_flag_is_described(tmp_path: Path) -> None:
    _sglang(tmp_path)
    status, document, _ = _ask(tmp_path)
    assert (status, document["ok"], document["source"]) == (0, True, "parser")
    table = FlagTable.from_json(document)
    flags = {flag.name: flag for flag in table.flags}
    assert flags["model-path"].aliases == ("model",)
    assert (flags["tp-size"].type, flags["tp-size"].default) == ("int", 1)
    assert flags["attention-backend"].choices == ("triton", "fa3")
    assert flags["kv"].choices == ("a", "b")
    assert flags["cuda-graph-bs"].many
    assert not flags["disable-cuda-graph"].takes_value
    assert (flags["fused"].negative, flags["fused"].takes_value) == ("no-fused", False)
    assert flags["hooks"].type == "json_list"
    assert (flags["old-way"].deprecated, flags["old-way"].replacement) == (True, "--new-way")
    assert flags["gone"].removed == "use --ep-size instead"
    assert flags["stops"].removed == "use --other instead"
    assert (flags["warns"].removed, flags["warns"].deprecated) == (None, True)
    assert (flags["renamed"].deprecated, flags["renamed"].replacement) == (True, "--better")


@pytest.mark.parametrize(
    "on_import",
    [
        "print('hello from an import')",
        "import os; os.write(1, b'a library that writes past Python')",
        "import sys; sys.stdout.write('x' * 100000)",
        "import atexit; atexit.register(print, 'bye')",
    ],
)
def test_what_imports_print_does_not_spoil_the_answer(tmp_path: Path, on_import: str) -> None:
    _sglang(tmp_path, on_import=on_import)
    status, document, _ = _ask(tmp_path)
    assert (status, document["ok"]) == (0, True)


@pytest.mark.parametrize(
    ("on_import", "words"),
    [
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("raise SystemExit('needs a GPU')", "SystemExit: needs a GPU"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_a_build_that_cannot_be_imported_says_why(
    tmp_path: Path, on_import: str, words: str
) -> None:
    _sglang(tmp_path, on_import=on_import)
    status, document, _ = _ask(tmp_path)
    assert (status, document["ok"]) == (1, False)
    assert words in document["error"]
    assert document["executable"] == sys.executable


def test_where_the_parser_cannot_be_had_its_help_is_read(tmp_path: Path) -> None:
    _sglang(tmp_path)
    arguments = tmp_path / "sglang" / "srt" / "server_args.py"
    # As if the class had moved: the launcher knows where to, this program does not.
    arguments.rename(tmp_path / "sglang" / "srt" / "elsewhere.py")
    launcher = tmp_path / "sglang" / "launch_server.py"
    launcher.write_text(launcher.read_text().replace("srt.server_args", "srt.elsewhere"))
    status, document, _ = _ask(tmp_path)
    assert (status, document["source"]) == (0, "help")
    assert "server_args" in document["error"]
    flags = {flag.name: flag for flag in FlagTable.from_json(document).flags}
    assert set(flags) == {
        *("model-path", "tp-size", "attention-backend", "kv", "cuda-graph-bs"),
        *(
            "disable-cuda-graph",
            "fused",
            "hooks",
            "lazy",
            "old-way",
            "gone",
            "warns",
            "stops",
            "renamed",
        ),
    }
    assert flags["tp-size"].aliases == ("tensor-parallel-size",)
    assert flags["attention-backend"].choices == ("triton", "fa3")
    assert flags["cuda-graph-bs"].many
    assert not flags["disable-cuda-graph"].takes_value
    assert flags["fused"].negative == "no-fused"
    assert flags["old-way"].deprecated


def test_another_question_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), "flag"], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "usage: resolve.py flags | cells"


@pytest.mark.parametrize("name", ["resolve.py", "facts.py"])
def test_programs_for_the_host_are_python_3_8(name: str) -> None:
    ast.parse((_PROGRAM.parent / name).read_text(), feature_version=(3, 8))


@pytest.mark.real
def test_real_sglang_tells_all_its_flags() -> None:
    status, document, _ = _ask(Path.cwd(), python=str(real_python()))
    assert status == 0
    table = FlagTable.from_json(document)
    assert len(table.flags) > 400
    backend = table.find("attention-backend")
    assert backend is not None
    assert backend.choices is not None
    assert "triton" in backend.choices
