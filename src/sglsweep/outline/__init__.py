"""What a sweep would do, for `plan`: cells, reasons, estimates, first decisions."""

from sglsweep.outline.data import outline_json
from sglsweep.outline.estimate import AtFraction, MemoryEstimate, TimeEstimate
from sglsweep.outline.outline import Counted, Covering, Outline, outline

__all__ = [
    "AtFraction",
    "Counted",
    "Covering",
    "MemoryEstimate",
    "Outline",
    "TimeEstimate",
    "outline",
    "outline_json",
]
