"""A launch as a service of docker compose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from sglsweep.export.deployment import SECRET, VISIBLE
from sglsweep.export.shell import comments

if TYPE_CHECKING:
    from sglsweep.export.deployment import Deployment

_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?\Z")
_CACHE = "/root/.cache/huggingface"
_LEAST_START_S = 600
_HEALTH = (
    "import urllib.request; "
    "urllib.request.urlopen('http://127.0.0.1:{port}/health_generate', timeout=25)"
)


def compose(deployment: Deployment) -> str:
    """Return a compose file with one service; its port is open to this machine alone."""
    document = {"services": {"sglang": _service(deployment)}}
    written = yaml.dump(_quoted(document), Dumper=_Dumper, sort_keys=False, width=10_000)
    notes = comments((*deployment.notes, *_hints(deployment)))
    return "\n".join([*notes, written])


class _Quoted(str):
    """A value that is a text whatever it looks like."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes values between quotes, and names without."""


_Dumper.add_representer(
    _Quoted,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'),
)


def _quoted(value: object) -> object:
    if isinstance(value, dict):
        return {name: _quoted(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_quoted(inner) for inner in value]
    return _Quoted(value)


def _service(deployment: Deployment) -> dict[str, object]:
    port = str(deployment.port)
    place = ("--host", "0.0.0.0", "--port", port)  # noqa: S104 - inside the container
    env = {name: _text(v) for name, v in deployment.env.items() if name != VISIBLE}
    service: dict[str, object] = {
        "image": f"lmsysorg/sglang:{_tag(deployment.version)}",
        "command": [_text(word) for word in ("python3", *deployment.words, *place)],
        "environment": env,
        "ports": [f"127.0.0.1:{port}:{port}"],
        "volumes": _volumes(deployment),
        "ipc": "host",
        "shm_size": "32g",
        "ulimits": {"memlock": "-1", "stack": "67108864"},
        "restart": "unless-stopped" if deployment.is_serving else "no",
        "deploy": _gpus(deployment),
        "healthcheck": _health(deployment),
    }
    return {name: value for name, value in service.items() if value}


def _tag(version: str) -> str:
    return f"v{version}" if _RELEASE.match(version) else "latest"


def _text(text: str) -> str:
    """Write a text for compose: a secret is demanded, any other dollar is only a dollar."""
    pieces, end = [], 0
    for found in SECRET.finditer(text):
        pieces.append(text[end : found.start()].replace("$", "$$"))
        pieces.append(f"${{{found[1]}:?set it before you start this}}")
        end = found.end()
    return "".join([*pieces, text[end:].replace("$", "$$")])


def _volumes(deployment: Deployment) -> list[str]:
    cache = [f"${{HOME}}/.cache/huggingface:{_CACHE}"] if deployment.is_from_hub else []
    absolute = [path for path in deployment.paths if path.startswith("/")]
    return cache + [f"{_text(path)}:{_text(path)}:ro" for path in absolute]


def _gpus(deployment: Deployment) -> dict[str, object]:
    if deployment.gpus == 0:
        return {}
    device: dict[str, object] = {"driver": "nvidia", "capabilities": ["gpu"]}
    visible = deployment.env.get(VISIBLE, "")
    if visible:
        device["device_ids"] = visible.split(",")
    else:
        device["count"] = str(deployment.gpus)
    return {"resources": {"reservations": {"devices": [device]}}}


def _health(deployment: Deployment) -> dict[str, object]:
    """Ask for a token now and then; a slow start is no illness."""
    start = max(_LEAST_START_S, round(2 * (deployment.ready_s or 0)))
    return {
        "test": ["CMD", "python3", "-c", _HEALTH.format(port=deployment.port)],
        "interval": "60s",
        "timeout": "30s",
        "retries": "3",
        "start_period": f"{start}s",
    }


def _hints(deployment: Deployment) -> list[str]:
    hints = []
    if _tag(deployment.version) == "latest":
        known = deployment.version or "not known"
        hints.append(f"The version ({known}) has no image of that name: pick the tag yourself.")
    hints.append("The image's packages may differ from those above: prove it again there.")
    hints += [
        f"Not mounted, since it is no absolute path: {path}"
        for path in deployment.paths
        if not path.startswith("/")
    ]
    if deployment.gpus == 0:
        hints.append("It ran on the CPU: the image must be one that was built for it.")
    if deployment.nodes > 1:
        hints.append(f"One of {deployment.nodes} nodes: compose starts this one alone.")
    return hints
