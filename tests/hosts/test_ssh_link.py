"""Links that break, stand still, go through other machines, or never come up."""

from __future__ import annotations

import getpass
import socket
import sys
import threading
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from hosts.contract import is_alive, wait_until
from sglsweep.errors import ConfigError, HostError, HostUnreachable
from sglsweep.hosts.ssh import SshHost
from sglsweep.hosts.ssh_config import SshTarget, resolve
from sshd import free_port, make_key, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sshd import Gate, Sshd


@pytest.fixture
def host(sshd: Sshd, gate: Gate) -> Iterator[SshHost]:
    known = sshd.folder / f"known-{gate.port}"
    known.write_text(sshd.known_hosts.read_text().replace(str(sshd.port), str(gate.port)))
    made = SshHost(sshd.target(port=gate.port, known_hosts=(known,)))
    yield made
    made.close()


def test_reading_goes_on_at_the_offset_after_a_cut(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 8192
    (tmp_path / "log").write_bytes(content)
    path, read = PurePosixPath(tmp_path / "log"), b""

    while piece := host.read(path, offset=len(read), limit=200_000):
        read += piece
        gate.cut()

    assert read == content
    assert gate.connections > 5


def test_a_cut_in_the_middle_of_a_read_is_made_good(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 16384
    (tmp_path / "log").write_bytes(content)
    host.run(["true"])
    gate.cut_after(1_500_000)

    assert host.read(PurePosixPath(tmp_path / "log"), limit=1 << 23) == content
    assert gate.connections == 2


def test_a_cut_in_the_middle_of_a_write_is_made_good(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4096
    host.write(PurePosixPath(tmp_path / "file"), b"before")
    gate.cut_after(600)

    host.write(PurePosixPath(tmp_path / "file"), content)

    assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert gate.connections == 2


def test_a_link_that_stays_down_for_a_while_is_waited_for(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(b"content")
    host.run(["true"])
    gate.cut(stay_shut=True)
    opener = threading.Timer(1.5, gate.open)
    opener.start()

    assert host.read(PurePosixPath(tmp_path / "log")) == b"content"
    opener.join()


def test_a_link_that_stays_down_is_given_up_after_the_patience(sshd: Sshd, gate: Gate) -> None:
    known = sshd.folder / f"known-{gate.port}"
    known.write_text(sshd.known_hosts.read_text().replace(str(sshd.port), str(gate.port)))
    host = SshHost(sshd.target(port=gate.port, known_hosts=(known,), patience_s=1.0))
    host.run(["true"])
    gate.cut(stay_shut=True)
    started = time.monotonic()

    with pytest.raises(HostUnreachable):
        host.read(PurePosixPath("/etc/hostname"))

    assert 0.5 < time.monotonic() - started < 10


def test_a_command_that_was_cut_off_is_not_run_again(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    runs: list[Exception] = []

    def run() -> None:
        try:
            host.run(["sh", "-c", f"echo ran >>{note}; exec sleep 30"])
        except HostError as error:
            runs.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert wait_until(note.exists)
    gate.cut()
    thread.join(20)

    assert [type(error) for error in runs] == [HostUnreachable]
    assert host.run(["cat", str(note)]).stdout == b"ran\n"


def test_a_command_before_which_the_link_broke_runs_once(
    host: SshHost, gate: Gate, tmp_path: Path
) -> None:
    host.run(["true"])
    gate.cut()

    host.run(["sh", "-c", f"echo ran >>{tmp_path}/note"])

    assert (tmp_path / "note").read_text() == "ran\n"


def test_a_host_that_refuses_is_told_at_once(sshd: Sshd) -> None:
    started = time.monotonic()
    host = SshHost(sshd.target(port=free_port(), patience_s=600))

    with pytest.raises(HostUnreachable, match="refuses the connection") as refusal:
        host.run(["true"])

    assert refusal.value.exit_code == 3
    assert time.monotonic() - started < 5


def test_a_host_that_does_not_answer_is_told_within_the_limit(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = sshd.target(port=silent.getsockname()[1], connect_timeout_s=1.0)
        started = time.monotonic()

        with pytest.raises(HostUnreachable):
            SshHost(target).run(["true"])

        assert time.monotonic() - started < 6


def test_something_else_than_ssh_is_told_as_such(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as web:

        def answer() -> None:
            other, _ = web.accept()
            other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            other.close()

        threading.Thread(target=answer, daemon=True).start()
        target = sshd.target(port=web.getsockname()[1], connect_timeout_s=3.0)

        with pytest.raises(HostUnreachable, match="does not speak SSH"):
            SshHost(target).run(["true"])


def test_a_name_that_nobody_has_is_told(sshd: Sshd) -> None:
    with pytest.raises(HostUnreachable, match=r"no-such-host\.invalid"):
        SshHost(sshd.target(host="no-such-host.invalid")).run(["true"])


def test_a_login_shell_that_runs_nothing_is_told(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "forced", "ForceCommand echo This account is closed") as server:
        host = SshHost(server.target())

        with pytest.raises(HostError, match="This account is closed"):
            host.run(["true"])
        host.close()


def test_noise_of_the_login_shell_is_no_output(tmp_path: Path) -> None:
    noisy = 'ForceCommand echo welcome; echo motd >&2; eval "$SSH_ORIGINAL_COMMAND"'
    with running_sshd(tmp_path / "noisy", noisy, "Subsystem sftp /bin/false") as server:
        host = SshHost(server.target())
        answer = host.run(["sh", "-c", "echo out; echo err >&2"])
        host.close()

    assert (answer.stdout, answer.stderr) == (b"out\n", b"motd\nerr\n")


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("jump")) as server:
        yield server


def both(sshd: Sshd, jump: Sshd, tmp_path: Path) -> tuple[Path, ...]:
    known = tmp_path / "both"
    known.write_text(sshd.known_hosts.read_text() + jump.known_hosts.read_text())
    return (known,)


def test_a_jump_goes_through_another_machine(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    (jump.folder / "authorized_keys").write_text(Path(f"{sshd.user_key}.pub").read_text())
    before = jump.log().count("Accepted publickey")
    jump_word = f"{getpass.getuser()}@127.0.0.1:{jump.port}"
    host = SshHost(sshd.target(jump=jump_word, known_hosts=both(sshd, jump, tmp_path)))

    assert host.run(["echo", "through"]).stdout == b"through\n"
    host.write(PurePosixPath(tmp_path / "file"), b"x" * 100_000)

    assert (tmp_path / "file").stat().st_size == 100_000
    assert jump.log().count("Accepted publickey") == before + 1
    host.close()


def test_the_host_key_of_a_jump_is_checked(sshd: Sshd, jump: Sshd) -> None:
    host = SshHost(sshd.target(jump=f"127.0.0.1:{jump.port}"))

    with pytest.raises(HostError, match=f"port {jump.port}, is unknown"):
        host.run(["true"])


def test_an_alias_of_the_ssh_config_works_as_it_is(sshd: Sshd, jump: Sshd, tmp_path: Path) -> None:
    own = make_key(tmp_path / "own")
    (jump.folder / "authorized_keys").write_text(Path(f"{own}.pub").read_text())
    (known,) = both(sshd, jump, tmp_path)
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "jumps.conf").write_text(
        f"Host bastion\n  HostName 127.0.0.1\n  Port {jump.port}\n  IdentityFile {own}\n"
        f"  UserKnownHostsFile {known}\n"
    )
    config = tmp_path / "config"
    config.write_text(
        f"Include {tmp_path}/extra/*.conf\n"
        f"Host blackwell\n  HostName 127.0.0.1\n  Port={sshd.port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {sshd.user_key}\n  IdentitiesOnly yes\n  ProxyJump bastion\n"
        f"  UserKnownHostsFile {known}\n  StrictHostKeyChecking no\n"
        "Host *\n  Port 1\n"
    )
    host = SshHost(SshTarget(name="blackwell", config=config, connect_timeout_s=10))

    assert host.run(["echo", "through"]).stdout == b"through\n"
    host.close()


def test_a_proxy_command_is_spoken_through(sshd: Sshd, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while piece := os.read(0, 65536):\n"
        "        s.sendall(piece)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while piece := s.recv(65536):\n"
        "    os.write(1, piece)\n"
    )
    config = tmp_path / "config"
    config.write_text(f"Host *\n  ProxyCommand {sys.executable} {relay} %h %p\n")
    host = SshHost(sshd.target(config=config))

    assert host.run(["echo", "through"]).stdout == b"through\n"
    host.close()


def resolved(tmp_path: Path, config: str, **target: object) -> SshTarget:
    (tmp_path / "config").write_text(config)
    fields: dict[str, object] = {"name": "gpu", "config": tmp_path / "config"}
    return SshTarget(**{**fields, **target})  # type: ignore[arg-type] # a test's own words


def test_fields_of_hosts_yaml_win_over_the_ssh_config(tmp_path: Path) -> None:
    config = "Host gpu\n  HostName real.example\n  Port 2200\n  User them\n  IdentityFile /a\n"

    (hop,) = resolve(resolved(tmp_path, config, port=22, user="me", key="/b"))

    assert (hop.address, hop.port, hop.user) == ("real.example", 22, "me")
    assert hop.keys == (Path("/b"), Path("/a"))


def test_a_host_key_alias_names_the_key(tmp_path: Path) -> None:
    (hop,) = resolve(resolved(tmp_path, "Host gpu\n  HostKeyAlias rack7\n  Port 2200\n"))

    assert hop.known_as == ("rack7",)


def test_jumps_of_jumps_are_taken_in_order(tmp_path: Path) -> None:
    config = "Host gpu\n  ProxyJump a,b\nHost a\n  ProxyJump outer:2222\nHost b\n  User bob\n"

    hops = resolve(resolved(tmp_path, config))

    assert [(hop.address, hop.port) for hop in hops] == [
        ("outer", 2222),
        ("a", 22),
        ("b", 22),
        ("gpu", 22),
    ]
    assert hops[2].user == "bob"


def test_jumps_in_a_circle_are_an_error(tmp_path: Path) -> None:
    config = "Host gpu\n  ProxyJump a\nHost a\n  ProxyJump gpu\n"

    with pytest.raises(ConfigError, match="circle"):
        resolve(resolved(tmp_path, config))


def test_no_jump_is_taken_where_none_says_so(tmp_path: Path) -> None:
    config = "Host gpu\n  ProxyJump none\nHost *\n  ProxyJump bastion\n"

    assert len(resolve(resolved(tmp_path, config))) == 1


def test_a_command_behind_a_slow_login_shell_is_ended_all_the_same(tmp_path: Path) -> None:
    slow = 'ForceCommand sleep 2; eval "$SSH_ORIGINAL_COMMAND"'
    note = tmp_path / "note"
    with running_sshd(tmp_path / "slow", slow, "Subsystem sftp /bin/false") as server:
        host = SshHost(server.target())

        with pytest.raises(HostError, match="did not end within"):
            host.run(["sh", "-c", f"echo $$ >{note}; exec sleep 600"], timeout_s=1.0)
        host.close()

    assert wait_until(lambda: note.exists() and note.read_text().strip() != "")
    assert wait_until(lambda: not is_alive(int(note.read_text())))
