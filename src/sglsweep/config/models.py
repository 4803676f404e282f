"""Models: Hugging Face ids and folders, as the file names them and as a launch wants them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sglsweep.config.document import Document
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.config.schema import ModelEntry, SweepEntry
from sglsweep.config.script import Script
from sglsweep.matrix import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a launch serves.

    Attributes:
        name: as the file writes it; how cells and reports call it.
        target: for `--model-path`: an id, or a path on the host; nothing there expands `~/`, so
            whoever launches does.
        revision: a commit, branch or tag; None = whatever is newest.
        pin: the resolved commit is to be written into the run.
        offline: nothing may be downloaded.
    """

    name: str
    target: str
    revision: str | None = None
    pin: bool = False
    offline: bool = False


def read_models(
    document: Document, entry: SweepEntry, axes: tuple[Axis, ...], script: Script
) -> tuple[Model, Mapping[str, Model]]:
    """Return the model of the sweep, and all models by name.

    Raises:
        ConfigError: none is named, or one in two ways.
    """
    named = next((axis.values for axis in axes if axis.name == "model"), ())
    named = (*named, *(c["model"] for c in entry.include if isinstance(c.get("model"), str)))
    own = entry.model.id or entry.model.path or script.model
    first = own or next((str(value) for value in named), None)
    refuse(_mistakes(document, entry.model, first))
    assert first is not None  # noqa: S101 - refuse() above ends the call where it is
    model = _model(document, entry, first)
    others = {str(name): _model(document, entry, str(name)) for name in named}
    return model, {**others, model.name: model}


def _mistakes(document: Document, model: ModelEntry, first: str | None) -> list[Mistake]:
    where = document.where(("model",))
    if model.id and model.path:
        return [Mistake(where=where, what="model has both id and path", instead="Keep one.")]
    if first is None:
        return [Mistake(where=where, what="no model is named", instead="Add `model: ID or path`.")]
    return []


def _model(document: Document, entry: SweepEntry, name: str) -> Model:
    is_default = name in {entry.model.id, entry.model.path}
    revision = entry.model.revision if is_default else None
    return Model(
        name=name,
        target=_target(name, document.path.parent, is_local=entry.host == "local"),
        revision=None if revision == "pin" else revision,
        pin=revision == "pin",
        offline=entry.model.offline,
    )


def _target(name: str, folder: Path, *, is_local: bool) -> str:
    """Make a folder that lies beside the sweep's file absolute; an id stays an id."""
    if not is_local:
        return name
    try:
        path = Path(name).expanduser()
        beside = folder.absolute() / path
        if name.startswith(("~", "./", "../", "/")) or beside.exists():
            return str(beside.resolve() if beside.exists() else beside)
    except (OSError, RuntimeError, ValueError):
        return name
    return name
