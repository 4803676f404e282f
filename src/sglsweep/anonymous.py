"""Take private details out of a log without moving a line: each becomes a placeholder.

Host names, user names, addresses, secrets, and paths that only this machine has. What everybody
has stays: Hugging Face ids, paths inside Python packages, loopback addresses. A machine cannot
find everything: whoever publishes the text reads it first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

HF_ID = re.compile(r"[\w.-]+/[\w.-]+\Z")
"""`owner/name`: public, unless a folder of that name lies beside the launch."""
_ID_CACHE = re.compile(r"/(?:models|datasets)--[\w.-]+")

_SECRETS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|nvapi-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?!TOKEN\b)[\w.~+/-]{8,}=*")
_NAMED_SECRET = re.compile(
    r"(?i)((?:api|admin|hf|access|auth|secret)[_-]?(?:key|token)|password|passwd|secret)"
    r"(['\"]?\s*[=:]\s*|['\"]?,\s*['\"]|\s+)"
    r"(?!None\b|null\b|['\"]?\$\{|['\"]?TOKEN\b)('[^']+'|\"[^\"]+\"|[^\s,)'\"]+)"
)
_URL_LOGIN = re.compile(r"(://)[^\s/@:]+:[^\s/@]+@")
_EMAIL = re.compile(r"\b[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b")
_GPU_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-fA-F:]*\d)(?:[0-9a-fA-F]{1,4}:){2,7}:?[0-9a-fA-F]{0,4}"
    r"(?::[0-9a-fA-F]{1,4})*(?![\w:])"
)
# 12.8.4.1 is a cuBLAS as well as an address: what stands before it decides.
_VERSION_BEFORE = re.compile(r"(?i)(?:[=<>~]=|version|cudnn|cublas|nccl|cu1\d|\bv)[\s:='\"(-]*\Z")
_PUBLIC_IPV4 = ("127.", "0.", "255.", "192.0.2.", "198.51.100.", "203.0.113.")
_IPV6_GROUPS = 8

_HOSTS = (
    re.compile(r"(?m)(?:^|\s)([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL"),
    re.compile(r"\[([A-Za-z][\w-]*(?:\.[\w-]+)*)\]:\d{2,5}\b"),
    re.compile(
        r"(?i)(?:dist[_-]init[_-]addr|master_addr|host_?name)['\"]?[=:\s]+['\"]?([A-Za-z][\w.-]*)"
    ),
    re.compile(
        r"\b([A-Za-z][\w-]*(?:\.[\w-]+)*\.(?:internal|lan|corp|intra|localdomain|local))\b"
    ),
)
_HOME = re.compile(r"/(?:home|Users)/([^/\s'\",:;)\]]+)")
_EVERYBODY = frozenset(
    {
        "admin",
        "cluster",
        "cuda",
        "gpu",
        "host",
        "localhost",
        "local",
        "master",
        "model",
        "models",
        "node",
        "none",
        "null",
        "python",
        "root",
        "server",
        "sglang",
        "torch",
        "triton",
        "ubuntu",
        "user",
        "users",
        "worker",
    }
)
_LEAST_LENGTH = 4
"""A shorter name stands in too many words to be replaced everywhere."""

_MODEL_PATH = re.compile(
    r"(?:(?:model|tokenizer|speculative_draft_model|draft_model)[_-]path|served_model_name"
    r"|download_dir)(?:['\"]?\s*[=:]\s*|\s+)['\"]?([~./][^\s'\",)]+)"
)
_MODEL = "/models/model-"
_PATH = re.compile(
    r"(?<![\w.:/<>~*)\]-])(?:~|\.{0,2})/(?:[\w.@+=%~-]+/)+(?:[\w.@+=%~-]*[\w@+=%~-])?"
)
_SYSTEM = frozenset(
    {
        "usr",
        "app",
        "deepgemm",
        "default_pg",
        "flashinfer",
        "pytorch",
        "sgl-kernel",
        "opt",
        "root",
        "tmp",
        "proc",
        "sys",
        "dev",
        "etc",
        "bin",
        "sbin",
        "lib",
        "lib64",
        "var",
        "run",
        "boot",
        "sgl-workspace",
        "workspace",
        "sglang",
        "v1",
        "v2",
    }
)
_PACKAGE = re.compile(r"/lib(?:64)?/python3[\d.]*/.*")
_CHECKOUT = re.compile(r"/python/sglang/.*|/csrc/.*")
_TELLING = re.compile(r"\.(?:py|so[\d.]*|json|safetensors|bin|cu|cuh|h|cpp|cc|gguf|log)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Private:
    """What is known to be private beforehand.

    Attributes:
        model: the model's path; an id of Hugging Face is public and stays.
    """

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    model: str = ""


@dataclass(slots=True)
class _Placeholders:
    """The same detail gets the same placeholder everywhere."""

    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    _count: dict[str, int] = field(default_factory=dict)

    def get(self, kind: str, detail: str, pattern: str) -> str:
        """Return the placeholder of a detail; `{}` in the pattern is its number."""
        known = self._given.get((kind, detail))
        if known is None:
            self._count[kind] = self._count.get(kind, 0) + 1
            known = self._given[kind, detail] = pattern.format(self._count[kind])
        return known

    @property
    def counts(self) -> Mapping[str, int]:
        """Kind -> how many different details were replaced."""
        return self._count


def anonymize(text: str, private: Private) -> tuple[str, Mapping[str, int]]:
    """Return the text with placeholders, and kind -> how many different details went."""
    places = _Placeholders()
    text = _without_secrets(text, places)
    text = _without_models(text, private, places)
    text = _PATH.sub(lambda m: _path(m.group(), places), text)
    users = [*private.users, *_HOME.findall(text)]
    text = _HOME.sub(lambda m: m.group().replace(m.group(1), "user"), text)
    text = _without_names(text, users, lambda name: places.get("user name", name, "user"))
    hosts = [*private.hosts, *_hosts(text)]
    text = _without_names(text, hosts, lambda name: places.get("host name", name, "host-{}"))
    text = _IPV4.sub(lambda m: _ipv4(m, places), text)
    text = _IPV6.sub(lambda m: _ipv6(m.group(), places), text)
    return text, dict(places.counts)


def _without_secrets(text: str, places: _Placeholders) -> str:
    def token(secret: str) -> str:
        return places.get("secret", secret, "TOKEN")

    text = _SECRETS.sub(lambda m: token(m.group()), text)
    text = _BEARER.sub(lambda m: m.group(1) + token(m.group()), text)
    text = _NAMED_SECRET.sub(lambda m: _named_secret(m, token), text)
    text = _URL_LOGIN.sub(lambda m: f"{m.group(1)}{token(m.group())}@", text)
    text = _GPU_UUID.sub(
        lambda m: places.get("GPU id", m.group(), m.group(1) + "-00000000-0000-0000-0000-{:012d}"),
        text,
    )
    return _EMAIL.sub(lambda m: places.get("e-mail", m.group(), "user{}@example.com"), text)


def _named_secret(found: re.Match[str], token: Callable[[str], str]) -> str:
    name, between, value = found.groups()
    # In running text "the secret is" names none; an option and an assignment do.
    is_option = found.string[max(0, found.start() - 12) : found.start()].rstrip("-").endswith(" ")
    if between.isspace() and not (is_option and "-" in found.string[found.start() - 1 :][:1]):
        return found.group()
    quote = value[0] if value[0] in "'\"" else ""
    return f"{name}{between}{quote}{token(value)}{quote}"


def _without_models(text: str, private: Private, places: _Placeholders) -> str:
    named = [private.model] if _is_path(private.model) else []
    named += [path for path in _MODEL_PATH.findall(text) if _is_path(path)]
    for path in _longest_first(path.rstrip("/") for path in named):
        if path in text and not _ID_CACHE.search(path):
            text = text.replace(path, places.get("model path", path, _MODEL + "{}"))
    return text


def _is_path(model: str) -> bool:
    return model.startswith(("/", "~", ".")) and len(model) > _LEAST_LENGTH


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(names), key=len, reverse=True)


def _path(path: str, places: _Placeholders) -> str:
    """Return a path without what only this machine has of it."""
    first, _, _ = path.lstrip("/").partition("/")
    is_public = path.startswith((".", _MODEL)) or (path.startswith("/") and first in _SYSTEM)
    if is_public:
        return path
    start = "/home/user" if first in {"home", "Users"} or path.startswith("~") else "/private"
    for pattern, folder in ((_PACKAGE, "/venv"), (_CHECKOUT, "/sglang"), (_ID_CACHE, "/hub")):
        found = pattern.search(path)
        if found:
            places.get("package path", path[: found.start()], "{}")
            return f"{start}{folder}{path[found.start() :]}"
    parent, _, name = path.rstrip("/").rpartition("/")
    if _TELLING.search(name):
        return f"{start}/{places.get('path', parent, 'path-{}')}/{name}"
    return f"{start}/{places.get('path', path, 'path-{}')}"


def _hosts(text: str) -> Iterator[str]:
    for pattern in _HOSTS:
        yield from pattern.findall(text)


def _without_names(text: str, names: Iterable[str], place: Callable[[str], str]) -> str:
    for name in _longest_first(names):
        is_common = len(name) < _LEAST_LENGTH or name.lower() in _EVERYBODY
        # A help text's DIST_INIT_ADDR stands where a name could: no host has an underscore.
        if is_common or name.startswith("host-") or (name.isupper() and "_" in name):
            continue
        whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        if whole.search(text):
            text = whole.sub(place(name), text)
    return text


def _ipv4(found: re.Match[str], places: _Placeholders) -> str:
    address = found.group()
    before = found.string[max(0, found.start() - 16) : found.start()]
    is_address = all(int(part) < 256 for part in address.split("."))  # noqa: PLR2004 - an octet
    if not is_address or address.startswith(_PUBLIC_IPV4) or _VERSION_BEFORE.search(before):
        return address
    return places.get("address", address, "192.0.2.{}")


def _ipv6(address: str, places: _Placeholders) -> str:
    groups = [group for group in address.split(":") if group]
    # 12:30:01 is a time of day.
    if address == "::1" or ("::" not in address and len(groups) != _IPV6_GROUPS):
        return address
    return places.get("address", address, "2001:db8::{}")
