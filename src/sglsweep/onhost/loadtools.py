"""Say which load tools are on this machine, as one JSON object; standard library only.

Run by the Python of the build that serves, with the names or paths of programs to look for.
Nothing of SGLang is imported: that takes seconds, and may need what is not there.
"""

import importlib.util
import json
import os
import re
import shutil
import sys
from typing import Any, Dict, List, Optional

# The newer name first: the older one forwards to it, with a warning.
MODULES = (("sglang.benchmark.serving", "benchmark/serving.py"),
           ("sglang.bench_serving", "bench_serving.py"))  # fmt: skip


def package_folders() -> List[str]:
    """Return where the package `sglang` lies; empty if this Python has none."""
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def bench_serving() -> Optional[Dict[str, Any]]:
    """Return the module of SGLang's own benchmark, its options and data sets."""
    for folder in package_folders():
        for module, path in MODULES:
            try:
                with open(os.path.join(folder, path), encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                continue
            options = set(re.findall(r"\"(--[a-z][a-z0-9-]*)\"", text))
            if "offsets[i]" in text and "int((offsets" not in text:
                # 0.5.2 has numpy's integers in its token ids, which its own JSON refuses.
                options.discard("--tokenize-prompt")
            if options:
                return {"module": module, "options": sorted(options),
                        "has_random_ids": "\"random-ids\"" in text}  # fmt: skip
    return None


def program(name: str) -> Optional[str]:
    """Return a program's path: as given, beside this Python, in PATH, in ~/.local/bin."""
    places = [os.path.dirname(sys.executable), os.environ.get("PATH", "")]
    places.append(os.path.expanduser("~/.local/bin"))
    return shutil.which(os.path.expanduser(name), path=os.pathsep.join(places))


def main(names: List[str]) -> None:
    """Print what is there."""
    found = {"bench_serving": bench_serving(), "programs": {name: program(name) for name in names}}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
