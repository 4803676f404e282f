"""History to sections to Markdown, HTML, JSON and bug reports.

Everything but `write` and `replace_file` is pure: a `RunView` in, text out.
"""

from sglsweep.report.brief import brief
from sglsweep.report.html import page
from sglsweep.report.issue import issue
from sglsweep.report.record import findings_json
from sglsweep.report.view import RunView, view_of
from sglsweep.report.write import replace_file, write

__all__ = [
    "RunView",
    "brief",
    "findings_json",
    "issue",
    "page",
    "replace_file",
    "view_of",
    "write",
]
