"""`${NAME}` in a file: read from the environment now, kept as `${NAME}` everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sglsweep.config.document import Document, Loc
from sglsweep.config.mistakes import Mistake, refuse
from sglsweep.flags import nearest


def read_secrets(
    document: Document, *, under: Loc = (), environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the values of the names that a file refers to.

    Args:
        document: the file.
        under: only names that stand below this place.
        environ: instead of this process's own.

    Raises:
        ConfigError: a name is not set or empty; with the line that wants it.
    """
    known = os.environ if environ is None else environ
    wanted = {name: loc for name, loc in document.references.items() if loc[: len(under)] == under}
    refuse(
        missing(name, document.where(loc), known)
        for name, loc in wanted.items()
        if not known.get(name)
    )
    return {name: known[name] for name in wanted}


def missing(name: str, where: str, known: Iterable[str]) -> Mistake:
    """Say that an environment variable is not set."""
    near = nearest(name, known, count=1, cutoff=0.8)
    hint = f" (is ${{{near[0]}}} meant?)" if near else ""
    return Mistake(
        where=where,
        what=f"${{{name}}} is not set in the environment",
        instead=f"Run `export {name}=...` first{hint}.",
    )
