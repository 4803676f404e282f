"""Commands survive the login shell, whichever it is."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hosts.contract import STRANGE_WORDS
from sglsweep.hosts.ssh_words import command_line

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "tcsh", "csh")
TOKEN = "sglsweep-token"  # noqa: S105 - no secret, a mark in the output


@pytest.mark.parametrize("shell", SHELLS)
def test_words_survive_the_login_shell(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} on this machine")
    line = command_line(["printf", "%s\\0", *STRANGE_WORDS], TOKEN)

    said = subprocess.run([program, "-c", line], capture_output=True, check=True)

    assert said.stdout.decode().removeprefix(f"{TOKEN}\n").split("\0")[:-1] == list(STRANGE_WORDS)


@pytest.mark.parametrize("word", STRANGE_WORDS)
def test_each_word_survives_alone(word: str) -> None:
    line = command_line(["printf", "%s", word], TOKEN)

    said = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True)

    assert said.stdout.decode().removeprefix(f"{TOKEN}\n") == word
