"""One run's folder: open an attempt, follow its log, close it, read it all back."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from sglsweep import __version__
from sglsweep.attempt import Attempt, Outcome
from sglsweep.errors import ConfigError
from sglsweep.journal import disk
from sglsweep.journal.codec import to_json
from sglsweep.journal.identity import RunIdentity, changes
from sglsweep.journal.records import (
    SCHEMA,
    Record,
    check_schema,
    mark_of,
    read_document,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

_LEFT_BY_A_CRASH = {"lock", "sweep.yaml", "FINDINGS.md", "findings.json"}


class Journal:
    """Everything a run knows, in one folder; a context manager that frees the lock.

    Usable from several threads, as long as each attempt is written by one of them.

    Files: `run.json`, `sweep.yaml`, `attempts/NNNN/attempt.json`, `attempts/NNNN/log`, `lock`.
    """

    def __init__(self, folder: Path, run: dict[str, object], lock: disk.RunLock | None) -> None:
        self.folder = folder
        self._run = run
        self._lock = lock
        self._read: dict[Path, Record] = {}
        self._turn = threading.RLock()
        self._taken = 0
        self.opened_at = datetime.now(UTC).timestamp()

    @classmethod
    def create_or_resume(cls, folder: Path, identity: RunIdentity) -> Self:
        """Take the lock on `folder` and begin the run, or go on with it.

        Raises:
            ConfigError: another model or launch, another process writes, no run but other files.
            StorageError: the disk refused.
        """
        disk.make_folder(folder)
        _refuse_foreign_folder(folder)
        lock = disk.RunLock(folder)
        try:
            if (folder / "run.json").exists():
                run = _read_run(folder)
                _refuse_another_identity(folder, run, identity)
            else:
                run = _new_run(identity)
            run.update(catalogue=identity.catalogue, tool=__version__)
            disk.make_folder(folder / "attempts")
            disk.write_whole(folder / "sweep.yaml", _bytes(identity.sweep_text))
            disk.write_json(folder / "run.json", run)
        except BaseException:
            lock.release()
            raise
        return cls(folder, run, lock)

    @classmethod
    def resume(cls, folder: Path) -> Self:
        """Take the lock on an existing run as it is (relaunch, retriage, bisect)."""
        run = _read_run(folder)
        return cls(folder, run, disk.RunLock(folder))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Open a run to look at it; takes no lock, so a sweep may be writing.

        Raises:
            ConfigError: no run there, or one that this version cannot read.
        """
        return cls(folder, _read_run(folder), None)

    @property
    def holder(self) -> str:
        """Who writes to this run now, as "pid 4121"; "" for nobody."""
        return disk.lock_holder(self.folder)

    def release(self) -> None:
        """Free the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def facts(self) -> Mapping[str, object]:
        """Everything in run.json: identity, and what `record` added."""
        return self._run

    @property
    def run_id(self) -> str:
        """Twelve hex digits that no other run has; names its folder on the host."""
        return str(self._run.get("id") or "")

    @property
    def sweep_text(self) -> str:
        """SWEEP.yaml as it was when the run was last started."""
        path = self.folder / "sweep.yaml"
        return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""

    def record(self, **facts: object) -> None:
        """Put facts about the whole run into run.json; an earlier one of that name is replaced."""
        self._require_lock()
        with self._turn:
            run = {**self._run, **{name: to_json(value) for name, value in facts.items()}}
            disk.write_json(self.folder / "run.json", run)
            self._run = run

    def open(self, attempt: Attempt, facts: Mapping[str, object]) -> None:
        """Write an attempt's record; call before anything of it is started."""
        self._require_lock()
        folder = self._attempt_folder(attempt.number)
        disk.make_folder(folder)
        document = {
            "schema": SCHEMA,
            "state": "open",
            "attempt": to_json(attempt),
            "facts": to_json(facts),
        }
        disk.write_json(folder / "attempt.json", document)

    def stopping(self, outcome: Outcome) -> None:
        """Write what an attempt came to before it is stopped: teardown lines must not judge it."""
        self._write_outcome(outcome, "stopping")

    def close(self, outcome: Outcome) -> None:
        """Write what an attempt came to; again with a newer diagnosis, if there is one."""
        self._write_outcome(outcome, "closed")

    def _write_outcome(self, outcome: Outcome, state: str) -> None:
        self._require_lock()
        path = self._attempt_folder(outcome.attempt.number) / "attempt.json"
        document = {"schema": SCHEMA, "state": state}
        disk.write_json(path, {**document, **_object(to_json(outcome))})

    def withdraw(self, number: int) -> None:
        """Take back an attempt of which nothing was started (a busy port); its log goes too."""
        self._require_lock()
        with self._turn:
            disk.remove_folder(self._attempt_folder(number))
            if number == self._taken:
                self._taken = number - 1

    def append_log(self, number: int, chunk: bytes) -> None:
        """Add the next bytes of the raw log: all of them, or none if the disk refuses."""
        self._require_lock()
        disk.append(self.log_path(number), chunk)

    def keep_tool(self, number: int, step: str, texts: Mapping[str, str]) -> None:
        """Keep what a load tool printed and wrote, as `tools/STEP/NAME` beside the log."""
        self._require_lock()
        folder = self._attempt_folder(number) / "tools" / step
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            disk.write_whole(folder / name, _bytes(text))

    def log_path(self, number: int) -> Path:
        """Where the raw log of an attempt is."""
        return self._attempt_folder(number) / "log"

    def log_size(self, number: int) -> int:
        """Bytes of log stored so far: the offset to go on from."""
        try:
            return self.log_path(number).stat().st_size
        except FileNotFoundError:
            return 0

    def read_log(self, number: int, limit: int | None = None, *, offset: int = 0) -> bytes:
        """Return `limit` bytes of an attempt's log, all by default; b"" if there are none."""
        try:
            with self.log_path(number).open("rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)
        except FileNotFoundError:
            return b""

    def history(self) -> tuple[Outcome, ...]:
        """Finished attempts, by number."""
        return tuple(r.known for r in self._records("closed") if isinstance(r.known, Outcome))

    def stopping_outcomes(self) -> tuple[Outcome, ...]:
        """Attempts that are decided and whose stop was not seen to end."""
        return tuple(r.known for r in self._records("stopping") if isinstance(r.known, Outcome))

    def open_attempts(self) -> tuple[Attempt, ...]:
        """Attempts that were begun and not closed: running, or left by a crash."""
        return tuple(r.known for r in self._records("open") if isinstance(r.known, Attempt))

    def opening_facts(self, number: int) -> Mapping[str, object]:
        """What the host was when an attempt was opened; empty if that is not known."""
        path = self._attempt_folder(number) / "attempt.json"
        facts = read_document(path).get("facts")
        return facts if isinstance(facts, dict) else {}

    def next_number(self) -> int:
        """One more than the highest number in use, also by a folder whose record is missing."""
        return max(self._numbers(), default=0) + 1

    def take_number(self) -> int:
        """Return the next number, and never again while its attempt is not opened yet."""
        with self._turn:
            self._taken = max(self.next_number(), self._taken + 1)
            return self._taken

    def _require_lock(self) -> None:
        if self._lock is None:
            raise RuntimeError(f"{self.folder}: opened to be read, not to be written")

    def _attempt_folder(self, number: int) -> Path:
        return self.folder / "attempts" / f"{number:04d}"

    def _numbers(self) -> list[int]:
        folder = self.folder / "attempts"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def _records(self, state: str) -> list[Record]:
        """Return the attempts in that state, by number; a file is read once for each change.

        A folder without a record was made by a process that died before its attempt was opened:
        nothing was started, so there is nothing to know.
        """
        with self._turn:
            found = self._all_records()
        return [record for record in found if record.state == state]

    def _all_records(self) -> list[Record]:
        found: list[Record] = []
        for number in self._numbers():
            path = self._attempt_folder(number) / "attempt.json"
            mark = mark_of(path)
            if mark is None:
                continue
            record = self._read.get(path)
            if record is None or record.mark != mark:
                record = self._read[path] = read_record(path, mark)
            found.append(record)
        return found


def _new_run(identity: RunIdentity) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "id": uuid.uuid4().hex[:12],
        "name": identity.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "identity": identity.fingerprint,
        "model": identity.model,
        "launch": to_json(identity.launch),
        "host": identity.host,
    }


def _refuse_foreign_folder(folder: Path) -> None:
    if (folder / "run.json").exists():
        return
    others = sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in _LEFT_BY_A_CRASH
        and not path.name.endswith(".tmp")
        and not (path.name == "attempts" and not any(path.iterdir()))
    )
    if others:
        raise ConfigError(
            f"{folder}: holds {others[0]} and no run",
            next_step="Give --out a new or an empty folder.",
        )


def _refuse_another_identity(
    folder: Path, run: Mapping[str, object], identity: RunIdentity
) -> None:
    if run.get("identity") == identity.fingerprint:
        return
    what = "; ".join(changes(run, identity)[:4]) or "model or launch"
    raise ConfigError(
        f"{folder}: this run was begun with another model or launch ({what})",
        next_step="Give --out another folder: --out starts a new run. "
        "To go on with this one, put model and launch back.",
    )


def _read_run(folder: Path) -> dict[str, object]:
    path = folder / "run.json"
    if not path.exists():
        raise ConfigError(
            f"{folder}: no run there (no run.json)",
            next_step="Give a run's folder or its name under runs/.",
        )
    run = disk.read_json(
        path,
        what="the run's record",
        next_step="If the attempts are of no more use, delete the folder; else restore run.json.",
    )
    check_schema(path, run)
    return run


def _object(document: object) -> dict[str, object]:
    if not isinstance(document, dict):
        raise TypeError(document)
    return document


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
