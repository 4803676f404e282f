"""Finds folders of attempts that ended long ago, and removes them if asked; standard library only.

    python3 folders.py ROOT --older-than SECONDS [--remove] [--only MARKER] [--keep DIR]...

Only a folder that holds `spec.json` and `state.json`, as a keeper leaves them, is ever touched,
and only when neither its state nor its log was written for so long: a keeper that lives writes its
state every second. Prints {"folders": [{"directory", "age_s", "bytes", "removed"}]}.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from typing import Iterator


def main(argv: list[str]) -> int:
    """Print what is old, and what became of it."""
    parser = argparse.ArgumentParser(description="Find folders of attempts that ended long ago.")
    parser.add_argument("root")
    parser.add_argument("--older-than", type=float, required=True)
    parser.add_argument("--remove", action="store_true")
    parser.add_argument("--only", metavar="MARKER", default="")
    parser.add_argument("--keep", action="append", default=[])
    options = parser.parse_args(argv)
    found = []
    for path in _attempts(options.root):
        age = time.time() - _written(path)
        if age < options.older_than or path in options.keep:
            continue
        if not _marker(path).startswith(options.only):
            continue
        size = sum(os.lstat(file).st_size for file in _files(path))
        if options.remove:
            shutil.rmtree(path, ignore_errors=True)
        removed = not os.path.exists(path)
        found.append({"directory": path, "age_s": int(age), "bytes": size, "removed": removed})
    print(json.dumps({"schema": 1, "folders": found}))
    return 0


def _attempts(root: str) -> Iterator[str]:
    for path, folders, files in os.walk(os.path.abspath(root)):
        if "spec.json" in files and "state.json" in files:
            folders.clear()
            yield path


def _marker(path: str) -> str:
    try:
        with open(os.path.join(path, "spec.json"), encoding="utf-8") as file:
            return str(json.load(file).get("marker"))
    except (OSError, ValueError):
        return ""


def _written(path: str) -> float:
    names = ["state.json", "log", "spec.json"]
    paths = [os.path.join(path, name) for name in names]
    return max(os.stat(p).st_mtime for p in paths if os.path.exists(p))


def _files(path: str) -> Iterator[str]:
    for parent, _folders, names in os.walk(path):
        for name in names:
            yield os.path.join(parent, name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
