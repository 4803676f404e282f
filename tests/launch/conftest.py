"""Hosts to launch on, and the real SGLang where this machine has one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attempts import Attempts
from models import make_gpt2
from real_python import real_python
from sglsweep.hosts.local import LocalHost
from sglsweep.hosts.ssh import SshHost
from sshd import Gate, Sshd, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.hosts.base import Host

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def gate(sshd: Sshd) -> Iterator[Gate]:
    relay = Gate(sshd.port)
    yield relay
    relay.close()


@pytest.fixture
def gated_host(sshd: Sshd, gate: Gate) -> Iterator[SshHost]:
    """The machine behind SSH, over a link that a test can cut."""
    known = sshd.folder / f"known-{gate.port}"
    known.write_text(sshd.known_hosts.read_text().replace(str(sshd.port), str(gate.port)))
    host = SshHost(sshd.target(port=gate.port, known_hosts=(known,)))
    yield host
    host.close()


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest, sshd: Sshd) -> Iterator[Host]:
    made: Host = LocalHost() if request.param == "local" else SshHost(sshd.target())
    yield made
    made.close()


@pytest.fixture
def attempts(tmp_path: Path, host: Host) -> Iterator[Attempts]:
    made = Attempts(tmp_path / "attempts", host)
    yield made
    made.end_all()


@pytest.fixture(scope="session")
def sglang_python() -> Path:
    """The Python of a real SGLang for CPU."""
    return real_python()


@pytest.fixture(scope="session")
def tiny_gpt2(sglang_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gpt2(sglang_python, tmp_path_factory.mktemp("models") / "gpt2-ok")
