"""The findings as one self-contained page: no script, nothing loaded from anywhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, assert_never

from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Inline,
    Line,
    Link,
    Listing,
    Paragraph,
    Strong,
    Table,
    clean,
    plain,
)
from sglsweep.report.findings import SECTIONS
from sglsweep.report.picture import SHORT, picture, rows_left_out
from sglsweep.report.sections.bottom import bottom_line
from sglsweep.report.view import is_doubtful
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from sglsweep.report.view import RunView

_HUES = {
    Verdict.SERVING: 145,
    Verdict.GRAPH_CAPTURE_OK: 175,
    Verdict.OOM: 28,
    Verdict.NAN_IN_PROBS: 285,
    Verdict.DEVICE_ASSERT: 315,
    Verdict.CUDA_FAULT: 340,
    Verdict.KERNEL_UNSUPPORTED: 225,
    Verdict.BAD_CONFIG: 205,
    Verdict.LOAD_ERROR: 50,
    Verdict.ENV_ERROR: 75,
    Verdict.COLLECTIVE_ERROR: 255,
    Verdict.HANG: 190,
    Verdict.GARBAGE_OUTPUT: 300,
    Verdict.CRASH: 5,
}
"""Angle of the colour circle; verdicts without one are grey: they are no evidence."""

_CSS = """
:root {
  color-scheme: light dark;
  --ink: #1c2330; --dim: #5c6675; --paper: #fff; --line: #d5dae1; --panel: #f4f6f8;
  --fill-s: 60%; --fill-l: 88%; --word-l: 22%; --link: #0b5cad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ee; --dim: #9aa5b4; --paper: #14181f; --line: #353d49; --panel: #1d232c;
    --fill-s: 34%; --fill-l: 25%; --word-l: 86%; --link: #7db8f5;
  }
}
body {
  margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 62rem;
  background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 {
  margin: 2.2rem 0 .6rem; padding-bottom: .2rem; font-size: 1.2rem;
  border-bottom: 1px solid var(--line);
}
h3 { margin: 1.4rem 0 .4rem; font-size: 1rem; }
a { color: var(--link); }
li { margin: .2rem 0; overflow-wrap: anywhere; }
code {
  font: .88em ui-monospace, Menlo, Consolas, monospace; background: var(--panel);
  padding: .08em .3em; border-radius: 3px;
}
pre {
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .8rem 1rem; overflow-x: auto;
}
pre code { background: none; padding: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93em; }
.many { min-width: 46rem; }
th, td {
  border: 1px solid var(--line); padding: .3rem .55rem; text-align: left; vertical-align: top;
}
th { background: var(--panel); min-width: 3.5em; vertical-align: bottom; }
.matrix text { fill: var(--ink); font: 11px ui-monospace, Menlo, Consolas, monospace; }
.matrix .axis { fill: var(--dim); font-weight: 600; }
.matrix .end { text-anchor: end; }
.matrix .word { text-anchor: middle; font-weight: 700; }
.matrix .number { text-anchor: middle; }
.matrix rect { stroke: var(--line); fill: var(--panel); }
.matrix .untried { fill: none; stroke-dasharray: 3 3; }
.legend { color: var(--dim); font-size: .9em; }
"""


def page(run: RunView) -> str:
    """Return the whole page."""
    body: list[str] = []
    for section in SECTIONS:
        body += [block_html(block) for block in section(run)]
        if section is bottom_line:
            body.append(_matrix(run))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(clean(run.name))}: findings</title>\n"
        f"<style>{_CSS}{_colours()}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


def _colours() -> str:
    rules = [
        f".v-{verdict.value} rect {{ fill: hsl({hue} var(--fill-s) var(--fill-l)); }} "
        f".v-{verdict.value} text.word, .v-{verdict.value} text.number "
        f"{{ fill: hsl({hue} 60% var(--word-l)); }}"
        for verdict, hue in _HUES.items()
    ]
    strong = f".v-{Verdict.SERVING.value} rect {{ stroke: hsl(145 60% 40%); stroke-width: 2; }}"
    return "\n".join([*rules, strong])


def _matrix(run: RunView) -> str:
    drawn = picture(run)
    if not drawn:
        return ""
    rest = rows_left_out(run)
    words = [
        "Numbers are attempts.",
        "Dashed: not launched.",
        "-: not passed.",
        "±: not the same each time." if any(run.is_flaky(o) for o in run.outcomes) else "",
        "?: most answers suspect." if any(is_doubtful(o) for o in run.serving) else "",
        _legend(run),
        "Axes on which nothing varied are left out.",
        f"{rest} more rows are not drawn." if rest else "",
    ]
    legend = escape(" ".join(word for word in words if word))
    return f'<h2>The matrix</h2>\n<div class="wide">{drawn}</div>\n<p class="legend">{legend}</p>'


def _legend(run: RunView) -> str:
    """Explain the short words that do not explain themselves."""
    seen = dict.fromkeys(o.verdict for o in run.outcomes if o.verdict is not Verdict.SERVING)
    said = [f"{SHORT[v]} = {v.value}" for v in seen if not v.value.startswith(SHORT[v].lower())]
    return f"{', '.join(said)}." if said else ""


def block_html(block: Block) -> str:
    """Return one block; the only places where text becomes markup are here and `_inline`."""
    match block:
        case Heading():
            return f"<h{block.level}>{_line(block.line)}</h{block.level}>"
        case Paragraph():
            return f"<p>{_line(block.line)}</p>"
        case Bullets():
            items = "".join(f"<li>{_line(item)}</li>\n" for item in block.items)
            return f"<ul>\n{items}</ul>"
        case Table():
            return _table(block)
        case Listing():
            text = "\n".join(clean(line) for line in block.text.split("\n"))
            return f"<pre><code>{escape(text)}</code></pre>"
        case _:
            assert_never(block)


_MANY = 6


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in table.head)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{_line(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    # On a telephone a table of many columns scrolls in itself rather than break every word.
    many = ' class="many"' if len(table.head) >= _MANY else ""
    return f'<div class="wide"><table{many}>\n<tr>{head}</tr>\n{rows}\n</table></div>'


def _line(line: Line) -> str:
    return "".join(_inline(part) for part in line)


def _inline(part: Inline) -> str:
    text = escape(clean(plain((part,))))
    match part:
        case str():
            return text
        case Code():
            return f"<code>{text}</code>"
        case Strong():
            return f"<strong>{text}</strong>"
        case Link():
            # Anything but the web ("javascript:") stays text.
            is_web = part.url.startswith(("https://", "http://"))
            return f'<a href="{escape(clean(part.url))}">{text}</a>' if is_web else text
        case _:
            assert_never(part)
