"""The matrix as a picture: an SVG that needs nothing from outside and reads on light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sglsweep.report.document import clean, one_line
from sglsweep.report.grid import Grid, fold
from sglsweep.report.launches import value_text
from sglsweep.report.view import is_doubtful, is_evidence
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.attempt import Outcome
    from sglsweep.matrix import Axis, Value
    from sglsweep.report.view import RunView

_CELL_W, _CELL_H, _GAP = 74, 34, 4
_LINE_H = 18
_CHARACTER = 6.7
_LABEL_MOST = 24
_ROWS_SHOWN = 80

SHORT = {
    Verdict.SERVING: "serves",
    Verdict.GRAPH_CAPTURE_OK: "captured",
    Verdict.INCOMPLETE: "no end",
    Verdict.OOM: "OOM",
    Verdict.NAN_IN_PROBS: "NaN",
    Verdict.DEVICE_ASSERT: "assert",
    Verdict.CUDA_FAULT: "CUDA",
    Verdict.KERNEL_UNSUPPORTED: "kernel",
    Verdict.BAD_CONFIG: "config",
    Verdict.LOAD_ERROR: "load",
    Verdict.ENV_ERROR: "env",
    Verdict.COLLECTIVE_ERROR: "NCCL",
    Verdict.HANG: "hang",
    Verdict.KILLED: "killed",
    Verdict.GARBAGE_OUTPUT: "garbage",
    Verdict.CRASH: "crash",
    Verdict.HOST_LOST: "host",
    Verdict.INTERRUPTED: "stopped",
}
"""What a square says; the colour alone says nothing to one reader in twelve."""


def picture(run: RunView) -> str:
    """Return the SVG element, "" where there is nothing to draw."""
    grid = fold(run)
    if grid is None:
        return ""
    left = _widths(grid)
    top = (len(grid.column_axes) + 1) * _LINE_H + 6
    rows = grid.rows[:_ROWS_SHOWN]
    # The name of a column axis stands left of its values and may be wider than they are.
    start = max(sum(left), max((_width(a.name) for a in grid.column_axes), default=0.0)) + 8
    width = start + len(grid.columns) * (_CELL_W + _GAP) + 4
    height = top + len(rows) * (_CELL_H + _GAP) + 4
    parts = [
        f'<svg class="matrix" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(_spoken(run))}">',
        *_column_heads(grid, start),
        *_row_heads(grid, left, top, len(rows)),
        *_squares(run, grid, (start, top), len(rows)),
        "</svg>",
    ]
    return "\n".join(parts)


def rows_left_out(run: RunView) -> int:
    """Return how many rows the picture does not show."""
    grid = fold(run)
    return max(0, len(grid.rows) - _ROWS_SHOWN) if grid else 0


def _spoken(run: RunView) -> str:
    return f"matrix: {len(run.serving)} attempts serve, {len(run.failing)} fail"


def _label(value: Value) -> str:
    return "-" if value is None else value_text(value)


def _kind(value: Value) -> str:
    return "axis" if value is None else "value"


def _width(text: str) -> float:
    return len(_short(text)) * _CHARACTER + 14


def _short(text: str) -> str:
    flat = one_line(text)
    if len(flat) <= _LABEL_MOST:
        return flat
    return "…" + flat[-(_LABEL_MOST - 1) :]


def _widths(grid: Grid) -> list[float]:
    return [
        max(_width(axis.name), *(_width(_label(row[index])) for row in grid.rows))
        for index, axis in enumerate(grid.row_axes)
    ]


def _text(x: float, y: float, text: str, kind: str) -> str:
    full = f"<title>{escape(one_line(text))}</title>" if _short(text) != text else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(_short(text))}{full}</text>'


def _column_heads(grid: Grid, start: float) -> list[str]:
    parts: list[str] = []
    for index, axis in enumerate(grid.column_axes):
        y = (index + 1) * _LINE_H - 4
        parts.append(_text(start - 8, y, axis.name, "axis end"))
        parts += _column_values(grid, axis, index, (start, y))
    return parts


def _column_values(grid: Grid, axis: Axis, index: int, place: tuple[float, float]) -> list[str]:
    """Write each value once over the neighbours that share it."""
    start, y = place
    parts: list[str] = []
    before: tuple[Value, ...] | None = None
    for number, column in enumerate(grid.columns):
        if before is None or column[: index + 1] != before[: index + 1]:
            x = start + number * (_CELL_W + _GAP)
            text = _label(column[index])
            parts.append(_clipped(x, y, text, axis.name))
        before = column
    return parts


def _clipped(x: float, y: float, text: str, axis: str) -> str:
    most = int(_CELL_W / _CHARACTER)
    flat = one_line(text)
    shown = flat if len(flat) <= most else "…" + flat[-(most - 1) :]
    title = f"<title>{escape(f'{axis}: {flat}')}</title>"
    return f'<text x="{x:.0f}" y="{y:.0f}" class="value">{escape(shown)}{title}</text>'


def _row_heads(grid: Grid, widths: Sequence[float], top: float, rows: int) -> list[str]:
    parts: list[str] = []
    x = 2.0
    for index, (axis, width) in enumerate(zip(grid.row_axes, widths, strict=True)):
        parts.append(_text(x, top - 8, axis.name, "axis"))
        before: tuple[Value, ...] | None = None
        for number, row in enumerate(grid.rows[:rows]):
            if before is None or row[: index + 1] != before[: index + 1]:
                y = top + number * (_CELL_H + _GAP) + _CELL_H / 2 + 4
                parts.append(_text(x, y, _label(row[index]), _kind(row[index])))
            before = row
        x += width
    return parts


def _squares(run: RunView, grid: Grid, place: tuple[float, float], rows: int) -> list[str]:
    start, top = place
    parts: list[str] = []
    for row in range(rows):
        for column in range(len(grid.columns)):
            x, y = start + column * (_CELL_W + _GAP), top + row * (_CELL_H + _GAP)
            parts.append(_square(run, grid.squares.get((row, column), ()), x, y))
    return parts


def _square(run: RunView, found: tuple[Outcome, ...], x: float, y: float) -> str:
    box = f'x="{x:.0f}" y="{y:.0f}" width="{_CELL_W}" height="{_CELL_H}" rx="5"'
    if not found:
        return f'<rect {box} class="untried"><title>not launched</title></rect>'
    telling = [o for o in found if is_evidence(o)] or list(found)
    last = telling[-1]
    mark = " ±" if run.is_flaky(last) else " ?" if is_doubtful(last) else ""
    numbers = ", ".join(str(o.attempt.number) for o in found)
    tip = "\n".join(clean(_tip(o)) for o in found)
    middle = x + _CELL_W / 2
    return (
        f'<g class="v-{last.verdict.value}"><title>{escape(tip)}</title><rect {box}/>'
        f'<text x="{middle:.0f}" y="{y + 15:.0f}" class="word">{SHORT[last.verdict]}{mark}</text>'
        f'<text x="{middle:.0f}" y="{y + 28:.0f}" class="number">{numbers}</text></g>'
    )


def _tip(outcome: Outcome) -> str:
    diagnosis = outcome.diagnosis
    cause = f" ({diagnosis.cause})" if diagnosis.cause else ""
    said = one_line(diagnosis.evidence, limit=160)
    head = f"{outcome.attempt.number}: {diagnosis.verdict.value}{cause} in {diagnosis.phase.value}"
    return f"{head}\n{said}" if said else head
