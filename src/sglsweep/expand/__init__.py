"""From a sweep to its cells: product, links, excludes, includes, and what no build would take."""

from sglsweep.expand.expand import Excluded, ExcludedCells, Expanded, expand
from sglsweep.expand.refusals import refused_setting

__all__ = ["Excluded", "ExcludedCells", "Expanded", "expand", "refused_setting"]
