"""One OpenSSH server for all tests that need no setting of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sshd import Gate, Sshd, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="session")
def bare_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("bare"), "Subsystem sftp /bin/false") as server:
        yield server


@pytest.fixture
def gate(sshd: Sshd) -> Iterator[Gate]:
    relay = Gate(sshd.port)
    yield relay
    relay.close()
