"""A server tree that misbehaves as told: `standin.py PORT HABIT...`. Standard library only.

Each habit is a real one of SGLang's, reduced to its effect on whoever must watch and end it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FOREVER_S = 600.0


def say(*words: object) -> None:
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def on_term(text: str, *, ends: bool) -> None:
    def handler(_number: int, _frame: object) -> None:
        say(text)
        if ends:
            os._exit(0)

    signal.signal(signal.SIGTERM, handler)


def overwrite_environment() -> None:
    """Do what a process title does to the environment that /proc shows."""
    field = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(field[47]), int(field[48])
    ctypes.memset(begin, ord("x"), end - begin)


def rank(*, name: str, ends: bool, leaves: bool = False, hides: bool = False) -> int:
    """Fork a rank and return its pid once it stands."""
    ready, done = os.pipe()
    pid = os.fork()
    if pid:
        os.close(done)
        os.read(ready, 1)
        os.close(ready)
        return pid
    if leaves:
        os.setsid()
    if hides:
        overwrite_environment()
    on_term(f"{name} got TERM", ends=ends)
    say(name, "is", os.getpid())
    os.write(done, b"x")
    while True:
        time.sleep(FOREVER_S)


def fork_on_term() -> None:
    def handler(_number: int, _frame: object) -> None:
        for _ in range(3):
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                say("late child is", os.getpid())
                time.sleep(FOREVER_S)

    signal.signal(signal.SIGTERM, handler)


class Answers(BaseHTTPRequestHandler):
    """Endpoints that answer well, badly, late or never."""

    protocol_version = "HTTP/1.1"
    meeting = threading.Barrier(8)
    arrived = threading.Event()

    def log_message(self, *_words: object) -> None:
        """Keep the log for the habits."""

    def do_GET(self) -> None:
        word = self.path.strip("/").partition("/")[0]
        getattr(self, f"_{word}", self._missing)()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(200, json.dumps({"body": body.decode(), "headers": headers}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hello(self) -> None:
        self._send(200, b"hello")

    def _missing(self) -> None:
        self._send(404, b'{"error": "no such endpoint"}')

    def _broken(self) -> None:
        self._send(500, b'{"error": "scheduler is gone"}')

    def _big(self) -> None:
        self._send(200, b"b" * 1_000_000)

    def _together(self) -> None:
        """Answer only when eight are here at the same time."""
        try:
            self.meeting.wait(20)
            self._send(200, b"met")
        except threading.BrokenBarrierError:
            self._send(503, b"alone")

    def _never(self) -> None:
        say("request for never")
        self.arrived.set()
        time.sleep(FOREVER_S)

    def _half(self) -> None:
        """Promise more than comes."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    def _reset(self) -> None:
        self.close_connection = True

    def _secret(self) -> None:
        self._send(200, os.environ.get("SECRET", "").encode())

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(3):
            self._chunk(f'data: {{"n": {number}}}\n\n'.encode())
            time.sleep(0.1)
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _chunk(self, text: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def speak_on_both(_value: str) -> None:
    for number in range(20):
        os.write(1 + number % 2, b"line %d\n" % number)


def leave_a_zombie(_value: str) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    say("zombie is", pid)


def flood(_value: str) -> None:
    while True:
        os.write(1, b"f" * 65536)


def be_busy(seconds: str) -> None:
    until = time.process_time() + float(seconds)
    while time.process_time() < until:
        pass


def run_program(path: str) -> None:
    subprocess.Popen([path, str(FOREVER_S)])


def say_secret_in_pieces(_value: str) -> None:
    text = os.environ["SECRET"].encode()
    for piece in (text[:3], text[3:5], text[5:], b"\n"):
        os.write(1, piece)
        time.sleep(0.05)


def say_half_a_secret(_value: str) -> None:
    os.write(1, b"then " + os.environ["SECRET"].encode()[:-2])


HABITS: dict[str, Callable[[str], object]] = {
    "say": say,
    "junk": lambda _: os.write(1, bytes(range(256)) * 16),
    "both": speak_on_both,
    "exit": lambda status: os._exit(int(status)),
    "kill-self": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "calm": lambda _: on_term("parent got TERM", ends=True),
    "deaf": lambda _: on_term("parent got TERM", ends=False),
    "rank": lambda _: rank(name="rank", ends=True),
    "deaf-rank": lambda _: rank(name="rank", ends=False),
    "moved-rank": lambda _: rank(name="rank", ends=True, leaves=True),
    "lost-rank": lambda _: rank(name="rank", ends=False, leaves=True),
    "hidden-rank": lambda _: rank(name="rank", ends=False, leaves=True, hides=True),
    "breeds": lambda _: fork_on_term(),
    "zombie": leave_a_zombie,
    "flood": flood,
    "busy": be_busy,
    "run": run_program,
    "split-secret": say_secret_in_pieces,
    "half-secret": say_half_a_secret,
    "wait": lambda _: time.sleep(FOREVER_S),
    "rest": lambda seconds: time.sleep(float(seconds)),
}


def main() -> None:
    port, habits = int(sys.argv[1]), sys.argv[2:]
    for habit in habits:
        word, _, value = habit.partition("=")
        HABITS[word](value)
    server = Server(("127.0.0.1", port), Answers)
    say("fired up and ready to roll")
    server.serve_forever()


main()
