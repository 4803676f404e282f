"""Where machines are looked for, and what an entry may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglsweep.config.hosts import HostConfig, SshSettings, load_host
from sglsweep.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for SWEEP.yaml, with a home folder of its own beside it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "sglsweep").mkdir(parents=True)
    (tmp_path / "sweeps").mkdir()
    return tmp_path / "sweeps"


def _beside(folder: Path, text: str) -> None:
    (folder / "hosts.yaml").write_text(text)


def test_this_machine_is_always_known(folder: Path) -> None:
    host = load_host("local", folder / "SWEEP.yaml")
    assert host == HostConfig(name="local", where="this machine")


def test_an_entry_may_say_more_about_this_machine(folder: Path) -> None:
    _beside(folder, "local: {port: 31010, gpus: 2}\n")
    host = load_host("local", folder)
    assert (host.port, host.gpus, host.ssh) == (31010, (0, 1), None)


def test_all_keys_of_the_contract_are_read(folder: Path) -> None:
    _beside(
        folder,
        "blackwell: {ssh: {host: 10.0.0.1, user: me, port: 2222, key: ~/.ssh/id, jump: gate},"
        " workdir: /data/w, port: 31000, gpus: [0, 2], slots: 2, python: /opt/p/bin/python}\n",
    )
    host = load_host("blackwell", folder)
    assert host.ssh == SshSettings(
        host="10.0.0.1", user="me", port=2222, key="~/.ssh/id", jump="gate"
    )
    assert (host.workdir, host.port, host.gpus, host.slots) == ("/data/w", 31000, (0, 2), 2)
    assert host.python == "/opt/p/bin/python"
    assert host.where == f"{folder / 'hosts.yaml'}:1"


def test_the_file_beside_the_sweep_wins_over_the_users(folder: Path) -> None:
    users = folder.parent / "home" / ".config" / "sglsweep" / "hosts.yaml"
    users.write_text("a: {ssh: {host: far}}\nb: {ssh: {host: other}}\n")
    _beside(folder, "a: {ssh: {host: near}}\n")
    near, other = load_host("a", folder), load_host("b", folder)
    assert near.ssh is not None
    assert other.ssh is not None
    assert (near.ssh.host, other.ssh.host) == ("near", "other")


def test_a_name_of_the_ssh_config_works_as_it_is(folder: Path) -> None:
    config = folder.parent / "home" / ".ssh" / "config"
    config.write_text("Host *\n  User me\nHost gpu7 gpu8\n  HostName 10.0.0.7\nHost !x rack-*\n")
    assert load_host("gpu8", folder).ssh == SshSettings(host="gpu8")
    assert load_host("rack-3", folder).ssh == SshSettings(host="rack-3")
    with pytest.raises(ConfigError, match="no host 'gpu9'"):
        load_host("gpu9", folder)


def test_an_included_ssh_config_counts(folder: Path) -> None:
    ssh = folder.parent / "home" / ".ssh"
    (ssh / "config").write_text("Include conf.d/*\nInclude config\n")
    (ssh / "conf.d").mkdir()
    (ssh / "conf.d" / "lab").write_text("Host lab1\n")
    assert load_host("lab1", folder).ssh == SshSettings(host="lab1")


def test_ssh_as_text_is_a_name(folder: Path) -> None:
    _beside(folder, "a: {ssh: gpu7}\n")
    assert load_host("a", folder).ssh == SshSettings(host="gpu7")


def test_an_unknown_name_is_answered_with_the_nearest(folder: Path) -> None:
    _beside(folder, "blackwell: {ssh: {host: x}}\n")
    with pytest.raises(ConfigError, match=r"SWEEP\.yaml:3: no host 'blackwel'") as caught:
        load_host("blackwel", folder, where="SWEEP.yaml:3")
    assert caught.value.next_step.startswith("Write 'blackwell', or add it to ")


def test_the_line_of_the_sweep_that_names_an_unknown_host_is_told(folder: Path) -> None:
    sweep = folder / "SWEEP.yaml"
    sweep.write_text("model: m\nhost: gpu9\n")
    with pytest.raises(ConfigError, match=r"SWEEP\.yaml:2: no host 'gpu9'"):
        load_host("gpu9", sweep)


def test_the_example_beside_the_configs_loads(folder: Path) -> None:
    _beside(folder, (Path(__file__).parents[2] / "configs" / "hosts.example.yaml").read_text())
    host = load_host("blackwell", folder)
    assert host.ssh is not None
    assert host.ssh.host == "192.0.2.17"
    assert load_host("local", folder).port == 31000


def test_a_password_is_read_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOX_PASSWORD", "sesame")
    _beside(folder, "a: {ssh: {host: x, password: '${BOX_PASSWORD}'}}\n")
    host = load_host("a", folder)
    assert host.ssh is not None
    assert host.ssh.password_env == "BOX_PASSWORD"  # noqa: S105 - a name, no password
    assert host.secrets == {"BOX_PASSWORD": "sesame"}
    assert "sesame" not in repr(host)


def test_secrets_of_other_hosts_need_not_be_set(folder: Path) -> None:
    _beside(folder, "a: {ssh: {host: x}}\nb: {ssh: {host: x, password: '${NOT_SET_AT_ALL}'}}\n")
    assert load_host("a", folder).secrets == {}
    with pytest.raises(ConfigError, match=r"hosts\.yaml:2: \$\{NOT_SET_AT_ALL\} is not set"):
        load_host("b", folder)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: {ssh: {hst: x}}", "unknown key 'hst' in a.ssh"),
        ("a: {ssh: {host: x, password: sesame}}", "'password' holds a secret in plain text"),
        ("a: {ssh: {user: me}}", "a.ssh lacks 'host'"),
        ("a: {workdir: /w}", "host 'a' says not how to reach it"),
        ("a: {ssh: {host: x}, gpus: many}", "a.gpus: 'many' names no GPUs"),
        ("a: {ssh: {host: x}, slots: 0}", "a.slots: 0 is too small"),
        ("a: {ssh: {host: x}, slots: two}", "a.slots: 'two' is no whole number"),
        ("a: {ssh: {host: x}, port: 65535, slots: 2}", "2 slots from port 65535 on end above"),
        ("a:", "host 'a' says not how to reach it"),
        ("a: 5", "a: 5 is no mapping"),
        ("- a", "the file is no mapping"),
    ],
)
def test_a_wrong_entry_is_named_with_its_line(folder: Path, text: str, what: str) -> None:
    _beside(folder, text + "\n")
    with pytest.raises(ConfigError) as caught:
        load_host("a", folder)
    assert f"hosts.yaml:1: {what}" in caught.value.message
