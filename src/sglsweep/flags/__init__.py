"""How SGLang spells things: the only package that knows, by version.

`table` is what one build accepts, `command` turns a cell into argv and environment, `script`
reads commands and scripts that people already have, `renames` is what changed between versions.
"""

from sglsweep.flags.command import (
    Command,
    Launch,
    Target,
    env_text,
    launch_argv,
    render_command,
    same_launch,
)
from sglsweep.flags.log import parse_log
from sglsweep.flags.script import ParsedCommand, parse_command
from sglsweep.flags.table import Flag, FlagTable, FlagValue, Problem, canonical, listed, nearest

__all__ = [
    "Command",
    "Flag",
    "FlagTable",
    "FlagValue",
    "Launch",
    "ParsedCommand",
    "Problem",
    "Target",
    "canonical",
    "env_text",
    "launch_argv",
    "listed",
    "nearest",
    "parse_command",
    "parse_log",
    "render_command",
    "same_launch",
]
