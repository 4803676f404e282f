"""Take an attempt's port after the tool has found it free and before the server binds it.

usage: take_port.py RUN_FOLDER FLAG=VALUE [--limit SECONDS]     the port of that attempt
       take_port.py --port PORT [--limit SECONDS]               that port, at once

Whoever connects gets no answer. It lets go when the attempt has ended, or after --limit seconds.
"""

from __future__ import annotations

import argparse
import socket
import time
from pathlib import Path

from attempts import Wanted, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("setting", nargs="?", default="")
    parser.add_argument("--port", type=int)
    parser.add_argument("--limit", type=float, default=600.0)
    words = parser.parse_args()
    until = time.monotonic() + words.limit
    wanted, port = None, words.port
    if port is None:
        wanted = Wanted(words.run, words.setting)
        attempt = wanted.wait(words.limit)
        port = attempt["port"]
        state = Path(attempt["keeper_dir"]) / "state.json"
        while wanted.is_open and read(state).get("state") != "running":
            time.sleep(0.05)
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(0.2)
        print(f"took port {port}", flush=True)
        held = []
        while time.monotonic() < until and (wanted is None or wanted.is_open):
            try:
                held.append(server.accept())
            except TimeoutError:
                continue


if __name__ == "__main__":
    main()
