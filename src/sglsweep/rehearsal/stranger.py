"""Somebody else's server on our port: `python -m sglsweep.rehearsal.stranger PORT PID`."""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_AFTER_S = 0.5
_LIVES_S = 600.0


class _Stranger(BaseHTTPRequestHandler):
    """Says yes to everything."""

    def do_GET(self) -> None:
        """Answer."""
        body = b'{"text": " yes", "output_ids": [1], "meta_info": {}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def main(port: int, watched_pid: int) -> None:
    """Serve on the port until the watched process is gone, then a moment longer."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    end = time.monotonic() + _LIVES_S
    while time.monotonic() < end and _is_there(watched_pid):
        time.sleep(0.05)
    time.sleep(_AFTER_S)


def _is_there(pid: int) -> bool:
    """True while the process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(") ")[2][:1] != "Z"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
