"""Make `compiled.json` from the YAML beside it."""

from pathlib import Path

from sglsweep.catalogue.loader import compile_content

if __name__ == "__main__":
    Path(__file__).with_name("compiled.json").write_text(compile_content(), encoding="ascii")
