"""It served yesterday, it fails today: what is different on the host, likeliest first."""

from sglsweep.changed.compare import differences, unknown
from sglsweep.changed.difference import Difference, Kind
from sglsweep.changed.likely import Ranked, ranked
from sglsweep.changed.pair import Pair, pair_now, pair_of
from sglsweep.changed.today import facts_today

__all__ = [
    "Difference",
    "Kind",
    "Pair",
    "Ranked",
    "differences",
    "facts_today",
    "pair_now",
    "pair_of",
    "ranked",
    "unknown",
]
