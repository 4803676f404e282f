"""What makes two sweeps the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """A run's name, and what may not change while it goes on.

    Attributes:
        model: with its revision, as it is launched.
        launch: what stands under `launch` once scripts are read: {"flags": {}, "env": {}}; JSON.
        sweep_text: SWEEP.yaml as the user wrote it; may change (a larger matrix, another budget).
    """

    name: str
    model: str
    launch: Mapping[str, object] = field(default_factory=dict)
    sweep_text: str = ""
    host: str = ""
    catalogue: str = ""

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits over model and launch; the order of flags does not matter."""
        text = json.dumps([self.model, self.launch], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(stored: Mapping[str, object], identity: RunIdentity) -> tuple[str, ...]:
    """Say what a resumed run would change: "model: a -> b", "flags.tp: 8 -> 4"."""
    old = {"model": stored.get("model"), **_flat(stored.get("launch"))}
    new = {"model": identity.model, **_flat(json.loads(json.dumps(identity.launch)))}
    names = sorted({*old, *new})
    return tuple(
        f"{name}: {_shown(old, name)} -> {_shown(new, name)}"
        for name in names
        if _shown(old, name) != _shown(new, name)
    )


def _flat(launch: object) -> dict[str, object]:
    if not isinstance(launch, Mapping):
        return {}
    flat: dict[str, object] = {}
    for part, content in launch.items():
        if isinstance(content, Mapping):
            flat.update({f"{part}.{name}": value for name, value in content.items()})
        else:
            flat[str(part)] = content
    return flat


def _shown(values: Mapping[str, object], name: str) -> str:
    return json.dumps(values[name]) if name in values else "absent"
