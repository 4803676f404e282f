from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sglsweep.cli.app import COMMANDS
from sglsweep.config.sweep import load_sweep

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
SWEEPS = sorted(
    p for p in ROOT.glob("configs/**/*.yaml") if re.search(r"^name:", p.read_text(), re.MULTILINE)
)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sglsweep", name, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"sglsweep {name}" in done.stdout.split("Example", 1)[-1]
    assert f"`sglsweep {name}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("path", SWEEPS, ids=lambda p: p.name)
def test_the_configs_that_ship_can_be_read(path: Path) -> None:
    assert load_sweep(path).name
