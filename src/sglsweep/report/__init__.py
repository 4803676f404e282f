"""History to sections to Markdown, HTML, JSON and bug reports.

Everything but `write` is pure: a `RunView` in, text out.
"""

from sglsweep.report.view import RunView, view_of
from sglsweep.report.write import write

__all__ = ["RunView", "view_of", "write"]
