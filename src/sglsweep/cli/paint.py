"""Paints a scene for a terminal of any size: lines of text, none wider, not one too many."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from sglsweep.attempt import StepState
from sglsweep.cli.lines import describe
from sglsweep.cli.scene import difference
from sglsweep.report.document import clean
from sglsweep.verdict import Phase, Verdict
from sglsweep.watch import span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sglsweep.attempt import Attempt, Outcome, ProofStep
    from sglsweep.cli.scene import Running, Scene
    from sglsweep.events import Progress

_LABEL = 9
# Right to left and invisible characters: a log line must not rearrange the screen.
_UNSEEN = dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF], ""
)
_STALE_S = 3.0
_MOST_LINES = 2
_ROOMY = 20
_NARROW, _NARROWER = 64, 40
_LEAST_WHAT = 30


@dataclass(frozen=True, slots=True)
class Paper:
    """What is painted on: columns and rows, and whether its encoding has only ASCII."""

    width: int
    height: int
    is_ascii: bool = False

    def line(self, text: str, style: str = "") -> Text:
        """Return one line of at most the width, without anything that moves a cursor."""
        return self.fit(Text(flat(text, is_ascii=self.is_ascii), style=style))

    def fit(self, line: Text) -> Text:
        """Cut a line to the width."""
        self.cut(line, max(self.width, 1))
        return line

    def cut(self, line: Text, width: int) -> None:
        """Cut a piece of a line to its share of the width."""
        line.truncate(width, overflow="crop" if self.is_ascii else "ellipsis")


class _Line(NamedTuple):
    """A line and what it is worth when there is no room: the least goes first."""

    worth: int
    text: Text


def flat(text: str, *, is_ascii: bool = False) -> str:
    """Return text on one line without control characters, colour codes, or direction marks."""
    seen = " ".join(clean(text).translate(_UNSEEN).split())
    return seen.encode("ascii", "replace").decode() if is_ascii else seen


def paint(scene: Scene, paper: Paper, now: float) -> list[Text]:
    """Return the screen, at most `paper.height` lines."""
    head = [_header(scene, paper, now)]
    foot = _footer(scene, paper)
    room = max(paper.height - len(head) - len(foot), 0)
    table_room = min(len(scene.outcomes) + 1, room // 3) if scene.outcomes else 0
    body = _fitting(_running(scene, paper, now), room - table_room)
    rows = table(scene.outcomes, paper, room - len(body)) if scene.outcomes else []
    gap = [Text()] * max(min(room - len(body) - len(rows), 1), 0)
    return [*head, *body, *gap, *rows, *foot][: paper.height]


def _fitting(lines: Sequence[_Line], room: int) -> list[Text]:
    """Return the lines worth most, in their order."""
    kept = sorted(range(len(lines)), key=lambda at: -lines[at].worth)[: max(room, 0)]
    return [lines[at].text for at in sorted(kept)]


def _header(scene: Scene, paper: Paper, now: float) -> Text:
    found = scene.serving
    serving = (
        f"{_numbers(found)} serve{'s' if len(found) == 1 else ''}" if found else "none serves"
    )
    count = f"{len(scene.outcomes)} finished" if scene.outcomes else ""
    limit = f" of at most {scene.most}" if scene.most is not None else ""
    words = [
        f"sglsweep {scene.title} on {scene.host}",
        span(max(now - scene.began_at, 0.0)),
        f"{count}{limit}, {serving}" if count else "",
        f"goal {scene.goal}" if scene.goal else "",
    ]
    line = paper.line(_dotted(words, paper), "bold reverse")
    line.align("left", paper.width)
    return line


def _numbers(found: Sequence[int]) -> str:
    most = 6
    shown = ", ".join(map(str, found[:most]))
    return shown + (f" and {len(found) - most} more" if len(found) > most else "")


def _dotted(words: Iterable[str], paper: Paper) -> str:
    return (" | " if paper.is_ascii else " · ").join(word for word in words if word)


def _footer(scene: Scene, paper: Paper) -> list[Text]:
    lines = [_labelled("note", scene.notes[-1], paper, "yellow")] if scene.notes else []
    if scene.next_text:
        lines += _wrapped("next", scene.next_text, paper)
    if scene.odds_text:
        lines.append(_labelled("odds", scene.odds_text, paper))
    if not lines or paper.height < _ROOMY:
        return lines[: max(paper.height // 6, 0)]
    return [Text(), *lines]


def _label(word: str) -> Text:
    return Text().append(f"{word[: _LABEL - 2]:>{_LABEL - 2}}  ", style="dim")


def _labelled(label: str, text: str, paper: Paper, style: str = "") -> Text:
    line = _label(label)
    line.append(flat(text, is_ascii=paper.is_ascii), style=style)
    return paper.fit(line)


def _wrapped(label: str, text: str, paper: Paper, style: str = "") -> Iterator[Text]:
    """Yield at most two lines, the label before the first."""
    width = max(paper.width - _LABEL, 8)
    more = " ..." if paper.is_ascii else " …"
    pieces = textwrap.wrap(
        flat(text, is_ascii=paper.is_ascii), width, max_lines=_MOST_LINES, placeholder=more
    )
    for at, piece in enumerate(pieces):
        yield _labelled(label if at == 0 else "", piece, paper, style)


# -- what runs -------------------------------------------------------------------------------


_BAR_UNTIL = {"weights": Phase.WEIGHTS_DONE, "capture": Phase.GRAPH_CAPTURE_DONE}


def _running(scene: Scene, paper: Paper, now: float) -> list[_Line]:
    """Return all about the attempt that runs; of several the same few lines each."""
    if not scene.running:
        words = "deciding what comes next" if scene.outcomes else "starting"
        return [_Line(9, paper.line(f"   {words}", "dim"))]
    members = [scene.running[number] for number in sorted(scene.running)]
    if len(members) == 1:
        return _attempt(members[0], scene.outcomes, paper, now)
    lines = [_Line(8, paper.line(f"{len(members)} attempts side by side", "bold cyan"))]
    for member in members:
        lines += _row_of(member, scene.outcomes, paper, now)
    return lines


def _row_of(
    one: Running, outcomes: Sequence[Outcome], paper: Paper, now: float
) -> Iterator[_Line]:
    """Yield where one attempt among several stands, what it is, and its last words."""
    progress, since = one.progress, max(now - one.told_at, 0.0)
    said, style = "launching", "bold"
    if progress is not None:
        said = _dotted(_in_short(progress, since, is_over=one.ending is not None), paper)
        is_near = one.ending is None and _is_near(progress, since)
        style = "yellow" if is_near else "bold"
    yield _Line(9, _labelled(f"#{one.attempt.number}", said, paper, style))
    what, said = _what(one.attempt, outcomes)
    yield _Line(5, _labelled("", f"{what} {said}", paper, "dim"))
    if one.ending is not None:
        yield next(_ending(one.ending, paper))
    elif one.steps:
        yield from list(_proof(one.steps, paper))[:1]
    elif progress is not None and progress.last_text:
        yield _Line(4, _labelled("log", progress.last_text, paper))


def _in_short(progress: Progress, since: float, *, is_over: bool) -> Iterator[str]:
    """Yield phase, time in all, and how near the watcher is to giving up."""
    phase = "" if progress.phase_s is None else f" for {span(progress.phase_s + since)}"
    yield f"{progress.phase.value}{phase}"
    yield f"{span(progress.elapsed_s + since)} in all"
    if is_over:
        return
    if since > _STALE_S:
        yield f"no answer from the host for {span(since)}"
    elif progress.silent_s is None:
        yield "being asked"
    else:
        limit = f" of {span(progress.limit_s)}" if progress.limit_s is not None else ""
        yield f"silent for {span(progress.silent_s + since)}{limit}"


def _attempt(one: Running, outcomes: Sequence[Outcome], paper: Paper, now: float) -> list[_Line]:
    attempt = one.attempt
    verb = "taken over" if one.is_adopted else "running"
    if one.ending is not None:
        verb = "being ended"
    head = _dotted(
        [f"attempt {attempt.number} {verb}", attempt.build, attempt.cell.short_key], paper
    )
    lines = [_Line(9, paper.line(head, "bold cyan"))]
    lines += _ranked((4, 2), _wrapped(*_what(attempt, outcomes), paper))
    lines += _ranked((3, 0), _wrapped("why", attempt.why, paper))
    lines += _progress(one, paper, now)
    lines += _proof(one.steps, paper)
    if one.ending is not None:
        lines += _ending(one.ending, paper)
    return lines


def _ranked(worth: tuple[int, int], lines: Iterable[Text]) -> Iterator[_Line]:
    for at, line in enumerate(lines):
        yield _Line(worth[min(at, 1)], line)


def _what(attempt: Attempt, outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return the label and the words for what this launch is."""
    number, changes = difference(attempt, outcomes)
    if not number:
        return "cell", describe(dict(attempt.cell.values))
    said = ", ".join(change.text for change in changes) or "nothing: the same launch again"
    return f"vs {number}", said


def _progress(one: Running, paper: Paper, now: float) -> Iterator[_Line]:
    progress = one.progress
    if progress is None:
        if one.ending is None:
            yield _Line(8, _labelled("phase", "launching", paper))
        return
    since = max(now - one.told_at, 0.0)
    yield _Line(8, _labelled("phase", _phase(progress, since, paper), paper, "bold"))
    if one.ending is None:
        yield _Line(7, _silence(progress, since, paper))
    yield from _bars(progress, paper)
    if progress.last_text:
        yield from _ranked((6, 1), _wrapped("log", progress.last_text, paper))


def _bars(progress: Progress, paper: Paper) -> Iterator[_Line]:
    for name, (done, total) in progress.bars.items():
        if progress.phase.order <= _BAR_UNTIL.get(name, Phase.DECODE).order:
            yield _Line(5, _bar(name, done, total, paper))
    through, begun = list(progress.ranks.values())[-1] if progress.ranks else (0, 0)
    if begun > 1 and progress.phase.order <= Phase.GRAPH_CAPTURE_DONE.order:
        said = f"{through} of {begun} through with {list(progress.ranks)[-1]}"
        yield _Line(1, _labelled("ranks", said, paper))


def _phase(progress: Progress, since: float, paper: Paper) -> str:
    words = [progress.phase.value]
    if progress.phase_s is not None:
        limit = f" of at most {span(progress.cap_s)}" if progress.cap_s is not None else ""
        words.append(f"for {span(progress.phase_s + since)}{limit}")
    words.append(f"{span(progress.elapsed_s + since)} in all")
    return _dotted(words, paper)


def _silence(progress: Progress, since: float, paper: Paper) -> Text:
    """Say how near the watcher is to giving up, and what keeps it from that."""
    if since > _STALE_S:
        return _labelled("sign", f"no answer from the host for {span(since)}", paper, "yellow")
    if progress.silent_s is None:
        return _labelled("sign", "ready: asking it", paper, "green")
    silent = progress.silent_s + since
    limit = f" of at most {span(progress.limit_s)}" if progress.limit_s is not None else ""
    last = f"last sign: {progress.sign}" if progress.sign else ""
    words = _dotted([f"silent for {span(silent)}{limit}", last], paper)
    return _labelled("sign", words, paper, "yellow" if _is_near(progress, since) else "")


def _is_near(progress: Progress, since: float) -> bool:
    """Tell whether half of the silence is over that ends the wait, or nobody answers."""
    if since > _STALE_S:
        return True
    silent = None if progress.silent_s is None else progress.silent_s + since
    return silent is not None and progress.limit_s is not None and silent > progress.limit_s / 2


def _bar(name: str, done: int, total: int, paper: Paper) -> Text:
    count = f" {done}/{total}"
    room = max(min(paper.width - _LABEL - len(count), 40), 0)
    full = min(room * done // total, room) if total > 0 else 0
    line = _label(name)
    line.append(("#" if paper.is_ascii else "█") * full, style="cyan")
    line.append(("." if paper.is_ascii else "░") * (room - full), style="dim")
    line.append(count)
    return paper.fit(line)


_STEP_STYLES = {StepState.OK: "green", StepState.FAILED: "red", StepState.SUSPECT: "yellow"}


def _proof(steps: Sequence[ProofStep], paper: Paper) -> Iterator[_Line]:
    """Yield the steps asked so far, and what the last of them said."""
    asked = [s for s in steps if s.state in _STEP_STYLES]
    if not asked:
        return
    line = _label("proof")
    passed = [s for s in asked if s.state is StepState.OK]
    line.append(f"{len(passed)} passed", style="green")
    for step in reversed(asked):
        line.append("  ")
        word = "" if step.state is StepState.OK else f" {step.state.value}"
        line.append(flat(step.name + word, is_ascii=paper.is_ascii), _STEP_STYLES[step.state])
    yield _Line(6, paper.fit(line))
    said = [s for s in asked if s.detail]
    if said:
        yield _Line(2, _labelled("", f"{said[-1].name}: {said[-1].detail}", paper))


def _ending(outcome: Outcome, paper: Paper) -> Iterator[_Line]:
    diagnosis = outcome.diagnosis
    cause = f" ({_cause(outcome)})" if _cause(outcome) else ""
    said = f"{diagnosis.verdict.value}{cause} in {diagnosis.phase.value}; ending what is left"
    yield _Line(8, _labelled("verdict", said, paper, _style(diagnosis.verdict)))
    if diagnosis.evidence:
        yield _Line(5, _labelled("", diagnosis.evidence, paper))


def _style(verdict: Verdict) -> str:
    if verdict is Verdict.SERVING:
        return "bold green"
    return "red" if verdict.is_evidence else "yellow"


# -- verdicts so far -------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Widths of the table; 0 = left out."""

    number: int
    what: int
    verdict: int
    cause: int
    seconds: int


def table(outcomes: Sequence[Outcome], paper: Paper, room: int) -> list[Text]:
    """Return the verdicts so far: a head, then the last rows that there is room for."""
    if room < 1 or not outcomes:
        return []
    columns = _columns(outcomes, paper.width)
    shown = list(outcomes)[-(room - 1) :] if room > 1 else []
    hidden = len(outcomes) - len(shown)
    title = f"changed ({hidden} earlier not shown)" if hidden else "changed"
    heads = ("#", title, "verdict", "cause", "s")
    head = _row(heads, columns, ("dim underline",) * 5, paper)
    return [head, *(_outcome_row(o, outcomes, columns, paper) for o in shown)]


def _columns(outcomes: Sequence[Outcome], width: int) -> _Columns:
    number = max(len(str(outcomes[-1].attempt.number)), 2)
    verdict = max(len("verdict"), *(len(o.verdict.value) for o in outcomes))
    seconds = 6 if width >= _NARROWER else 0
    cause = max(len("cause"), *(len(_cause(o)) for o in outcomes))
    room = width - number - verdict - seconds - _LEAST_WHAT - 5
    cause = min(cause, room) if width >= _NARROW else 0
    taken = sum(w + 1 for w in (number, verdict, cause, seconds) if w)
    return _Columns(number, max(width - taken - 1, 0), verdict, cause, seconds)


def _cause(outcome: Outcome) -> str:
    """Return the cause where it says more than the verdict."""
    cause = outcome.diagnosis.cause or ""
    return "" if cause == outcome.verdict.value else cause


def _outcome_row(
    outcome: Outcome, outcomes: Sequence[Outcome], columns: _Columns, paper: Paper
) -> Text:
    label, words = _what(outcome.attempt, outcomes)
    style = _style(outcome.verdict)
    cells = (
        str(outcome.attempt.number),
        words if label == "cell" else f"{label}: {words}",
        outcome.verdict.value,
        _cause(outcome),
        f"{outcome.timings.total_s:.0f}",
    )
    said = tuple(flat(cell, is_ascii=paper.is_ascii) for cell in cells)
    return _row(said, columns, ("", "", style, style, ""), paper)


def _row(cells: Sequence[str], columns: _Columns, styles: Sequence[str], paper: Paper) -> Text:
    line = Text()
    is_right = (True, False, False, False, True)
    for cell, width, style, right in zip(cells, columns, styles, is_right, strict=True):
        if not width:
            continue
        piece = Text(cell, style=style)
        paper.cut(piece, width)
        piece.align("right" if right else "left", width)
        line.append_text(piece)
        line.append(" ")
    return paper.fit(line)
