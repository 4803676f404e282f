"""Which of several cells is ready soonest: for choosing between cells that are as likely to serve.

By what this run's own attempts took with each value; where they do not tell, by the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sglsweep.flags import canonical
from sglsweep.matrix import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from sglsweep.catalogue.startup import StartUp
    from sglsweep.matrix import Value
    from sglsweep.plan.strategy import Evidence
    from sglsweep.plan.table import Codes, Table

WORTH_S = 5.0
"""A difference below this is noise."""


def seconds(
    table: Table, codes: Codes, known: Sequence[Evidence], published: Sequence[StartUp]
) -> NDArray[np.float64]:
    """Return for each row how much later than others it is expected to be ready, in seconds."""
    ready = [entry for entry in known if entry.is_own and entry.ready_s is not None]
    took = np.asarray([entry.ready_s for entry in ready], dtype=np.float64)
    seen = table.encode(entry.cell for entry in ready)
    total = np.zeros(len(codes))
    for axis, name in enumerate(table.names):
        told = _published(name, table.values[axis], published)
        for code in np.unique(codes[:, axis]):
            total[codes[:, axis] == code] += _of_value(seen[:, axis], took, int(code), told)
    return total


def _of_value(
    seen: Codes, took: NDArray[np.float64], code: int, published: Mapping[int, float]
) -> float:
    """Return what a value adds: by attempts with it and attempts without, if there are both."""
    with_it = seen == code
    if with_it.any() and not with_it.all():
        apart = float(took[with_it].mean() - took[~with_it].mean())
        few = min(int(with_it.sum()), int((~with_it).sum()))
        return apart * few / (few + 1.0)
    return published.get(code, 0.0)


def _published(
    name: str, values: Sequence[Value], published: Sequence[StartUp]
) -> dict[int, float]:
    return {
        code: entry.seconds
        for entry in published
        if canonical(entry.flag) == canonical(name)
        for code, value in enumerate(values)
        if spell(value) == spell(entry.value)
    }
