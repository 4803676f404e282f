"""The contract, kept by this machine and by one behind SSH, with and without SFTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hosts.contract import HostContract
from sglsweep.hosts.local import LocalHost
from sglsweep.hosts.ssh import SshHost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.hosts.base import Host
    from sshd import Sshd


class TestLocalHost(HostContract):
    @pytest.fixture
    def host(self) -> Host:
        return LocalHost()


class TestSshHost(HostContract):
    @pytest.fixture
    def host(self, sshd: Sshd) -> Iterator[Host]:
        host = SshHost(sshd.target())
        yield host
        host.close()


class TestSshHostWithoutSftp(HostContract):
    @pytest.fixture
    def host(self, bare_sshd: Sshd) -> Iterator[Host]:
        host = SshHost(bare_sshd.target())
        yield host
        host.close()
