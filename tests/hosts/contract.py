"""What every Host promises, asked of each implementation."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from sglsweep.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.hosts.base import Host

STRANGE_WORDS = (
    "",
    " ",
    "two words",
    "it's",
    'say "hi"',
    "$HOME `id` $(id)",
    "*",
    "~",
    "a;b|c&d>e<f",
    "back\\slash",
    "\\0101",
    "%s %b",
    "bang!",
    "new\nline",
    "ends in newline\n",
    "tab\there",
    "-n",
    "--",
    "#no comment",
    "äöü €",
    "a=b",
    "{1..3}",
)


def wait_until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Tell whether something came true in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if holds():
            return True
        threading.Event().wait(0.02)
    return holds()


def is_alive(pid: int) -> bool:
    """Tell whether a process lives and is no zombie."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text()
        return text.rpartition(")")[2].split()[0] != "Z"
    return False


class HostContract:
    """Subclasses give a `host` fixture whose machine shares this one's file system."""

    @pytest.fixture
    def host(self) -> Host:
        raise NotImplementedError

    @pytest.fixture
    def folder(self, tmp_path: Path) -> PurePosixPath:
        return PurePosixPath(tmp_path)

    def test_a_command_answers_with_both_outputs_and_its_status(self, host: Host) -> None:
        answer = host.run(["sh", "-c", "echo out; echo err >&2; exit 7"])

        assert (answer.exit_status, answer.stdout, answer.stderr) == (7, b"out\n", b"err\n")

    def test_words_arrive_as_they_were_given(self, host: Host) -> None:
        answer = host.run(["printf", "%s\\0", *STRANGE_WORDS])

        assert answer.text.split("\0")[:-1] == list(STRANGE_WORDS)

    def test_standard_input_arrives_whole_and_ends(self, host: Host) -> None:
        text = bytes(range(256)) * 4096

        assert host.run(["cat"], stdin=text).stdout == text

    def test_a_command_without_standard_input_does_not_wait_for_any(self, host: Host) -> None:
        assert host.run(["cat"], timeout_s=10).stdout == b""

    def test_a_command_that_leaves_its_input_unread_is_no_error(self, host: Host) -> None:
        assert host.run(["true"], stdin=b"x" * (1 << 20)).exit_status == 0

    def test_much_output_on_both_streams_comes_whole(self, host: Host) -> None:
        script = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"

        answer = host.run(["sh", "-c", script])

        assert (len(answer.stdout), len(answer.stderr)) == (3_000_000, 2_000_000)

    def test_commands_run_in_the_home_folder(self, host: Host) -> None:
        home = host.home()

        assert home.is_absolute()
        assert Path(host.run(["pwd"]).text.strip()).samefile(home)

    def test_a_command_that_is_too_slow_is_ended_with_its_children(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        note = folder / "pids"
        script = f"trap '' TERM; sleep 300 & echo $$ $! > {note}; wait"

        with pytest.raises(HostError, match="did not end within"):
            host.run(["sh", "-c", script], timeout_s=3.0)

        pids = [int(word) for word in Path(note).read_text().split()]
        assert len(pids) == 2
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))

    def test_an_unknown_program_is_refused_with_its_name(self, host: Host) -> None:
        with pytest.raises(HostError, match="no-such-program-here") as refusal:
            host.run(["no-such-program-here", "x"])

        assert refusal.value.next_step

    def test_a_command_ended_by_a_signal_tells_so(self, host: Host) -> None:
        # -9 as Python says it, 137 as a shell does.
        assert host.run(["sh", "-c", "kill -9 $$"]).exit_status in {-9, 137}

    def test_what_was_written_is_read(self, host: Host, folder: PurePosixPath) -> None:
        content = bytes(range(256)) * 5000

        host.write(folder / "some" / "where" / "file", content)

        assert host.read(folder / "some" / "where" / "file", limit=1 << 22) == content

    def test_reading_goes_on_at_an_offset(self, host: Host, folder: PurePosixPath) -> None:
        content = os.urandom(1_500_000)
        Path(folder / "log").write_bytes(content)

        pieces, at = [], 0
        while piece := host.read(folder / "log", offset=at):
            pieces.append(piece)
            at += len(piece)

        assert b"".join(pieces) == content
        assert max(len(piece) for piece in pieces) <= 1 << 20

    def test_reading_keeps_the_limit(self, host: Host, folder: PurePosixPath) -> None:
        Path(folder / "log").write_bytes(b"0123456789")

        assert host.read(folder / "log", offset=2, limit=3) == b"234"
        assert host.read(folder / "log", offset=9, limit=3) == b"9"

    def test_a_file_that_is_absent_or_read_to_its_end_is_empty(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        Path(folder / "log").write_bytes(b"12345")

        assert host.read(folder / "absent") == b""
        assert host.read(folder / "absent" / "deeper") == b""
        assert host.read(folder / "log", offset=5) == b""
        assert host.read(folder / "log", offset=50) == b""

    def test_a_folder_cannot_be_read(self, host: Host, folder: PurePosixPath) -> None:
        with pytest.raises(HostError, match="directory"):
            host.read(folder)

    def test_names_with_strange_characters_are_names(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        path = folder / "a b" / "$x 'y' \\ \"z\""

        host.write(path, b"content")

        assert host.read(path) == b"content"

    def test_written_files_and_new_folders_are_private(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        host.write(folder / "new" / "newer" / "secret", b"x")
        host.write(folder / "script", b"x", mode=0o755)

        assert stat.S_IMODE(Path(folder / "new/newer/secret").stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(folder / "new").stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(folder / "new/newer").stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(folder / "script").stat().st_mode) == 0o755

    def test_writing_replaces_the_whole_file_and_leaves_nothing_beside_it(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        host.write(folder / "file", b"long content before")
        with Path(folder / "file").open("rb") as reader:
            host.write(folder / "file", b"short")

            assert reader.read() == b"long content before"
        assert Path(folder / "file").read_bytes() == b"short"
        assert [path.name for path in Path(folder).iterdir()] == ["file"]

    def test_a_write_that_fails_says_where_and_leaves_nothing(
        self, host: Host, folder: PurePosixPath
    ) -> None:
        Path(folder / "file").write_bytes(b"in the way")

        with pytest.raises(HostError, match="file"):
            host.write(folder / "file" / "below", b"x")
        Path(folder / "taken").mkdir()
        with pytest.raises(HostError, match="taken"):
            host.write(folder / "taken", b"x")

        assert sorted(path.name for path in Path(folder).iterdir()) == ["file", "taken"]

    def test_several_threads_may_ask_at_once(self, host: Host, folder: PurePosixPath) -> None:
        answers: dict[int, str] = {}

        def ask(number: int) -> None:
            path = folder / str(number)
            host.write(path, host.run(["echo", str(number)]).stdout)
            for _ in range(10):
                answers[number] = host.read(path).decode()

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert answers == {number: f"{number}\n" for number in range(6)}

    def test_it_can_be_asked_again_after_close(self, host: Host) -> None:
        host.run(["true"])
        host.close()

        assert host.run(["echo", "back"]).stdout == b"back\n"
