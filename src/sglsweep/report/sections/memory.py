"""Memory: the arithmetic of `mem-fraction-static`, predicted beside measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.plan.memory import MARGIN_GB, Side, side_of
from sglsweep.report.document import Block, Code, Heading, Line, Paragraph, Table
from sglsweep.report.memory import MemoryRow, memory_rows
from sglsweep.report.numbers import count, gib, plural

if TYPE_CHECKING:
    from sglsweep.report.view import RunView

_SHOWN = 16


def memory(run: RunView) -> list[Block]:
    """Return a row for each attempt that tells its memory: bounds, pool, tokens, what was left."""
    rows = memory_rows(run.outcomes)
    if not rows:
        return []
    columns = [c for c in _COLUMNS if any(c[1](row) != "-" for row in rows)]
    shown = rows[-_SHOWN:]
    table = Table(
        ("#", *(head for head, _ in columns)),
        tuple(
            ((str(row.outcome.attempt.number),), *((cell(row),) for _, cell in columns))
            for row in shown
        ),
    )
    notes: list[Line] = [(_legend(rows),)]
    if len(rows) > len(shown):
        left_out = plural(len(rows) - len(shown), "earlier attempt")
        notes.append((f"{left_out} not shown; ", Code("findings.json"), " has all."))
    return [Heading(2, ("Memory",)), table, *(Paragraph(note) for note in notes)]


def _fraction(row: MemoryRow) -> str:
    return f"{round(row.memory.fraction, 4):g}"


def _weights(row: MemoryRow) -> str:
    return f"{gib(row.memory.before_weights_gb)} / {gib(row.memory.after_weights_gb)}"


def _smallest(row: MemoryRow) -> str:
    said = f", SGLang says {row.said_smallest:.3f}" if row.said_smallest is not None else ""
    return f"{row.memory.smallest:.3f}{said}" if row.memory.smallest is not None else "-"


def _largest(row: MemoryRow) -> str:
    if row.memory.is_capped:
        return "pool set by max-total-tokens"
    largest = row.memory.largest()
    if largest is not None:
        return f"{largest:.3f}"
    is_high = side_of(row.outcome) is Side.TOO_HIGH
    return f"below {_fraction(row)}" if is_high else "-"


def _pool(row: MemoryRow) -> str:
    return _beside(gib(row.own_pool_gb), gib(row.memory.pool_gb))


def _tokens(row: MemoryRow) -> str:
    predicted = row.predicted.tokens if row.predicted else None
    return _beside(_whole(predicted), _whole(row.memory.pool_tokens))


def _left(row: MemoryRow) -> str:
    predicted = row.predicted.left_gb if row.predicted else None
    return _beside(gib(predicted), gib(row.memory.after_graphs_gb))


def _source(row: MemoryRow) -> str:
    return str(row.predicted.source) if row.predicted else "-"


def _binding(row: MemoryRow) -> str:
    words = [f"{rank} ({what})" for what, rank in row.binding.items()]
    return ", ".join(words) or "-"


def _whole(value: int | None) -> str:
    return "-" if value is None else count(value)


def _beside(predicted: str, measured: str) -> str:
    return "-" if predicted == measured == "-" else f"{predicted} / {measured}"


_COLUMNS = (
    ("fraction", _fraction),
    ("free before / after weights", _weights),
    ("f_min", _smallest),
    ("f_max", _largest),
    ("KV pool, by arithmetic / measured", _pool),
    ("KV tokens, predicted / measured", _tokens),
    ("left after capture, predicted / measured", _left),
    ("predicted from", _source),
    ("rank that binds", _binding),
)


def _legend(rows: tuple[MemoryRow, ...]) -> str:
    ranks = _ranks(rows)
    return (
        f"GB as SGLang prints them (2^30 bytes), the worst rank's{ranks}. f_min: at or below it "
        f"the weights leave no KV pool. f_max: leaves {MARGIN_GB:g} GB after graph capture for "
        "what a prefill needs; a start, not a promise: the proof's load tells. By arithmetic: "
        "after weights - before weights x (1 - fraction). Predicted: by the figures of an earlier "
        "attempt with the same weights and KV cache, which found the card as free."
    )


def _ranks(rows: tuple[MemoryRow, ...]) -> str:
    """Say so where all ranks of all attempts are even, so that no rank needs to be named."""
    has_ranks = any("/" in name for row in rows for name in row.outcome.diagnosis.metrics)
    return "; ranks are even" if has_ranks and not any(row.binding for row in rows) else ""
