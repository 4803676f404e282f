"""Host keys and log-in: only who is known is spoken to, and a refusal says what to do."""

from __future__ import annotations

import base64
import getpass
import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sglsweep.errors import HostError
from sglsweep.hosts.known_hosts import fingerprint
from sglsweep.hosts.ssh import SshHost
from sshd import make_key, program, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.hosts.ssh_config import SshTarget
    from sshd import Sshd


def refusal(target: SshTarget) -> HostError:
    host = SshHost(target)
    with pytest.raises(HostError) as caught:
        host.run(["true"])
    host.close()
    assert caught.value.exit_code == 3
    return caught.value


def works(target: SshTarget) -> bool:
    host = SshHost(target)
    try:
        return host.run(["echo", "in"]).stdout == b"in\n"
    finally:
        host.close()


def shown_fingerprint(key: Path) -> str:
    said = subprocess.run(
        [program("ssh-keygen"), "-lf", f"{key}.pub"], capture_output=True, text=True, check=True
    )
    return said.stdout.split()[1]


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_an_unknown_host_key_is_refused_with_the_command_that_adds_it(
    sshd: Sshd, tmp_path: Path
) -> None:
    known = tmp_path / "not-yet" / "known_hosts"

    error = refusal(sshd.target(known_hosts=(known,)))

    assert "is unknown" in str(error)
    assert shown_fingerprint(sshd.folder / "host_key") in str(error)
    command = error.next_step[error.next_step.index("mkdir") :]
    assert "ssh-keyscan" in command
    subprocess.run(command, shell=True, check=True, capture_output=True)  # noqa: S602 - as a user would
    assert works(sshd.target(known_hosts=(known,)))


def test_a_changed_host_key_is_refused_with_the_command_that_forgets_the_old_one(
    sshd: Sshd, tmp_path: Path
) -> None:
    other = make_key(tmp_path / "other")
    kind, blob = Path(f"{other}.pub").read_text().split()[:2]
    known = tmp_path / "known_hosts"
    known.write_text(f"# a comment\n[127.0.0.1]:{sshd.port} {kind} {blob}\n")

    error = refusal(sshd.target(known_hosts=(known,)))

    assert "has changed" in str(error)
    assert f"{known}:2" in str(error)
    assert shown_fingerprint(other) in str(error)
    command = error.next_step[error.next_step.index("ssh-keygen") :].partition(";")[0]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert "is unknown" in str(refusal(sshd.target(known_hosts=(known,))))


def test_a_revoked_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    line = sshd.known_hosts.read_text()
    known.write_text(f"{line}@revoked {line.replace(line.split()[0], '*')}")

    assert "revoked" in str(refusal(sshd.target(known_hosts=(known,))))


def test_hashed_names_are_read(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_hosts.read_text())
    subprocess.run(
        [program("ssh-keygen"), "-H", "-f", str(known)], check=True, capture_output=True
    )
    assert "127.0.0.1" not in known.read_text()

    assert works(sshd.target(known_hosts=(known,)))


def test_a_second_file_is_read_too(sshd: Sshd, tmp_path: Path) -> None:
    assert works(sshd.target(known_hosts=(tmp_path / "absent", sshd.known_hosts)))


def test_a_host_with_several_keys_shows_the_one_that_is_known(tmp_path: Path) -> None:
    ecdsa = make_key(tmp_path / "ecdsa", kind="ecdsa")
    known = tmp_path / "known_hosts"
    with running_sshd(tmp_path / "two", f"HostKey {ecdsa}") as server:
        kind, blob = Path(f"{ecdsa}.pub").read_text().split()[:2]
        known.write_text(f"[127.0.0.1]:{server.port} {kind} {blob}\n")

        assert works(server.target(known_hosts=(known,)))


def test_an_rsa_host_key_is_known_whatever_its_signature(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "rsa", kind="rsa") as server:
        assert works(server.target())


def test_fingerprints_are_those_of_ssh_keygen(sshd: Sshd) -> None:
    blob = base64.b64decode(sshd.known_hosts.read_text().split()[2])

    assert fingerprint(blob) == shown_fingerprint(sshd.folder / "host_key")


def test_a_wrong_key_lists_what_was_tried(sshd: Sshd, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")

    error = refusal(sshd.target(key=str(stranger)))

    assert str(stranger) in str(error)
    assert "publickey" in str(error)
    assert "authorized_keys" in error.next_step


def test_a_key_file_that_is_absent_is_named(sshd: Sshd, tmp_path: Path) -> None:
    error = refusal(sshd.target(key=str(tmp_path / "nowhere")))

    assert "nowhere (absent)" in str(error)


def test_an_encrypted_key_opens_with_a_passphrase_of_the_environment(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(sshd.user_key.read_bytes())
    locked.chmod(0o600)
    subprocess.run(
        [program("ssh-keygen"), "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(locked)],
        check=True,
        capture_output=True,
    )

    opened = {"key": str(locked), "passphrase_env": "MY_PASSPHRASE"}
    without = refusal(sshd.target(key=str(locked)))
    monkeypatch.setenv("MY_PASSPHRASE", "wrong")
    wrong = refusal(sshd.target(**opened))
    monkeypatch.setenv("MY_PASSPHRASE", "open sesame")

    assert "encrypted" in str(without)
    assert "$MY_PASSPHRASE does not open it" in str(wrong)
    assert "sesame" not in str(wrong)
    assert works(sshd.target(**opened))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real agent; tests add keys with ssh-add."""
    address = tmp_path / "agent"
    command = [program("ssh-agent"), "-D", "-a", str(address)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not address.exists():
            assert process.poll() is None
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        yield
        process.terminate()


@pytest.mark.usefixtures("agent")
def test_a_key_of_the_agent_is_enough(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run([program("ssh-add"), "-q", str(sshd.user_key)], check=True)

    assert works(sshd.target(key=None))
    assert works(sshd.target(key=str(tmp_path / "absent")))


@pytest.mark.usefixtures("agent")
def test_a_full_agent_does_not_use_up_the_tries_before_the_named_key(
    sshd: Sshd, tmp_path: Path
) -> None:
    for number in range(8):
        key = make_key(tmp_path / f"key{number}")
        subprocess.run([program("ssh-add"), "-q", str(key)], check=True)

    assert works(sshd.target())
    error = refusal(sshd.target(key=None))
    assert "hung up" in str(error) or "ended it" in str(error)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may check another password than its own")
def test_a_password_comes_from_the_environment_and_never_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_sshd(tmp_path / "pw", "PasswordAuthentication yes") as server:
        (server.folder / "authorized_keys").write_text("")
        monkeypatch.setenv("MY_PASSWORD", "hunter22")

        error = refusal(server.target(password_env="MY_PASSWORD"))  # noqa: S106 - a variable's name

    assert "password of $MY_PASSWORD" in str(error)
    assert "hunter22" not in str(error)
    assert getpass.getuser() in str(error)
