"""Durable writes on the controller's own disk, and the lock of a run."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sglsweep.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NEXT_STEPS = {
    errno.ENOSPC: "Free some space on that disk, then start the same command again: it resumes.",
    errno.EDQUOT: "Free some of your quota, then start the same command again: it resumes.",
    errno.EROFS: "That file system is read-only: choose another folder with --out.",
    errno.EACCES: "Give yourself write permission there, or choose another folder with --out.",
}


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot write: {error.strerror or error}",
            next_step=_NEXT_STEPS.get(
                error.errno or 0, "Make that path writable, or choose another folder with --out."
            ),
        ) from error


def make_folder(path: Path) -> None:
    """Make `path` with its parents and put its name on the disk."""
    with _translated(path):
        path.mkdir(parents=True, exist_ok=True)
        _sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder of plain files; the record first, so that no half of it is ever read."""
    with _translated(path):
        for file in sorted(path.iterdir(), key=lambda file: file.suffix != ".json"):
            file.unlink()
        path.rmdir()
        _sync_folder(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Write the whole file or leave the old one: temporary name, fsync, rename, fsync folder.

    Raises:
        StorageError: the disk refused; nothing of the new content is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    with _translated(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Write one JSON document, ASCII, indented for a reader."""
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode("ascii"))


def append(path: Path, chunk: bytes) -> None:
    """Append the whole chunk or nothing of it.

    The log is fetched by offset: a half-written chunk would be taken for a fetched one.
    """
    with _translated(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, chunk)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path, *, what: str, next_step: str) -> dict[str, object]:
    """Read one JSON object.

    Raises:
        ConfigError: no such file, not JSON (half-written, foreign), or not an object.
    """
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: {what} is missing", next_step=next_step) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot read: {error.strerror}", next_step=next_step) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path}: {what} is not valid JSON ({error})", next_step=next_step
        ) from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: {what} is not a JSON object", next_step=next_step)
    return document


class RunLock:
    """The right to write to a run's folder; the kernel frees it when this process dies."""

    def __init__(self, folder: Path) -> None:
        path = folder / "lock"
        with _translated(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._descriptor)
            raise _held(folder, holder) from error
        except OSError:
            os.close(self._descriptor)
            raise
        with _translated(path):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Let others write; harmless when called twice."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def lock_holder(folder: Path) -> str:
    """Return who writes to a run now ("pid 4121", "pid 4121 on gpu-07"); "" for nobody.

    Asks for no lock, which might refuse it to a sweep that starts at this moment: a pid of this
    machine that is gone holds nothing, one of another machine is believed.
    """
    try:
        pid, _, machine = (folder / "lock").read_text("utf-8", "replace").strip().partition(" ")
    except OSError:
        return ""
    if not pid.isdigit():
        return ""
    if machine != socket.gethostname():
        return f"pid {pid} on {machine}"
    return f"pid {pid}" if (Path("/proc") / pid).exists() or not Path("/proc").is_dir() else ""


def _held(folder: Path, holder: str) -> ConfigError:
    pid, _, machine = holder.partition(" ")
    who = f"pid {pid} on {machine}" if pid.isdigit() and machine else "another process"
    stop = f"end it (kill {pid})" if pid.isdigit() else "end it"
    return ConfigError(
        f"{folder}: this run is being written by {who}",
        next_step=f"Look on with `sglsweep status {folder.name}`, wait for it, or {stop}; "
        "the same command then resumes.",
    )
