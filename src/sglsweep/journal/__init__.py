"""The folder of a run: every attempt as one JSON file and one raw log.

Survives kill -9 at any moment: an attempt's record is written before anything starts and again
when it is closed, each time by rename. `Journal.history()` is all that a resume needs.
"""

from sglsweep.journal.find import find_run
from sglsweep.journal.identity import RunIdentity
from sglsweep.journal.run import Journal

__all__ = ["Journal", "RunIdentity", "find_run"]
